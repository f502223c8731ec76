//! The consumer APIs as HTTP services, with a provider in the hands of the test, under paused
//! time.

mod admission;
mod admin;
mod kit;
mod streams;
