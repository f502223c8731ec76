//! The files that a machine is known by.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

/// The most that is read of a file, in bytes. The list of PCI ids, the largest, has 1.5 MiB;
/// `/proc/cpuinfo` has 400 KiB with 256 processors.
const MAX_FILE: u64 = 4 << 20;

/// The most entries of a directory that are looked at.
const MAX_ENTRIES: usize = 1024;

/// The most entries of a directory that are made use of: processors' sensors are the many.
const MAX_CHILDREN: usize = 64;

/// Names are cut to this many bytes.
const MAX_NAME: usize = 200;

/// Where `/proc`, `/sys` and the other files are read: the machine's own root, or a directory that
/// has been made to look like one.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    /// This machine's own.
    #[must_use]
    pub fn system() -> Self {
        Self::at("/")
    }

    /// The files under this directory.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// The first 4 MiB of a file, what is not UTF-8 in it replaced; `None` if it cannot be read.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first 4 MiB of a file; `None` if it cannot be read.
    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.path(path)).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The one word or number that a file of `/sys` holds.
    pub(crate) fn word(&self, path: &str) -> Option<String> {
        self.text(path).map(|text| text.trim_matches(['\0', ' ', '\n']).to_owned())
    }

    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        self.word(path)?.parse().ok()
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The paths of the entries of a directory whose names are wanted: at most 64, in the order of
    /// their names.
    pub(crate) fn children(&self, directory: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).into_iter().flatten().flatten();
        let names =
            entries.take(MAX_ENTRIES).filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| wanted(name)).collect();
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        names.truncate(MAX_CHILDREN);
        names.into_iter().map(|name| format!("{directory}/{name}")).collect()
    }

    fn path(&self, path: &str) -> PathBuf {
        debug_assert!(Path::new(path).is_relative(), "{path} would leave the root");
        self.0.join(path)
    }
}

/// Whether a name is this word and a number after it, such as `card0`.
pub(crate) fn is_numbered(name: &str, word: &str) -> bool {
    name.strip_prefix(word)
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// The value of the first line `KEY : VALUE`, as a name.
pub(crate) fn value(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(name, _)| name.trim() == key).and_then(|(_, value)| name(value))
}

/// A name that may be shown: no control characters, single spaces, at most 200 bytes; `None` when
/// nothing is left of it.
pub(crate) fn name(text: &str) -> Option<String> {
    let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = printable.split_whitespace().collect();
    let mut name = words.join(" ");
    name.truncate(name.floor_char_boundary(MAX_NAME));
    Some(name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    #[test]
    fn a_file_is_read_to_its_bound_and_no_further() {
        let made = MadeUp::new();
        made.file("proc/long", "x".repeat((MAX_FILE + 10) as usize));
        assert_eq!(made.root().text("proc/long").unwrap().len() as u64, MAX_FILE);
        assert_eq!(made.root().text("proc/absent"), None);
        assert_eq!(made.root().text("proc"), None);
    }

    #[test]
    fn entries_are_bounded_and_ordered_by_their_numbers() {
        let made = MadeUp::new();
        for number in 0..100 {
            made.file(&format!("sys/zone{number}"), "");
        }
        let zones = made.root().children("sys", |name| is_numbered(name, "zone"));
        assert_eq!(zones.len(), MAX_CHILDREN);
        assert_eq!((zones[2].as_str(), zones[10].as_str()), ("sys/zone2", "sys/zone10"));
        assert!(made.root().children("absent", |_| true).is_empty());
    }

    #[test]
    fn names_are_clean_and_bounded() {
        assert_eq!(name(" AMD  Ryzen\t9 \u{1b}7950X\n").as_deref(), Some("AMD Ryzen 9 7950X"));
        assert_eq!(name(&"é".repeat(300)).unwrap().len(), MAX_NAME);
        assert_eq!((name(" \n"), value("a : \nb : 1", "a"), value("", "a")), (None, None, None));
        assert_eq!(value("a : \nmodel : x : y", "model").as_deref(), Some("x : y"));
    }

    #[test]
    fn a_number_must_be_all_that_follows_the_word() {
        assert!(is_numbered("card0", "card") && is_numbered("card12", "card"));
        assert!(!is_numbered("card0-DP-1", "card") && !is_numbered("card", "card"));
    }
}
