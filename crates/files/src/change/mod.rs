//! Entries created, moved, copied, deleted and uploaded. Nothing is ever overwritten.
//!
//! - [`file()`], [`directory`], [`upload`]: something new
//! - [`move_entry`]: another name, if nothing has it
//! - [`copy`]: with all that is in it
//! - [`delete`]: with all that is in it
//! - `rename`: a rename that overwrites nothing, also where the kernel has none

mod copy;
mod create;
mod delete;
mod moving;
pub(crate) mod rename;
#[cfg(test)]
mod tests;

pub use self::{
    copy::copy,
    create::{directory, file, upload},
    delete::delete,
    moving::move_entry,
};
