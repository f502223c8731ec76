//! Entries created, moved, copied, deleted and uploaded. Nothing is ever overwritten.
//!
//! - [`file()`], [`directory`], [`upload`]: new entries
//! - [`Upload`]: a new file of any size, which comes in parts
//! - [`move_entry`]: moves and renames
//! - [`copy`]: copies, with everything inside
//! - [`delete`]: deletion, with everything inside
//! - `rename`: a rename that never overwrites, even where the kernel lacks the flag

mod copy;
mod create;
mod delete;
mod moving;
mod parts;
pub(crate) mod rename;
#[cfg(test)]
mod tests;

pub use self::{
    copy::copy,
    create::{directory, file, upload},
    delete::delete,
    moving::move_entry,
    parts::Upload,
};
