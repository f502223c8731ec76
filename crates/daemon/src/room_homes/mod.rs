//! Rooms of several servers that act as one.
//!
//! - `keep`: which rooms are this server's
//! - `carry`: a request on its way to its room's home; `serve`: the same at the home

mod carry;
mod keep;
mod serve;
