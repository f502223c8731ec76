//! The entries of a directory.

use std::ffi::CStr;

use rustix::fs::{Dir, FileType, OFlags, Stat};

use protocol::workspace::client::{FileEntry, FileKind};

use crate::{
    error::{FileError, doing},
    path::RelPath,
    regular,
    root::{Root, kind, stat},
    write::is_temporary,
};

/// The most entries of a directory that are listed.
pub const MAX_ENTRIES: usize = 20_000;

/// Lists a directory: directories first, then by name without regard to case.
///
/// Unfinished files are left out, including those that a killed server left behind. Links are
/// listed as links and not followed. Only regular files have a size. FIFOs, sockets and devices are
/// listed as files of 0 bytes, since the protocol has no word for them; they cannot be read. A name
/// that is not UTF-8 has U+FFFD for each invalid byte, and the entry cannot be opened by that name.
///
/// # Errors
///
/// [`FileError::TooManyEntries`] over [`MAX_ENTRIES`], and as for every path.
pub fn list(root: &Root, path: &RelPath) -> Result<Vec<FileEntry>, FileError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let dir = Dir::new(root.open_at(path, flags)?).map_err(doing("list it"))?;
    let mut entries = read_all(dir, path)?;
    entries.sort_by_cached_key(|entry| {
        (entry.kind != FileKind::Dir, entry.name.to_lowercase(), entry.name.clone())
    });
    Ok(entries)
}

fn read_all(mut dir: Dir, path: &RelPath) -> Result<Vec<FileEntry>, FileError> {
    let mut entries = Vec::new();
    while let Some(entry) = dir.read() {
        let entry = entry.map_err(doing("list it"))?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let at = dir.fd().map_err(doing("list it"))?;
        match stat(at, name) {
            Ok(stat) if is_ours(name, &stat) => {}
            Ok(_) if entries.len() == MAX_ENTRIES => {
                return Err(FileError::TooManyEntries { limit: MAX_ENTRIES });
            }
            Ok(stat) => entries.push(shown(path, &name.to_string_lossy(), &stat)),
            // Another process has removed the entry since the directory was read.
            Err(FileError::NotFound) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(entries)
}

/// Whether an entry is an unfinished file, still being written or left by a killed server.
fn is_ours(name: &CStr, stat: &Stat) -> bool {
    kind(stat) == FileType::RegularFile && is_temporary(name.to_bytes())
}

fn shown(path: &RelPath, name: &str, stat: &Stat) -> FileEntry {
    let (kind, size) = match kind(stat) {
        FileType::Directory => (FileKind::Dir, 0),
        FileType::Symlink => (FileKind::Symlink, 0),
        FileType::RegularFile => (FileKind::File, regular::size(stat)),
        _ => (FileKind::File, 0),
    };
    FileEntry { name: name.to_owned(), path: path.entry(name), kind, size }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

    use super::*;
    use crate::{
        read,
        tests::{Project, path, promptly},
    };

    fn listed(project: &Project, dir: &str) -> Vec<(String, FileKind, u64)> {
        let entries = list(&project.root, &path(dir)).unwrap();
        entries.into_iter().map(|entry| (entry.path, entry.kind, entry.size)).collect()
    }

    #[test]
    fn directories_come_first_and_each_kind_by_name() {
        let project = Project::new();
        for name in ["b", "A", "a", "Z", "sub/é/x", "beta/x"] {
            project.file(name, "four");
        }
        project.link("c", "sub");
        let found = listed(&project, "");
        let names: Vec<_> = found.iter().map(|(path, ..)| path.as_str()).collect();
        assert_eq!(names, ["beta", "sub", "A", "a", "b", "c", "Z"]);
        assert_eq!(found[1], ("sub".to_owned(), FileKind::Dir, 0));
        assert_eq!(found[2], ("A".to_owned(), FileKind::File, 4));
        assert_eq!(found[5], ("c".to_owned(), FileKind::Symlink, 0));
        assert_eq!(listed(&project, "sub"), [("sub/é".to_owned(), FileKind::Dir, 0)]);
        assert_eq!(listed(&project, "c/é"), [("c/é/x".to_owned(), FileKind::File, 4)]);
    }

    #[test]
    fn files_that_are_being_written_are_not_listed_and_what_only_looks_so_is() {
        let project = Project::new();
        let digits = "0123456789abcdef".repeat(2);
        project.file(&format!(".warren-{digits}"), "half a te");
        let others =
            [format!(".warren-{}", &digits[1..]), format!(".warren-{}", digits.to_uppercase())];
        others.iter().for_each(|name| project.file(name, "a user's"));
        std::fs::create_dir_all(project.at(&format!("d/.warren-{digits}"))).unwrap();
        let names: Vec<_> = listed(&project, "").into_iter().map(|(path, ..)| path).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(others.iter().all(|name| names.contains(name)), "{names:?}");
        assert_eq!(listed(&project, "d").len(), 1, "a directory");
    }

    #[test]
    fn special_files_are_listed_without_a_size_and_listing_them_does_not_block() {
        let project = Project::new();
        let names = project.special();
        let found = listed(&project, "");
        assert_eq!(found.len(), names.len());
        assert!(found.iter().all(|(_, kind, size)| *kind == FileKind::File && *size == 0));
        promptly(move || {
            for name in names {
                let refused = list(&project.root, &path(name));
                assert!(matches!(refused, Err(FileError::NotADirectory)), "{name}");
            }
        });
    }

    #[test]
    fn a_name_that_is_not_utf8_is_shown_and_cannot_be_opened_by_that() {
        let project = Project::new();
        fs::write(project.root.path().join(OsStr::from_bytes(b"a\xffb")), "text").unwrap();
        assert_eq!(listed(&project, ""), [("a\u{FFFD}b".to_owned(), FileKind::File, 4)]);
        let refused = read::text(&project.root, &path("a\u{FFFD}b")).unwrap_err();
        assert!(refused.to_string().contains("not UTF-8"), "{refused}");
    }

    #[test]
    fn more_entries_than_are_listed_are_an_error_that_says_how_many_may_be() {
        let project = Project::new();
        fs::create_dir(project.at("d")).unwrap();
        (0..MAX_ENTRIES).for_each(|n| drop(fs::File::create(project.at(&format!("d/{n}")))));
        assert_eq!(list(&project.root, &path("d")).unwrap().len(), MAX_ENTRIES);
        project.file("d/one more", "");
        let refused = list(&project.root, &path("d")).unwrap_err();
        assert_eq!(refused.to_string(), "too many entries: more than 20000");
    }

    #[test]
    fn listing_a_missing_entry_or_a_file_is_an_error() {
        let project = Project::new();
        project.file("f", "");
        assert!(matches!(list(&project.root, &path("f")), Err(FileError::NotADirectory)));
        assert!(matches!(list(&project.root, &path("g")), Err(FileError::NotFound)));
        assert!(matches!(list(&project.root, &path("f/g")), Err(FileError::NotADirectory)));
    }
}
