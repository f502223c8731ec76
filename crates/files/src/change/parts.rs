//! A new file that comes in parts.

use std::{ffi::CString, os::fd::OwnedFd};

use super::create::free_place;
use crate::{
    error::FileError,
    path::RelPath,
    root::Root,
    write::{PLAIN, Temporary},
};

/// A new file of any size, which arrives in parts, one after the other. Until it is complete, it has a temporary name
/// in the same directory, which is neither listed nor watched. It is removed if this is dropped before
/// [`Upload::finish`].
#[derive(Debug)]
pub struct Upload {
    beside: Temporary<OwnedFd>,
    name: CString,
    length: u64,
}

impl Upload {
    /// Begins a file, without any bytes.
    ///
    /// # Errors
    ///
    /// [`FileError::Exists`] if the name is taken, even by a link; [`FileError::NoParent`], and as for every path.
    pub fn begin(root: &Root, path: &RelPath) -> Result<Self, FileError> {
        let (dir, name, unfinished) = free_place(root, path)?.into_parts();
        let beside = Temporary::create_in(dir, unfinished.as_ref(), PLAIN)?;
        Ok(Self { beside, name, length: 0 })
    }

    /// The number of bytes that have arrived.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Writes a part that begins at this offset of the file, in bytes. Bytes that have arrived before are not written
    /// again, so a part may be sent twice.
    ///
    /// # Errors
    ///
    /// [`FileError::Gap`] if bytes before it are missing, and [`FileError::NoSpace`]. After an error the part may be
    /// sent again.
    pub fn take(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let gap = FileError::Gap { expected: self.length };
        let known = self.length.checked_sub(offset).ok_or(gap)?;
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let new = bytes.get(known..).unwrap_or_default();
        self.beside.write_at(new, self.length)?;
        self.length += new.len() as u64;
        Ok(())
    }

    /// Completes the file: syncs it, and gives it its name.
    ///
    /// # Errors
    ///
    /// [`FileError::Exists`] if the name was taken meanwhile. The file is removed after any error.
    pub fn finish(self) -> Result<(), FileError> {
        self.beside.cut(self.length)?;
        self.beside.sync()?;
        self.beside.publish(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        list,
        tests::{Project, names, path},
    };

    fn begun(project: &Project) -> Upload {
        Upload::begin(&project.root, &path("new")).unwrap()
    }

    /// The names that a client is shown.
    fn listed(project: &Project) -> Vec<String> {
        let page = list::list(&project.root, &RelPath::root(), None).unwrap();
        page.entries.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn parts_become_a_file_once_it_is_complete() {
        let project = Project::new();
        let mut upload = begun(&project);
        upload.take(0, b"one ").unwrap();
        upload.take(4, b"two").unwrap();
        assert_eq!((listed(&project), upload.length()), (Vec::new(), 7));
        upload.finish().unwrap();
        assert_eq!(
            (listed(&project), project.read("new")),
            (vec!["new".to_owned()], "one two".to_owned())
        );
        project.assert_untouched();
    }

    #[test]
    fn a_part_that_comes_again_changes_nothing_and_one_too_far_is_told_where_to_begin() {
        let project = Project::new();
        let mut upload = begun(&project);
        upload.take(0, b"one ").unwrap();
        upload.take(0, b"one ").unwrap();
        upload.take(1, b"n").unwrap();
        let gap = upload.take(5, b"wo").unwrap_err();
        assert!(matches!(gap, FileError::Gap { expected: 4 }), "{gap}");
        assert!(gap.to_string().contains("offset 4"), "{gap}");
        upload.take(2, b"e two").unwrap();
        upload.take(7, b"").unwrap();
        upload.finish().unwrap();
        assert_eq!(project.read("new"), "one two");
    }

    #[test]
    fn an_upload_overwrites_nothing_and_leaves_nothing() {
        let project = Project::new();
        project.file("f", "old");
        project.link("out", "../outside/new");
        let begin = |name| Upload::begin(&project.root, &path(name)).map(drop);
        assert!(matches!(begin("f"), Err(FileError::Exists)));
        assert!(matches!(begin("out"), Err(FileError::Exists)));
        assert!(matches!(begin(""), Err(FileError::Exists)));
        assert!(matches!(begin("gone/f"), Err(FileError::NoParent)));
        let mut upload = begun(&project);
        upload.take(0, b"half").unwrap();
        drop(upload);
        project.assert_untouched();
        let upload = begun(&project);
        project.file("new", "somebody else's");
        assert!(matches!(upload.finish(), Err(FileError::Exists)));
        assert_eq!(project.read("new"), "somebody else's");
        assert_eq!(names(project.root.path()), ["f", "new", "out"]);
        project.assert_untouched();
    }

    #[test]
    fn what_a_failed_write_has_left_is_cut_off() {
        let project = Project::new();
        let mut upload = begun(&project);
        upload.take(0, b"one").unwrap();
        upload.beside.write_at(b"half a part", 3).unwrap();
        upload.take(3, b" two").unwrap();
        upload.finish().unwrap();
        assert_eq!(fs::read(project.at("new")).unwrap(), b"one two");
    }
}
