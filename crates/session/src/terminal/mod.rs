//! The output of a session, and its viewers.
//!
//! - [`log`]: the output as numbered chunks, and the history on disk
//! - [`viewer`]: one client's position in the log, and what it is sent next
//! - [`size`]: the size of the terminal when several clients watch it
//! - [`text`]: decodes bytes, cut anywhere, into valid UTF-8
//! - [`input`]: remembers which inputs were already applied
//! - [`port`]: finds a development server's port in the output
//! - [`query`]: what a program asks its terminal, and who answers
//! - [`screen`]: what a terminal shows now, and the text that repaints it elsewhere
//! - `control`: a control sequence, taken apart; `run`: runs of bytes of one kind

mod control;
pub mod input;
pub mod log;
pub mod port;
pub mod query;
mod run;
pub mod screen;
pub mod size;
pub mod text;
pub mod viewer;
