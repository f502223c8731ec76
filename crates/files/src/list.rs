//! The entries of a directory.

use std::{
    collections::BinaryHeap,
    ffi::{CStr, CString},
};

use rustix::fs::{Dir, FileType, OFlags, Stat};

use protocol::workspace::client::{FileEntry, FileKind};

use crate::{
    error::{FileError, doing},
    path::RelPath,
    regular,
    root::{Root, kind, stat},
    write::is_temporary,
};

/// The most entries of a directory that are listed at once.
pub const MAX_ENTRIES: usize = 20_000;

/// A part of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its entries.
    pub entries: Vec<FileEntry>,
    /// The mark after which the next part begins; `None` after the last part.
    pub next: Option<String>,
}

/// Lists a part of a directory, at most [`MAX_ENTRIES`] entries: those that follow the mark `after`, or the first
/// ones. Directories come first; then the order is by name, without regard to case. A mark is a place in this order,
/// so it stays valid when entries come or go. Only one part is held in memory.
///
/// Warren's temporary files are left out, including those that a killed server left behind. Links are
/// listed as links and not followed. Only regular files have a size. FIFOs, sockets and devices are
/// listed as files of 0 bytes, since the protocol has no word for them; they cannot be read. A name
/// that is not UTF-8 has U+FFFD for each invalid byte, and the entry cannot be opened by that name.
///
/// # Errors
///
/// As for every path.
pub fn list(root: &Root, path: &RelPath, after: Option<&str>) -> Result<Page, FileError> {
    list_within(root, path, after, MAX_ENTRIES)
}

/// [`list`], with at most `most` entries.
fn list_within(
    root: &Root,
    path: &RelPath,
    after: Option<&str>,
    most: usize,
) -> Result<Page, FileError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let mut dir = Dir::new(root.open_at(path, flags)?).map_err(doing("list it"))?;
    let after = after.and_then(Order::of_mark);
    let (found, is_cut) = first_after(&mut dir, after.as_ref(), most)?;
    let next = found.last().filter(|_| is_cut).map(Order::mark);
    let at = dir.fd().map_err(doing("list it"))?;
    let mut entries = Vec::new();
    for order in &found {
        match stat(at, &order.on_disk) {
            Ok(stat) => entries.push(shown(path, &order.name, &stat)),
            // Another process has removed the entry since the directory was read.
            Err(FileError::NotFound) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(Page { entries, next })
}

/// The place of an entry in the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    is_no_directory: bool,
    folded: String,
    /// The name as it is shown.
    name: String,
    /// The name in the directory: several that are not UTF-8 may be shown alike.
    on_disk: CString,
}

impl Order {
    fn new(is_directory: bool, on_disk: &CStr) -> Self {
        let name = on_disk.to_string_lossy().into_owned();
        let folded = name.to_lowercase();
        Self { is_no_directory: !is_directory, folded, name, on_disk: on_disk.to_owned() }
    }

    /// The place that a mark means; `None` for the beginning.
    fn of_mark(mark: &str) -> Option<Self> {
        let (kind, name) = mark.split_at_checked(1)?;
        let on_disk = match kind {
            "D" | "F" => from_hex(name)?,
            _ => name.as_bytes().to_owned(),
        };
        Some(Self::new(matches!(kind, "d" | "D"), &CString::new(on_disk).ok()?))
    }

    /// `d` or `f`, for a directory or anything else, and the name. A name that is not UTF-8 is in hexadecimal digits,
    /// after `D` or `F`.
    fn mark(&self) -> String {
        let kind = if self.is_no_directory { 'f' } else { 'd' };
        match self.on_disk.to_str() {
            Ok(name) => format!("{kind}{name}"),
            Err(_) => {
                let digits = self.on_disk.to_bytes().iter().map(|byte| format!("{byte:02x}"));
                format!("{}{}", kind.to_ascii_uppercase(), digits.collect::<String>())
            }
        }
    }
}

/// The bytes in hexadecimal digits; `None` if it is no such text.
fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// The first entries after a place, in order, and whether more follow them.
fn first_after(
    dir: &mut Dir,
    after: Option<&Order>,
    most: usize,
) -> Result<(Vec<Order>, bool), FileError> {
    // The heap has the last of the kept entries on top, which is dropped if there are too many.
    let (mut found, mut is_cut) = (BinaryHeap::new(), false);
    while let Some(entry) = dir.read() {
        let entry = entry.map_err(doing("list it"))?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Some(is_directory) = is_listed(dir, name, entry.file_type())? else { continue };
        let order = Order::new(is_directory, name);
        if after.is_some_and(|after| order <= *after) {
            continue;
        }
        found.push(order);
        if found.len() > most {
            found.pop();
            is_cut = true;
        }
    }
    Ok((found.into_sorted_vec(), is_cut))
}

