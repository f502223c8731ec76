//! The connections of clients, and their requests.
//!
//! - `table`: the [policy](policy::Policy) of each request, and its handler in `answers`
//! - `accept`: from an HTTP request to a connection; `admission`: which connections are taken
//! - `greeting`: who a client is; `gate`: what it may send until then, and how large messages wait for a
//!   place; `places`: how many there are, and whose; `strangers`: how many clients may be unknown
//! - `client`: one connection, from then to its end
//! - `allowed`: who may send what; `bucket`: how often
//! - `shares`: how much of long answers may be in memory
//! - `lanes`: what waits, in order, beside the connection
//! - `services`: what requests are served with; `project_files`: files as their projects' users
//! - `reading`: messages, also those that cannot be read; `family`: which message reports a failure
//! - `stream`: a session's output on its way to a client; `watching`: a project's changes
//! - `echoes`: an event that a client had as its answer is not sent to it again
//! - `node_id`: the id of this machine

pub(crate) mod accept;
pub(crate) mod admission;
mod allowed;
mod answers;
mod bucket;
mod client;
mod echoes;
mod family;
mod gate;
mod greeting;
mod lanes;
pub(crate) mod node_id;
mod places;
mod policy;
pub(crate) mod project_files;
mod reading;
pub(crate) mod services;
mod shares;
mod strangers;
mod stream;
mod table;
mod watching;

#[cfg(test)]
mod tests;
