//! The members of a workspace: linked to each other, in step, and reached from each other.
//!
//! - [`cluster`]: the whole, this machine as a member; [`settings`], `config`: how it is set up
//! - `shared`: its parts, as links and their tasks use them; `error`: why a member does not start
//!   or cannot be changed
//! - [`circuit`]: a client of one member, served by another
//! - `invite`: machines that join by an invitation, and this one when it joins by one
//! - [`directory`]: the objects of all members; [`member`]: what is known of a member
//! - `driver`: drives the replica that keeps them; `facts`: what it stores; `notices`: what the
//!   operator should know
//! - `plain`: members that speak only the specification's protocol; `changes`: the directory's changes
//!   for each of them
//! - `links`: one link to each other member; `link`: how links come about and run; `control`: their
//!   rare messages; `strangers`: bounds on machines that have not proven the token
//! - `carried`: links between two members that others carry
//! - `barred`: the keys of former members
//! - `handover`: what a session's hand-over to another member writes into the replica
//! - `parting`: this machine leaves, or another one is taken out
//! - `tokens`: the secret that all members share, and how it is renewed
//! - `this_member`: this member, as it introduces itself
//! - `testing`: members for tests

mod barred;
mod carried;
mod changes;
pub mod circuit;
pub mod cluster;
mod config;
mod control;
pub mod directory;
mod driver;
mod error;
mod facts;
mod handover;
mod invite;
mod link;
mod links;
pub mod member;
mod notices;
mod parting;
mod plain;
pub mod settings;
mod shared;
mod strangers;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "it is for tests")]
pub mod testing;
mod this_member;
mod tokens;

#[cfg(test)]
mod tests;

pub use carried::{MeshWay, Sending, Through};
pub use circuit::{Caller, Circuit, Circuits, Ended, Host, Served, Service};
pub use cluster::{Cluster, MemberStatus, Parts};
pub use config::is_member;
pub use directory::{Directory, Watcher};
pub use driver::WriteError;
pub use error::ClusterError;
pub use facts::FactsError;
pub use handover::{ARRIVAL, Note};
pub use invite::{Invited, JoinError, OpenInvite};
pub use member::{Member, PlainPeer};
pub use settings::Settings;
