//! The output of a session, and what its viewers see of it.
//!
//! - [`log`]: its output, as numbered chunks; history on disk
//! - [`viewer`]: one client's place in the log, and what it is sent next
//! - [`size`]: how large its terminal is, when several watch it
//! - [`text`]: bytes as they come, made into text
//! - [`input`]: which inputs were applied already
//! - [`port`]: the port of a development server, found in what it prints
//! - [`screen`]: what a terminal shows now, and the text that repaints it elsewhere

pub mod input;
pub mod log;
pub mod port;
pub mod screen;
pub mod size;
pub mod text;
pub mod viewer;
