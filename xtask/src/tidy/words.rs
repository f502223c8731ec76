//! Phrases that a comment or a page does without, since they have to be read twice.

use anyhow::Result;

use crate::workspace::Workspace;

/// Each with a plainer way to say it. The phrases are put together here, so that this file passes.
const PHRASES: [(&str, &str); 8] = [
    (concat!("who", "ever "), "name the subject: the client, the caller, a user"),
    (concat!("of ", "whom "), "name them, or `of which`"),
    (concat!(" an", "ew "), "again, or `rebuilt`"),
    (concat!("for so ", "long "), "for this long, or name the time"),
    (concat!("to the one ", "that "), "name it"),
    (concat!("that is to ", "be "), "the next, the planned, the wanted"),
    (concat!("as it was ", "told "), "as configured, as reported"),
    (concat!("until so ", "many "), "until `count`"),
];

/// Names every line with such a phrase: of comments in Rust, and of the book.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in workspace.files(&["crates", "xtask", "benches", "fuzz"], ".rs")? {
        let text = workspace.read(&path)?;
        let comments = text.lines().map(|line| line.find("//").map_or("", |at| &line[at..]));
        findings.extend(unclear(&path, comments));
    }
    for path in workspace.files(&["docs/src"], ".md")? {
        findings.extend(unclear(&path, workspace.read(&path)?.lines()));
    }
    Ok(findings)
}

fn unclear<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines) {
        // Punctuation ends a word as a blank does.
        let words = line.to_lowercase().replace([',', '.', ':', ';', ')'], " ") + " ";
        let phrases = PHRASES.iter().filter(|(phrase, _)| words.contains(phrase));
        let say = |(phrase, plain): &(&str, &str)| {
            format!("{path}:{number}: \"{}\": {plain}", phrase.trim())
        };
        found.extend(phrases.map(say));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unclear_phrase_is_named_with_its_line() {
        let bad = PHRASES[0].0;
        let lines =
            ["A client asks.".to_owned(), format!("{}, that is.", bad.trim().to_uppercase())];
        let found = unclear("a.md", lines.iter().map(String::as_str));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a.md:2: "), "{found:?}");
    }
}
