//! The node protocol: a bare model node dials a server, which sends it tasks as JSON text and gets
//! text back in binary frames.
//!
//! A node has one model. It says who it is in the query of the URL that it dials, whatever its
//! path ([`Query`]); there is no further greeting. The server sends [`Task`]s and [`Stop`]s; the
//! node sends [`ResultFrame`]s, and an empty text frame every [`KEEP_ALIVE`] as a sign of life.
//!
//! - [`query`]: who a node says it is
//! - [`task`]: what a server sends
//! - [`result`]: what a node sends
//! - [`close`]: close codes and their words

pub mod close;
pub mod query;
pub mod result;
pub mod task;

use std::time::Duration;

pub use query::{BadQuery, Parameters, Query};
pub use result::{NotText, ResultFrame, ResultReader, TooShort, end_frame, text_frame};
pub use task::{BadMessage, Message, Role, ServerMessage, Stop, Task};

/// A server sends this header in its answer to an upgrade to say that it is a Warren: when a link
/// closes, the link's tasks have failed, and go to another provider if possible. A stock server keeps a
/// task under the name of its node, whatever happens to the link.
pub const WARREN: &str = "x-warren-node";

/// How often a node sends an empty text frame.
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);
