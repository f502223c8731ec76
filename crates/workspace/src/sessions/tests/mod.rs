//! Sessions, most of them with real processes, as clients see them.
//!
//! - `bare`: sessions without processes; `seen`: a client that checks its messages
//! - `terminals`: opening, typing, sizes, ends; `sizes`: sizes among several viewers
//! - `lagging`: clients that are slow, or come back
//! - `lives`: restarts; `outliving`: terminals that go on over a restart
//! - `queries`: what a program asks its terminal
//! - `ends`: what is left after a kill or an end
//! - `agents`: lines of agents, and the messages beside them

mod agents;
mod bare;
mod ends;
mod lagging;
mod lives;
mod outliving;
mod queries;
mod seen;
mod sizes;
mod terminals;
