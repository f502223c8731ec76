//! The socket by which clients reach the workspace: their connections and their requests.
//!
//! - [`ClientSocket`]: the whole, as the server sees it
//! - `table`: the policy of each request, and its handler in `answers`
//! - `accept`: from an HTTP request to a connection; `admission`: the state that all connections
//!   share
//! - `greeting`: authenticates a client; `gate`: limits what a connection sends before that, and
//!   makes large messages wait for a slot; `message_slots`: those slots; `strangers`: bounds the
//!   connections that have not authenticated
//! - `client`: one connection, from its authentication to its end; `request_server`: serves its requests
//! - `membership`: which member of a cluster serves a request; `remotes`: a client's circuits to
//!   them; `quiet_requests`: the requests there that this machine itself sends; `guest`: clients of
//!   other members, served here; `team_members`: team workers on other members, and theirs here
//! - `moving`: sessions that move from one member to another
//! - `object_sync`: tells other members of this machine's sessions, projects and teams; `others`:
//!   shows theirs; `shown_reach`: which of them clients were shown as reachable
//! - `allowed`: which requests a client may send; `bucket`: how many per second
//! - `shares`: bounds the memory of long answers
//! - `lanes`: requests that run beside the connection, in order
//! - `services`: the parts of the workspace that serve requests; `project_files`: files, accessed
//!   as their projects' users; `uploads`: files that come in parts
//! - `reading`: decodes messages, and answers those that cannot be decoded; `family`: which message
//!   reports a failure
//! - `output_stream`: sends a session's output to a client; `project_watch`: reports a project's changes
//! - `echoes`: keeps a client from getting a message both as an answer and as an event
//! - `node_id`: the id of this machine

mod accept;
mod admission;
mod allowed;
mod answers;
mod bucket;
mod client;
mod client_socket;
mod echoes;
mod family;
mod gate;
mod greeting;
mod guest;
mod lanes;
mod membership;
mod message_slots;
mod moving;
mod node_id;
mod object_sync;
mod others;
mod output_stream;
mod policy;
mod project_files;
mod project_watch;
mod quiet_requests;
mod reading;
mod remotes;
mod request_server;
mod services;
mod shares;
mod shown_reach;
mod strangers;
mod table;
mod team_members;
mod uploads;

#[cfg(test)]
mod tests;

pub use client_socket::ClientSocket;
pub use membership::Memberships;
pub use node_id::node_id;
