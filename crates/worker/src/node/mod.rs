//! Lends a backend to a stock API server, as model nodes (node protocol).
//!
//! A server gets one connection for each model and slot, named `NAME-1`, `NAME-2`, …, each for one task
//! at a time. With a Warren, a task that fails ends its connection, and so harms no other task. A stock
//! server keeps a task under the name of its node, also without a connection. There a task that fails
//! says so in its text and ends, and a task whose connection was cut goes on over the next one.
//! Connections are dialled, and dialled again, like any link.
//!
//! - `slots`: the connections of one backend to one server, a set for each model
//! - `codec`: the protocol on one connection
//! - `slot`: the one task of a slot, over all its connections
//! - `session`: the meaning of a server's frames (pure)
//! - `job`: one task, from the backend's answer to text
//! - `reply`: text on its way to the server, as binary frames
//! - `chat`: a task as a chat request, and the text of its answer (pure)

mod chat;
mod codec;
mod job;
mod reply;
mod session;
mod slot;
pub(crate) mod slots;

pub(crate) use codec::NodeCodec;
pub(crate) use slot::TaskSlot;
