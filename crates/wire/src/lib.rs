//! Sockets: how a WebSocket link is accepted, dialled and driven, and TLS.
//!
//! A [`Link`] is owned by one task, which asks it for the next frame; while it waits, the link
//! writes what others have put into its [`Outbox`]. Frames that gather while the socket is busy
//! leave in one write, and none waits while it is free. What a frame means is for others to know.
//!
//! - [`link`]: one WebSocket, read and written by one task
//! - [`outbox`]: the bounded queue into a link
//! - [`accept`]: a link out of an HTTP upgrade
//! - [`mod@dial`]: a link to a server
//! - [`acks`]: acknowledgements without delay, for far ends that wait for them
//! - [`tls`]: certificates, ours and theirs
//! - [`io`]: any byte stream, as one type
//! - [`limits`]: how much memory a link may take

pub mod accept;
pub mod acks;
mod blocking;
pub mod dial;
pub mod io;
pub mod limits;
pub mod link;
pub mod outbox;
pub mod tls;

pub use accept::{Upgrade, UpgradeError};
pub use acks::{Acknowledging, PromptAcks};
pub use dial::{Dial, DialError, DialedLink, dial};
pub use io::{Io, IoStream};
pub use limits::Limits;
pub use link::{Link, LinkError, Role};
pub use outbox::{Frame, FrameSource, Outbox, OutboxClosed};
pub use tungstenite::Utf8Bytes;
