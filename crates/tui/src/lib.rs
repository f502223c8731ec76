//! The terminal interface: a server, its rooms, its requests and its workspace, live.
//!
//! It is a client like any other. While its server is lost, it shows the last known state. Its state is a
//! pure machine ([`app`]): keys and news go in, with the time, and the effects that it wants come out.
//! Drawing it is a pure function ([`draw`]). Only [`shell`] owns a terminal and connections.
//!
//! - [`app`]: the state, and the effect of each key
//! - [`draw`]: the drawing
//! - [`markdown`]: models' Markdown on a terminal; also for commands
//! - [`shell`]: the terminal, and the tasks that ask the server
//! - [`text`]: strangers' texts, made safe for a terminal, and their width there

pub mod app;
pub mod draw;
pub mod markdown;
pub mod shell;
pub mod text;

pub use app::{App, Settings};
pub use shell::{TuiError, run};
