//! Teams of fake sessions that do what the test says.

mod bounds;
mod leaders;
mod messages;
mod outposts;
mod restarts;
mod results;
mod rig;
mod spawning;
mod whole;
