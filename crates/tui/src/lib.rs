//! The terminal interface: a server, its rooms, its requests and its workspace, live.
//!
//! It is a client like any other, and looks on when its server is lost until it is back. What is
//! shown is a pure machine ([`app`]): keys and news go in, with the time, and the effects that
//! it wants come out. How it is shown is a pure function of it ([`draw`]). Only [`shell`] owns a terminal
//! and connections.
//!
//! - [`app`]: what is shown, and what each key does
//! - [`draw`]: how it is shown
//! - [`markdown`]: what models write, for a terminal; also for commands
//! - [`shell`]: the terminal, and the tasks that ask the server
//! - [`text`]: what a terminal may be shown of strangers' texts, and how wide it is

pub mod app;
pub mod draw;
pub mod markdown;
pub mod shell;
pub mod text;

pub use app::{App, Settings};
pub use shell::{TuiError, run};
