//! Teams among sessions that are told by the test what to do.

mod bounds;
mod leaders;
mod messages;
mod restarts;
mod results;
mod rig;
mod spawning;
mod whole;
