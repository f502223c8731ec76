//! Lends a backend to a stock API server, as model nodes (node protocol).
//!
//! A server gets one connection for each model and slot, named `NAME-1`, `NAME-2`, …, each good for
//! one task at a time: a task that fails can then end its connection, as the protocol has it, and
//! harm no other. The life of a connection, from dialling to the next try, is that of any link.
//!
//! - `slots`: the connections of one backend to one server, a set for each model
//! - `serving`: one connection while it stands
//! - `session`: what a server's frames mean (pure)
//! - `job`: one task, from the backend's answer to binary frames
//! - `chat`: a task as a chat request, and the text of its answer (pure)

mod chat;
mod job;
mod serving;
mod session;
pub(crate) mod slots;

pub(crate) use serving::Serving;
