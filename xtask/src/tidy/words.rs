//! Phrases that a comment or a page does without, since they have to be read twice.

use anyhow::Result;

use crate::workspace::Workspace;

/// Each with a plainer way to say it. The phrases are put together here, so that this file passes.
const PHRASES: [(&str, &str); 16] = [
    (concat!("who", "ever "), "name the subject: the client, the caller, a user"),
    (concat!("of ", "whom "), "name them, or `of which`"),
    (concat!(" an", "ew "), "again, or `rebuilt`"),
    (concat!("for so ", "long "), "for this long, or name the time"),
    (concat!("to the one ", "that "), "name it"),
    (concat!("that is to ", "be "), "the next, the planned, the wanted"),
    (concat!("as it was ", "told "), "as configured, as reported"),
    (concat!(" told ", "of "), "reported, announced, listed"),
    (concat!(" tells ", "of "), "reports, describes, shows"),
    (concat!(" told ", "again "), "repeated, reported again"),
    (concat!(" told ", "once "), "reported once, shown once"),
    (concat!(" told ", "in "), "written, reported in"),
    (concat!(" told ", "with "), "reported with, given with"),
    (concat!(" told ", "at once "), "reported, announced at once"),
    (concat!(" told ", "on "), "printed, passed on"),
    (concat!(" for ", "who "), "name them: for a caller, for the sender"),
];

/// Openers of a doc comment, each with a plainer way to begin.
const OPENERS: [(&str, &str); 2] = [
    (concat!("Wh", "o "), "name the subject: the client, the identity, the rights"),
    (concat!("Wh", "at "), "name the thing: the state, the rest, the content"),
];

/// A phrase that is plain beside some words alone.
struct Conditional {
    phrase: &'static str,
    /// The word before that makes it plain.
    after: Option<&'static str>,
    /// The words later in the line that make it plain.
    before: &'static [&'static str],
    plain: &'static str,
}

const CONDITIONALS: [Conditional; 4] = [
    Conditional::without_there(concat!(" is ", "none ")),
    Conditional::without_there(concat!(" are ", "none ")),
    Conditional::without_comparison(concat!(" so ", "many ")),
    Conditional::without_comparison(concat!(" so ", "much ")),
];

impl Conditional {
    const fn without_there(phrase: &'static str) -> Self {
        let plain = "name the thing that it is not; `there is none` is plain";
        Self { phrase, after: Some(" there"), before: &[], plain }
    }

    const fn without_comparison(phrase: &'static str) -> Self {
        let plain = "`count`, the number of; so many that, so many as, are plain";
        Self { phrase, after: None, before: &[" that ", " as "], plain }
    }

    fn stands_in(&self, words: &str) -> bool {
        words.match_indices(self.phrase).any(|(at, _)| {
            let (before, after) = (&words[..at], &words[at + self.phrase.len() - 1..]);
            !self.after.is_some_and(|word| before.ends_with(word))
                && !self.before.iter().any(|word| after.contains(word))
        })
    }
}

/// Names every line with such a phrase: of comments in Rust, of the book, and of the pages about the code.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in workspace.files(&["crates", "xtask", "benches", "fuzz"], ".rs")? {
        let text = workspace.read(&path)?;
        let comments = text.lines().map(|line| line.find("//").map_or("", |at| &line[at..]));
        findings.extend(unclear(&path, comments));
        findings.extend(badly_opened(&path, text.lines()));
        findings.extend(changing_predicates(&path, text.lines()));
    }
    let mut pages = workspace.files(&["docs"], ".md")?;
    pages.push("ARCHITECTURE.md".to_owned());
    for path in pages {
        findings.extend(unclear(&path, workspace.read(&path)?.lines()));
    }
    Ok(findings)
}

fn unclear<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines) {
        // Punctuation ends a word as a blank does.
        let words = format!(" {} ", line.to_lowercase().replace([',', '.', ':', ';', ')'], " "));
        let phrases = PHRASES.iter().filter(|(phrase, _)| words.contains(phrase));
        found.extend(phrases.map(|phrase| finding(path, number, phrase)));
        let conditionals = CONDITIONALS.iter().filter(|conditional| conditional.stands_in(&words));
        found.extend(conditionals.map(|it| finding(path, number, &(it.phrase, it.plain))));
    }
    found
}

