//! The name of a repository, as people write it.

use std::fmt;

use models::ModelId;

/// The longest part of a name, in bytes.
const MAX_PART: usize = 96;

/// Prefixes that people copy along.
const PREFIXES: [&str; 5] =
    ["https://huggingface.co/", "https://hf.co/", "huggingface.co/", "hf.co/", "hf://"];

/// `ORG/REPO[:QUANT]`: a repository, and which model of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// `ORG/REPO`.
    pub repo: String,
    /// As `Q4_K_M`, or the name of a file.
    pub quantization: Option<String>,
}

/// Why a text does not name a repository.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text} is no model of a hub: write ORG/REPO, or ORG/REPO:QUANT, such as ggml-org/gemma-3-4b-it-GGUF:Q4_K_M"
)]
pub struct WantedError {
    text: String,
}

impl Wanted {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// [`WantedError`].
    pub fn parse(text: &str) -> Result<Self, WantedError> {
        let error = || WantedError { text: text.to_owned() };
        let bare = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
        let (repo, quantization) = match bare.split_once(':') {
            Some((repo, quantization)) => (repo, Some(quantization)),
            None => (bare.trim_end_matches('/'), None),
        };
        let (org, name) = repo.split_once('/').ok_or_else(error)?;
        let fits = is_part(org) && is_part(name) && quantization.is_none_or(is_quantization);
        let wanted = Self { repo: repo.to_owned(), quantization: quantization.map(str::to_owned) };
        if fits { Ok(wanted) } else { Err(error()) }
    }

    /// The name by which a model of it is kept and passed on to peers: `ORG/REPO:QUANT`.
    pub fn id(&self, quantization: &str) -> Option<ModelId> {
        ModelId::try_from(format!("{}:{quantization}", self.repo)).ok()
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.quantization {
            Some(quantization) => write!(f, "{}:{quantization}", self.repo),
            None => f.write_str(&self.repo),
        }
    }
}

fn is_part(part: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_PART).contains(&part.len())
        && part.bytes().all(fits)
        && !part.starts_with(['-', '.'])
        && !part.contains("..")
}

/// Also the name of a file.
fn is_quantization(text: &str) -> bool {
    (1..=MAX_PART).contains(&text.len())
        && models::FileName::try_from(text).is_ok()
        && !text.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_people_write_and_copy_them() {
        let read = |text: &str| {
            let wanted = Wanted::parse(text).unwrap();
            (wanted.repo, wanted.quantization)
        };
        let bare = ("org/Repo-1.5_x".to_owned(), None);
        for prefix in ["", "hf.co/", "https://huggingface.co/", "hf://"] {
            assert_eq!(read(&format!("{prefix}org/Repo-1.5_x")), bare);
        }
        assert_eq!(read("https://hf.co/org/Repo-1.5_x/"), bare);
        assert_eq!(read("a/b:Q4_K_M"), ("a/b".to_owned(), Some("Q4_K_M".to_owned())));
        let id = Wanted::parse("a/b").unwrap().id("Q8_0").unwrap();
        assert_eq!(id.as_str(), "a/b:Q8_0");
    }

    #[test]
    fn what_is_none_is_refused() {
        let long = format!("{}/b", "a".repeat(97));
        for text in [
            "", "name", "a/b/c", "a/", "/b", "../b", "a/..", "-a/b", "a/b c", "a/b?x", "a/b:",
            "a/b:x/y", "a/b:..", &long,
        ] {
            assert!(Wanted::parse(text).is_err(), "{text}");
        }
    }
}
