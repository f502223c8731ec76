//! Sockets: accepting, dialling and driving WebSocket links, and TLS; and links within the process.
//!
//! One task owns a [`Link`] and asks it for the next frame. While it waits, the link writes the
//! contents of its [`Outbox`]. Frames that gather while the socket is busy leave in one write, and
//! no frame waits while the socket is free. The frames' meaning is up to other crates.
//!
//! - `any_link`: a link, whatever carries it; [`link`]: one WebSocket, read and written by one task; `in_process`: two
//!   queues between tasks of one process
//! - [`outbox`]: the bounded queue into a link
//! - [`accept`]: turns an HTTP upgrade into a link
//! - [`mod@dial`]: a link to a server
//! - [`proxy`]: the proxies of the environment
//! - [`mod@advice`]: what to do about an error of a connection
//! - [`mod@listen`]: listening for connections
//! - `deadline`: waiting for a time that may be absent
//! - [`acks`]: acknowledgements without delay, for far ends that wait for them
//! - [`mod@server_url`]: the URL of a server, as people write it
//! - [`tls`]: TLS for servers and clients
//! - [`io`]: any byte stream, as one type
//! - [`limits`]: the memory limits of a link

pub mod accept;
pub mod acks;
pub mod advice;
mod any_link;
mod blocking;
mod close_watch;
mod deadline;
pub mod dial;
mod in_process;
pub mod io;
pub mod limits;
pub mod link;
pub mod listen;
pub mod outbox;
pub mod proxy;
pub mod server_url;
mod system;
pub mod tls;

pub use accept::{Upgrade, UpgradeError};
pub use acks::{Acknowledging, PromptAcks};
pub use advice::{Advice, advised};
pub use any_link::Link;
pub use deadline::until;
pub use dial::{Dial, DialError, DialedLink, dial};
pub use io::{Io, IoStream};
pub use limits::Limits;
pub use link::{LinkError, Role};
pub use listen::listen;
pub use outbox::{Frame, FrameSource, Outbox, OutboxClosed, OutboxReader};
pub use proxy::{ByProxy, Proxies, ProxyError};
pub use server_url::server_url;
pub use tungstenite::Utf8Bytes;
