//! Entries created, moved, copied, deleted and uploaded. Nothing is ever overwritten.
//!
//! - [`file()`], [`directory`], [`upload`]: new entries
//! - [`Upload`]: a new file of any size, which arrives in parts
//! - [`move_entry`]: moves and renames, in `rename`, even where a file system lacks the flag not to
//!   overwrite
//! - [`copy`]: copies, with everything inside
//! - [`delete`]: deletion, with everything inside

mod copy;
mod create;
mod delete;
mod parts;
pub(crate) mod rename;
#[cfg(test)]
mod tests;

pub use self::{
    copy::copy,
    create::{directory, file, upload},
    delete::delete,
    parts::Upload,
    rename::move_entry,
};
