//! Moves and renames.

use rustix::io::Errno;

use super::{create::new_place, rename};
use crate::{error::FileError, path::RelPath, root::Root};

/// Moves or renames an entry, if the new name is free. A link is moved, not its target.
///
/// # Errors
///
/// [`FileError::NotFound`], [`FileError::Exists`], [`FileError::NoParent`],
/// [`FileError::IntoItself`], [`FileError::IsRoot`], [`FileError::OtherFileSystem`], and as for
/// every path.
pub fn move_entry(root: &Root, from: &RelPath, to: &RelPath) -> Result<(), FileError> {
    let source = root.place(from)?;
    let target = new_place(root, to)?;
    rename::exclusively(source.dir(), source.name(), target.dir(), target.name()).map_err(|errno| {
        match errno {
            Errno::INVAL => FileError::IntoItself,
            Errno::XDEV => FileError::OtherFileSystem,
            other => from.explain(FileError::of("move it", other)),
        }
    })
}
