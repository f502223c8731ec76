//! A session as data: what a terminal or an agent showed, and what a viewer still lacks.
//!
//! No socket, process, clock or channel of its own: bytes and the time come in.
//!
//! - [`log`]: its output, as numbered chunks; history on disk
//! - [`viewer`]: one client's place in the log, and what it is sent next
//! - [`size`]: how large its terminal is, when several watch it
//! - [`text`]: bytes as they come, made into text
//! - [`input`]: which inputs were applied already
//! - [`team`]: teams: messages, results, and waiting for them
//! - [`agent`]: agent command lines, what they say, and their turns
//! - [`port`]: the port of a development server, found in what it prints
//! - [`screen`]: what a terminal shows now, and the text that repaints it elsewhere

pub mod agent;
pub mod input;
pub mod log;
pub mod port;
pub mod screen;
pub mod size;
pub mod team;
pub mod text;
pub mod viewer;
