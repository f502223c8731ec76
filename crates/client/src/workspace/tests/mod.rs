//! The client against a server that does what the test says.
//!
//! - `double`: that server
//! - `asking`: connecting, requests and their answers; `follow`: connections that are lost
//! - `positions`: output is shown exactly once, over any history of connections

mod asking;
mod double;
mod follow;
mod positions;
