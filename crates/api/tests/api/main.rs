//! The consumer APIs as HTTP services, with a provider in the hands of the test, under paused
//! time.

mod admin;
mod admission;
mod kit;
mod streams;
