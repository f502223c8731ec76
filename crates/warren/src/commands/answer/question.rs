//! The question: arguments, standard input and files.

use std::{
    fs::File,
    io::{IsTerminal, Read, stdin},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::system::is_input_piped;

/// The longest text from standard input, and the longest file, in bytes. A server has its own bound.
const LONGEST: u64 = 64 << 20;

/// The first bytes of the pictures that models read, with their types.
const PICTURES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

/// The question; `-` reads it from standard input.
pub(crate) fn prompt(said: &str) -> anyhow::Result<String> {
    if said != "-" {
        return Ok(said.to_owned());
    }
    let prompt = from_standard_input()?;
    if prompt.trim().is_empty() {
        bail!("nothing came from standard input: write a question");
    }
    Ok(prompt)
}

/// A question with its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Question {
    text: String,
    /// Pictures as data URLs.
    pictures: Vec<String>,
}

impl Question {
    /// The words of the command line, what is piped into the command, and files. `-` as the only word is
    /// standard input.
    ///
    /// # Errors
    /// When nothing is asked, or something cannot be read.
    pub(crate) fn gather(words: &[String], files: &[PathBuf]) -> anyhow::Result<Self> {
        let said = words.join(" ");
        let mut question = match said.as_str() {
            "-" => Self::new(&from_standard_input()?),
            "" if stdin().is_terminal() => Self::default(),
            "" => Self::new(&from_standard_input()?),
            said if is_input_piped() => Self::new(&joined(said, &from_standard_input()?)),
            said => Self::new(said),
        };
        for file in files {
            question.add(file)?;
        }
        if question.text.trim().is_empty() && question.pictures.is_empty() {
            bail!("there is no question: give one, as in `warren ask \"What is Warren?\"`");
        }
        Ok(question)
    }

    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), pictures: Vec::new() }
    }

    /// Adds a picture or a text.
    ///
    /// # Errors
    /// When the file cannot be read, or is neither.
    pub(crate) fn add(&mut self, path: &Path) -> anyhow::Result<()> {
        let shown = path.display();
        let file = File::open(path).with_context(|| format!("{shown} cannot be read"))?;
        let bytes = bounded(file, LONGEST).with_context(|| format!("{shown} cannot be read"))?;
        if let Some(kind) = picture(&bytes) {
            self.pictures.push(format!("data:{kind};base64,{}", STANDARD.encode(&bytes)));
            return Ok(());
        }
        let Ok(text) = String::from_utf8(bytes) else {
            bail!("{shown} is neither a picture (PNG, JPEG, GIF, WebP) nor text in UTF-8");
        };
        let name = path.file_name().map_or_else(String::new, |name| name.display().to_string());
        self.text = joined(&self.text, &format!("{name}:\n\n{}", fenced(&text)));
        Ok(())
    }

    /// Adds a text to this question, before what it has already.
    pub(crate) fn preceded_by(mut self, text: &str) -> Self {
        self.text = joined(text, &self.text);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.pictures.is_empty()
    }

    /// The content of a message of Chat Completions.
    pub(crate) fn content(&self) -> Value {
        if self.pictures.is_empty() {
            return Value::from(self.text.trim());
        }
        let text = Some(self.text.trim()).filter(|text| !text.is_empty());
        let text = text.map(|text| json!({"type": "text", "text": text}));
        let picture = |url| json!({"type": "image_url", "image_url": {"url": url}});
        text.into_iter().chain(self.pictures.iter().map(picture)).collect()
    }
}

fn joined(one: &str, other: &str) -> String {
    match (one.trim_end(), other.trim()) {
        ("", other) => other.to_owned(),
        (one, "") => one.to_owned(),
        (one, _) => format!("{one}\n\n{}", other.trim_end()),
    }
}

/// A text between fences that are longer than any in it.
fn fenced(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn picture(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    PICTURES.iter().find(|(first, _)| bytes.starts_with(first)).map(|(_, kind)| *kind)
}

fn from_standard_input() -> anyhow::Result<String> {
    let bytes = bounded(stdin().lock(), LONGEST).context("standard input cannot be read")?;
    String::from_utf8(bytes).context("what came from standard input is no text in UTF-8")
}

fn bounded(from: impl Read, longest: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        bail!("it is longer than {} MiB", longest >> 20);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        (directory, path)
    }

    #[test]
    fn a_text_stands_with_its_name_after_the_question() {
        let (_directory, path) = file("notes.md", b"a ``` b\n");
        let mut question = Question::new("why?\n");
        question.add(&path).unwrap();
        assert_eq!(question.content(), "why?\n\nnotes.md:\n\n````\na ``` b\n````");
    }

    #[test]
    fn a_picture_is_a_part_of_its_own() {
        let (_directory, path) = file("a.bin", b"\x89PNG\r\n\x1a\nrest");
        let mut question = Question::default();
        question.add(&path).unwrap();
        let content = question.preceded_by("what is it?").content();
        let url = "data:image/png;base64,iVBORw0KGgpyZXN0";
        let expected = json!([
            {"type": "text", "text": "what is it?"},
            {"type": "image_url", "image_url": {"url": url}},
        ]);
        assert_eq!(content, expected);
        assert_eq!(picture(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
    }

    #[test]
    fn what_is_neither_is_refused() {
        let (_directory, path) = file("a.zip", b"PK\x03\x04\xff\xfe");
        let error = Question::default().add(&path).unwrap_err().to_string();
        assert!(error.contains("neither a picture"), "{error}");
        assert!(Question::default().add(Path::new("/none/such")).is_err());
    }

    #[test]
    fn more_than_the_longest_is_refused_and_not_cut() {
        assert_eq!(bounded(&b"abc"[..], 3).unwrap(), b"abc");
        assert!(bounded(&b"abcd"[..], 3).is_err());
    }
}