/// Names every documentation that begins with one of the openers in its first line. A line without a full stop is
/// the help text of an argument, which may be a question.
fn badly_opened<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut found, mut has_begun) = (Vec::new(), false);
    for (number, line) in (1..).zip(lines) {
        let line = line.trim_start();
        let words = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let is_first = !std::mem::replace(&mut has_begun, words.is_some());
        let Some(words) = words.filter(|words| is_first && has_sentence(words)) else { continue };
        let openers = OPENERS.iter().filter(|(opener, _)| words.trim_start().starts_with(opener));
        found.extend(openers.map(|opener| finding(path, number, opener)));
    }
    found
}

fn has_sentence(words: &str) -> bool {
    words.contains(". ") || words.ends_with('.')
}

/// Names every predicate that changes its value: `is_…` and `has_…` are questions, which leave it as it is.
fn changing_predicates<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let changing = (1..).zip(lines).filter(|(_, line)| {
        let name = line.split_once("fn ").map_or("", |(_, name)| name);
        let is_predicate = name.starts_with("is_") || name.starts_with("has_");
        is_predicate && name.split_once('(').is_some_and(|(_, rest)| rest.starts_with("&mut self"))
    });
    changing.map(|(number, _)| format!("{path}:{number}: a predicate takes `&self`")).collect()
}

fn finding(path: &str, number: usize, (phrase, plain): &(&str, &str)) -> String {
    format!("{path}:{number}: \"{}\": {plain}", phrase.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unclear_phrase_is_named_with_its_line() {
        for (bad, _) in PHRASES {
            let second = format!("It is,{}.", bad.trim_end().to_uppercase());
            let found = unclear("a.md", ["A client asks.", &second].into_iter());
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("a.md:2: "), "{found:?}");
        }
    }

    #[test]
    fn a_phrase_that_needs_other_words_is_named_without_them() {
        for Conditional { phrase, .. } in CONDITIONALS {
            let bad = unclear("a.md", [format!("It{phrase}x.").as_str()].into_iter());
            assert_eq!(bad.len(), 1, "{phrase}: {bad:?}");
        }
        let plain = ["if there is NEXT.", "there are NEXT now", "so MUCH that it waits"];
        let plain = plain.map(|line| line.replace("NEXT", "none").replace("MUCH", "much"));
        let found = unclear("a.md", plain.iter().map(String::as_str));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_predicate_that_changes_its_value_is_named() {
        let bad = ["fn MARKx(&mut self) {", "    pub async fn MARKx(&mut self, at: u8)"];
        let fine = ["fn MARKx(&self) {", "fn MARKx(of: &mut Of) {", "fn take_MARKx(&mut self) {"];
        for mark in ["is_", "has_"] {
            let lines = bad.iter().chain(&fine).map(|line| line.replace("MARK", mark));
            let lines: Vec<String> = lines.collect();
            let found = changing_predicates("a.rs", lines.iter().map(String::as_str));
            assert_eq!(found.len(), bad.len(), "{found:?}");
            assert!(found[0].starts_with("a.rs:1: ") && found[1].starts_with("a.rs:2: "));
        }
    }

    #[test]
    fn documentation_that_opens_unclearly_is_named_unless_it_is_a_help_text() {
        let lines = [
            "x.",
            "//! NEXT it is.",
            "//! NEXT follows.",
            "",
            "    /// NEXT is it",
            "x",
            "    /// NEXT it is.",
            "// NEXT.",
        ];
        for (opener, _) in OPENERS {
            let opened = lines.map(|line| line.replace("NEXT ", opener));
            let found = badly_opened("a.rs", opened.iter().map(String::as_str));
            assert_eq!(found.len(), 2, "{found:?}");
            let at = [&found[0], &found[1]].map(|finding| finding.split(':').nth(1).unwrap());
            assert_eq!(at, ["2", "7"], "{found:?}");
        }
    }
}
