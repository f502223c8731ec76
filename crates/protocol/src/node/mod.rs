//! The node protocol: a bare model node dials a server, which sends it tasks as JSON text and gets
//! text back in binary frames.
//!
//! A node has one model. It describes itself in the query of the URL that it dials, with any path
//! ([`Query`]); there is no other greeting. The server sends [`Task`]s and [`Stop`]s; the node
//! sends [`ResultFrame`]s, and an empty text frame every [`KEEP_ALIVE`] as a sign of life.
//!
//! - [`query`]: a node's description of itself
//! - [`task`]: messages of a server
//! - [`result`]: messages of a node
//! - [`close`]: close codes and their reasons

pub mod close;
pub mod query;
pub mod result;
pub mod task;

use std::time::Duration;

pub use query::{BadQuery, Parameters, Query};
pub use result::{NotText, ResultFrame, ResultReader, TooShort, end_frame, text_frame};
pub use task::{BadMessage, Message, Role, ServerMessage, Stop, Task};

/// A server sends this header in its answer to an upgrade to identify itself as a Warren: when a
/// link closes, its tasks have failed and go to another provider if possible. A stock server keeps
/// a task under the name of its node even when the link breaks.
pub const WARREN: &str = "x-warren-node";

/// How often a node sends an empty text frame.
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);
