//! The client against a server that does as it is told.
//!
//! - `double`: that server
//! - `asking`: connecting, requests and their answers; `follow`: connections that are lost
//! - `places`: what is shown once, over any history of connections

mod asking;
mod double;
mod follow;
mod places;
