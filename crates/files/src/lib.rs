//! A project's files, its git repository, and notice of changes.
//!
//! The kernel resolves every path beneath the project's root, on descriptors: nothing is checked
//! first and used later. The functions on files block, so call them on a thread that may block (for
//! example one with the credentials of the project's user). Git and watching are asynchronous.
//!
//! - [`root`]: an opened project root, and the resolution of paths beneath it
//! - [`path`]: a path in the form that clients use
//! - [`list`]: the entries of a directory
//! - [`read`]: a whole text, or a window of any file
//! - [`mod@write`]: writes a text atomically, unless it has changed meanwhile
//! - [`change`]: create, move, copy, delete, upload
//! - [`git`]: status and diff, by running `git` without anything that the repository may execute
//! - [`watch`]: a tick when something under the root has changed
//! - [`error`]: the reasons for refusals
//! - `regular`, `budget`: reads files without blocking; limits the work of one request

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
