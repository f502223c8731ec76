//! Names of models and of their files. A peer's name becomes a path on this machine, so both are
//! checked once, here, and are safe to join to a directory ever after.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::disk_name::on_disk;

/// The longest name of a model, in bytes.
pub const MAX_MODEL_ID: usize = 200;
/// The longest name of a file, with its directories, in bytes.
pub const MAX_FILE_NAME: usize = 1024;
/// The longest segment of a name, in bytes: what file systems allow.
pub const MAX_SEGMENT: usize = 255;
/// The most segments of a model's name.
pub const MAX_MODEL_SEGMENTS: usize = 4;
/// The most segments of a file's name.
pub const MAX_FILE_SEGMENTS: usize = 8;

/// Why a name is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing at all.
    #[error("the name is empty")]
    Empty,
    /// Too many bytes.
    #[error("the name is longer than {0} bytes")]
    Long(usize),
    /// Too many segments.
    #[error("the name has more than {0} segments between slashes")]
    Deep(usize),
    /// Two slashes in a row, or one at either end: an absolute path is such a name.
    #[error("the name begins or ends with a slash, or has two in a row")]
    EmptySegment,
    /// A segment with more bytes than file systems take.
    #[error("a segment of the name is longer than {MAX_SEGMENT} bytes")]
    LongSegment,
    /// `.`, `..`, and whatever else begins with a dot: hidden files are neither offered nor taken.
    #[error("a segment of the name begins with a dot")]
    Dot,
    /// A model's name that a program could take for an option.
    #[error("a segment of the name begins with a dash")]
    Dash,
    /// Separators of paths on other systems.
    #[error("the name has a backslash in it")]
    Backslash,
    /// Control characters, and those that are not seen or turn the text around.
    #[error("the name has a character in it that cannot be seen")]
    Unprintable,
    /// White space at either end of a segment.
    #[error("a segment of the name begins or ends with white space")]
    Space,
}

/// The name of a model: one to four segments, as `mlx-community/Qwen3-8B-4bit` or `llama3:8b`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelId(String);

/// The name of a file of a model: a plain relative path of one to eight segments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileName(String);

/// The functions of both kinds of names.
macro_rules! checked {
    ($name:ident, $rules:expr) => {
        impl $name {
            /// As text, segments with slashes between them.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Its place below a directory; never outside of it.
            pub fn below(&self, directory: &Path) -> PathBuf {
                let mut path = directory.to_owned();
                path.extend(self.0.split('/').map(|segment| on_disk(segment).into_owned()));
                path
            }
        }

        impl TryFrom<&str> for $name {
            type Error = NameError;

            fn try_from(text: &str) -> Result<Self, NameError> {
                $rules.check(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                $rules.check(&text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked!(ModelId, Rules { bytes: MAX_MODEL_ID, segments: MAX_MODEL_SEGMENTS, dash: false });
checked!(FileName, Rules { bytes: MAX_FILE_NAME, segments: MAX_FILE_SEGMENTS, dash: true });

/// The rules of a kind of name.
struct Rules {
    bytes: usize,
    segments: usize,
    /// Whether a segment may begin with a dash.
    dash: bool,
}

impl Rules {
    fn check(&self, text: &str) -> Result<(), NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > self.bytes {
            return Err(NameError::Long(self.bytes));
        }
        if text.split('/').count() > self.segments {
            return Err(NameError::Deep(self.segments));
        }
        text.split('/').try_for_each(|segment| self.check_segment(segment))
    }

    fn check_segment(&self, segment: &str) -> Result<(), NameError> {
        let broken = [
            (segment.is_empty(), NameError::EmptySegment),
            (segment.len() > MAX_SEGMENT, NameError::LongSegment),
            (segment.starts_with('.'), NameError::Dot),
            (segment.starts_with('-') && !self.dash, NameError::Dash),
            (segment.contains('\\'), NameError::Backslash),
            (segment.contains(unseen), NameError::Unprintable),
            (segment.trim() != segment, NameError::Space),
        ];
        broken.into_iter().find(|(is, _)| *is).map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Characters with which a name looks like another one, or breaks a line.
fn unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_and_files_are_taken_as_they_are() {
        for id in ["llama3:8b", "mlx-community/Qwen3-8B-4bit", "hf.co/a/b:Q4_K_M", "模型/一"] {
            assert_eq!(ModelId::try_from(id).unwrap().as_str(), id);
        }
        for name in ["model.safetensors", "-x", "a/b/c/d/e/f/g/h", "sha256-00", "Füße (1).gguf"] {
            assert_eq!(FileName::try_from(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn names_that_leave_their_directory_or_mislead_are_refused_with_the_reason() {
        use NameError::*;
        let cases = [
            ("", Empty),
            ("/etc/passwd", EmptySegment),
            ("a//b", EmptySegment),
            ("a/", EmptySegment),
            ("..", Dot),
            ("a/../b", Dot),
            ("./a", Dot),
            (".arriving/x", Dot),
            ("a\\..\\b", Backslash),
            ("C:\\x", Backslash),
            ("a\0b", Unprintable),
            ("a\nb", Unprintable),
            ("a\u{202e}fugg", Unprintable),
            (" a", Space),
            ("a /b", Space),
        ];
        for (text, error) in cases {
            assert_eq!(FileName::try_from(text), Err(error), "{text:?}");
            assert_eq!(ModelId::try_from(text), Err(error), "{text:?}");
        }
        assert_eq!(ModelId::try_from("-rf"), Err(Dash));
        assert_eq!(ModelId::try_from("a/--b"), Err(Dash));
    }

    #[test]
    fn lengths_are_bounded() {
        let at_most = "x".repeat(MAX_MODEL_ID);
        assert!(ModelId::try_from(at_most.as_str()).is_ok());
        assert_eq!(ModelId::try_from(at_most + "x"), Err(NameError::Long(MAX_MODEL_ID)));
        assert_eq!(ModelId::try_from("a/b/c/d/e"), Err(NameError::Deep(4)));
        assert!(FileName::try_from("x".repeat(255)).is_ok());
        assert_eq!(FileName::try_from("x".repeat(256)), Err(NameError::LongSegment));
        assert_eq!(FileName::try_from("a/".repeat(8) + "a"), Err(NameError::Deep(8)));
        let long = vec!["x".repeat(255); 5].join("/");
        assert_eq!(FileName::try_from(long), Err(NameError::Long(MAX_FILE_NAME)));
    }

    #[test]
    fn a_name_is_joined_below_its_directory() {
        let path = ModelId::try_from("org/name").unwrap().below(Path::new("/data"));
        assert_eq!(path, Path::new("/data/org/name"));
    }

    #[test]
    fn names_in_json_are_checked_too() {
        assert!(serde_json::from_str::<FileName>("\"a/b\"").is_ok());
        assert!(serde_json::from_str::<FileName>("\"../b\"").is_err());
    }
}