/// Whether an entry is a directory; `None` if it is not listed. Most file systems report the kind with the name, so
/// that `stat` is rarely called.
fn is_listed(dir: &Dir, name: &CStr, kind: FileType) -> Result<Option<bool>, FileError> {
    if kind != FileType::Unknown && !is_temporary(name.to_bytes()) {
        return Ok(Some(kind == FileType::Directory));
    }
    match stat(dir.fd().map_err(doing("list it"))?, name) {
        Ok(stat) if is_ours(name, &stat) => Ok(None),
        Ok(stat) => Ok(Some(crate::root::kind(&stat) == FileType::Directory)),
        Err(FileError::NotFound) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Whether an entry is a temporary file of Warren's, still being written or left by a killed server.
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
        let entries = list(&project.root, &path(dir), None).unwrap().entries;
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
                let refused = list(&project.root, &path(name), None);
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

    fn part(project: &Project, after: Option<&str>) -> (Vec<String>, Option<String>) {
        let Page { entries, next } = list(&project.root, &path("d"), after).unwrap();
        (entries.into_iter().map(|entry| entry.name).collect(), next)
    }

    #[test]
    fn a_large_directory_is_listed_in_parts_and_each_entry_once() {
        let project = Project::new();
        fs::create_dir(project.at("d")).unwrap();
        let add = |name: &str| drop(fs::File::create(project.at(&format!("d/{name}"))));
        (0..MAX_ENTRIES).for_each(|n| add(&format!("{n:05}")));
        assert_eq!(part(&project, None).1, None, "all fit");
        (0..10).for_each(|n| add(&format!("Z{n}")));
        fs::create_dir(project.at("d/zz")).unwrap();
        let (first, next) = part(&project, Some(""));
        assert_eq!((first.len(), &*first[0]), (MAX_ENTRIES, "zz"));
        assert_eq!(next.as_deref(), Some("f19998"));
        let (rest, end) = part(&project, next.as_deref());
        let expected: Vec<String> =
            ["19999".to_owned()].into_iter().chain((0..10).map(|n| format!("Z{n}"))).collect();
        assert_eq!((rest, end), (expected, None));
        // The mark holds when its entry is gone, and when others come before it.
        fs::remove_file(project.at("d/19998")).unwrap();
        add("0000");
        fs::create_dir(project.at("d/zzz")).unwrap();
        assert_eq!(part(&project, next.as_deref()).0.len(), 11);
        assert_eq!(part(&project, Some("dzz")).0[0], "zzz", "a directory");
    }

    #[test]
    fn each_name_that_is_shown_like_another_is_listed_also_at_the_end_of_a_part() {
        let project = Project::new();
        for name in [&b"a\xff"[..], b"a\xfe", b"a\xfd", b"a\xef\xbf\xbd"] {
            fs::write(project.root.path().join(OsStr::from_bytes(name)), name).unwrap();
            fs::create_dir(project.root.path().join(OsStr::from_bytes(&[name, b"d"].concat())))
                .unwrap();
        }
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let page = list_within(&project.root, &path(""), after.as_deref(), 1).unwrap();
            names.extend(page.entries.into_iter().map(|entry| (entry.name, entry.size)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let dir = || ("a\u{FFFD}d".to_owned(), 0);
        let file = |size| ("a\u{FFFD}".to_owned(), size);
        assert_eq!(names, [dir(), dir(), dir(), dir(), file(4), file(2), file(2), file(2)]);
        let odd = list(&project.root, &path(""), Some("Fxyz")).unwrap();
        assert_eq!(odd.entries.len(), 8, "no mark, so the beginning");
    }

    #[test]
    fn listing_a_missing_entry_or_a_file_is_an_error() {
        let project = Project::new();
        project.file("f", "");
        assert!(matches!(list(&project.root, &path("f"), None), Err(FileError::NotADirectory)));
        assert!(matches!(list(&project.root, &path("g"), None), Err(FileError::NotFound)));
        assert!(matches!(list(&project.root, &path("f/g"), None), Err(FileError::NotADirectory)));
    }
}
