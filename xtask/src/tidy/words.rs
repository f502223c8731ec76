//! Phrases that a comment or a page does without, since they have to be read twice.

use anyhow::Result;

use crate::workspace::Workspace;

/// Each with a plainer way to say it. The phrases are put together here, so that this file passes.
const PHRASES: [(&str, &str); 14] = [
    (concat!("who", "ever "), "name the subject: the client, the caller, a user"),
    (concat!("of ", "whom "), "name them, or `of which`"),
    (concat!(" an", "ew "), "again, or `rebuilt`"),
    (concat!("for so ", "long "), "for this long, or name the time"),
    (concat!("to the one ", "that "), "name it"),
    (concat!("that is to ", "be "), "the next, the planned, the wanted"),
    (concat!("as it was ", "told "), "as configured, as reported"),
    (concat!("until so ", "many "), "until `count`"),
    (concat!(" told ", "of "), "reported, announced, listed"),
    (concat!(" tells ", "of "), "reports, describes, shows"),
    (concat!(" for ", "who "), "name them: for a caller, for the sender"),
    (concat!(" that is ", "none "), "name the thing that it is not"),
    (concat!(" that are ", "none "), "name the thing that they are not"),
    (concat!(" which is ", "none "), "name the thing that it is not"),
];

/// Openers of a doc comment, each with a plainer way to begin.
const OPENERS: [(&str, &str); 1] =
    [(concat!("Wh", "o "), "name the subject: the client, the identity, the rights")];

/// Names every line with such a phrase: of comments in Rust, of the book, and of the pages about the code.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in workspace.files(&["crates", "xtask", "benches", "fuzz"], ".rs")? {
        let text = workspace.read(&path)?;
        let comments = text.lines().map(|line| line.find("//").map_or("", |at| &line[at..]));
        findings.extend(unclear(&path, comments));
        findings.extend(badly_opened(&path, text.lines()));
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
        let words = line.to_lowercase().replace([',', '.', ':', ';', ')'], " ") + " ";
        let phrases = PHRASES.iter().filter(|(phrase, _)| words.contains(phrase));
        found.extend(phrases.map(|phrase| finding(path, number, phrase)));
    }
    found
}

/// Names every line of documentation that begins with one of the openers. A line without a full stop is
/// the help text of an argument, which may be a question.
fn badly_opened<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let line = line.trim_start();
        let words = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        let Some(words) = words.filter(|words| words.contains('.')) else { continue };
        let openers = OPENERS.iter().filter(|(opener, _)| words.starts_with(opener));
        found.extend(openers.map(|opener| finding(path, number, opener)));
    }
    found
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
    fn documentation_that_opens_unclearly_is_named_unless_it_is_a_help_text() {
        let lines =
            ["x.", "//! NEXT it is.", "    /// NEXT is it", "    /// NEXT it is.", "// NEXT."];
        let opened = lines.map(|line| line.replace("NEXT ", OPENERS[0].0));
        let found = badly_opened("a.rs", opened.iter().map(String::as_str));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a.rs:2: ") && found[1].starts_with("a.rs:4: "), "{found:?}");
    }
}
