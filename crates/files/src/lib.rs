//! A project's files, its git repository, and notice of changes.
//!
//! Every path is resolved beneath the project's root by the kernel, on descriptors: nothing is
//! checked first and used later. The functions on files block: call them on a thread that may
//! (for example one with the credentials of the project's user). Git and watching are asynchronous.
//!
//! - [`root`]: an opened project root, and how paths are resolved beneath it
//! - [`path`]: a path as a client names it
//! - [`list`]: the entries of a directory
//! - [`read`]: a text whole, or a window of any file
//! - [`mod@write`]: a text written atomically, unless it has changed meanwhile
//! - [`change`]: create, move, copy, delete, upload
//! - [`git`]: status and diff, by running `git` with everything switched off that it might run
//! - [`watch`]: a tick when something under the root has changed
//! - [`error`]: why an operation is refused
//! - `regular`, `budget`: files that are read without blocking; how much one request may do

mod budget;
pub mod change;
pub mod error;
pub mod git;
pub mod list;
pub mod path;
pub mod read;
mod regular;
pub mod root;
pub mod watch;
pub mod write;

#[cfg(test)]
mod tests;

pub use error::FileError;
pub use git::{Git, GitError, GitSettings, Runner};
pub use path::RelPath;
pub use root::Root;
pub use watch::{Watch, Watches};
