//! A path in the form that clients use: relative to the project's root.

use std::fmt;

use crate::error::FileError;

/// The longest path, in bytes.
pub const PATH_MAX: usize = 4096;
/// The longest name in a path, in bytes.
pub const NAME_MAX: usize = 255;

/// A path below a project's root, of plain names only. The empty path is the root itself.
///
/// `..` is refused here only for a clear message: the kernel keeps paths inside the root.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RelPath(String);

impl RelPath {
    /// The root itself.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads what a client sent. Empty parts and `.` are dropped.
    ///
    /// # Errors
    ///
    /// [`FileError::Escapes`] for an absolute path or one with `..`, [`FileError::BadPath`] for one
    /// with a NUL, over [`PATH_MAX`], or with a name over [`NAME_MAX`].
    pub fn parse(text: &str) -> Result<Self, FileError> {
        check_whole(text)?;
        let mut path = String::with_capacity(text.len());
        for name in text.split('/').filter(|name| !matches!(*name, "" | ".")) {
            check_name(name)?;
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
        }
        Ok(Self(path))
    }

    /// [`RelPath::parse`] for a field that may be null. Null means the root.
    ///
    /// # Errors
    ///
    /// As [`RelPath::parse`].
    pub fn parse_optional(text: Option<&str>) -> Result<Self, FileError> {
        text.map_or_else(|| Ok(Self::root()), Self::parse)
    }

    /// The path as text, without a slash at either end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn entry(&self, name: &str) -> String {
        if self.is_root() { name.to_owned() } else { format!("{}/{name}", self.0) }
    }

    /// The parent directory and the name in it; `None` for the root.
    pub(crate) fn split(&self) -> Option<(&str, &str)> {
        if self.is_root() {
            return None;
        }
        Some(self.0.rsplit_once('/').unwrap_or(("", &self.0)))
    }

    pub(crate) fn missing(&self) -> FileError {
        if self.0.contains('\u{FFFD}') { FileError::NotSayable } else { FileError::NotFound }
    }

    /// Replaces a plain "not found" by [`RelPath::missing`].
    pub(crate) fn explain(&self, error: FileError) -> FileError {
        if matches!(error, FileError::NotFound) { self.missing() } else { error }
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check_whole(text: &str) -> Result<(), FileError> {
    if text.contains('\0') {
        return Err(FileError::BadPath("it has a NUL in it"));
    }
    if text.len() > PATH_MAX {
        return Err(FileError::BadPath("it is longer than 4096 bytes"));
    }
    if text.starts_with('/') { Err(FileError::Escapes) } else { Ok(()) }
}

fn check_name(name: &str) -> Result<(), FileError> {
    if name == ".." {
        return Err(FileError::Escapes);
    }
    if name.len() > NAME_MAX {
        return Err(FileError::BadPath("a name in it is longer than 255 bytes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn empty_dots_and_slashes_are_the_root() {
        for text in ["", ".", "./", "././."] {
            assert!(RelPath::parse(text).unwrap().is_root(), "{text}");
        }
        assert!(RelPath::parse_optional(None).unwrap().is_root());
        assert_eq!(RelPath::parse_optional(Some("a")).unwrap().as_str(), "a");
    }

    #[test]
    fn a_path_that_leaves_the_root_is_refused_in_the_words_of_the_protocol() {
        for text in ["..", "../a", "a/..", "a/../b", "/", "/etc/passwd", "//a", "a/./.."] {
            let error = RelPath::parse(text).unwrap_err();
            assert_eq!(error.to_string(), "path escapes project root", "{text}");
        }
    }

    #[test]
    fn names_that_only_look_like_dots_are_names() {
        for text in ["...", "..a", "a..", " ..", "a\\..\\b"] {
            assert_eq!(RelPath::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn nul_and_what_is_too_long_are_no_path() {
        let bad = |text: &str| matches!(RelPath::parse(text), Err(FileError::BadPath(_)));
        assert!(bad("a\0b") && bad("/a\0"));
        assert!(!bad(&"n".repeat(NAME_MAX)));
        assert!(bad(&"n".repeat(NAME_MAX + 1)));
        assert!(!bad(&"n/".repeat(PATH_MAX / 2)));
        assert!(bad(&"n/".repeat(PATH_MAX / 2 + 1)));
    }

    #[test]
    fn a_path_is_split_at_its_last_name() {
        assert_eq!(RelPath::parse("a/b//c/").unwrap().split(), Some(("a/b", "c")));
        assert_eq!(RelPath::parse("c").unwrap().split(), Some(("", "c")));
        assert_eq!(RelPath::root().split(), None);
    }

    proptest! {
        #[test]
        fn a_parsed_path_has_plain_names_and_parses_as_itself(text in "[a-c./\\x00]{0,12}") {
            if let Ok(path) = RelPath::parse(&text) {
                let plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
                prop_assert!(path.is_root() || path.as_str().split('/').all(plain));
                prop_assert_eq!(RelPath::parse(path.as_str()).unwrap(), path);
            }
        }
    }
}
