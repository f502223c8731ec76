//! The checks that make ARCHITECTURE.md a page that is read at one sitting, with the pages that it leads to.

use std::collections::BTreeMap;

use anyhow::Result;

use super::names::paths;
use crate::workspace::Workspace;

/// The page.
const PAGE: &str = "ARCHITECTURE.md";
/// The longest that it may be, in bytes.
const MOST_BYTES: usize = 22_000;
/// The most files with which the answer to a question begins.
const MOST_FILES: usize = 3;
/// How the heading rows of its tables begin.
const WORDS: &str = "| Word | Means | Not |";
const QUESTIONS: &str = "| Question | Begin with |";

/// Names what makes the page long, its pages that it does not lead to, and words with two homes.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let page = workspace.read(PAGE)?;
    let mut findings = too_long(&page);
    let mut words = BTreeMap::new();
    findings.extend(defined_again(PAGE, &page, &mut words));
    for path in workspace.files(&["docs/parts"], ".md")? {
        findings.extend(defined_again(&path, &workspace.read(&path)?, &mut words));
        if !page.contains(&format!("]({path}")) {
            findings.push(format!("{PAGE} does not lead to {path}"));
        }
    }
    Ok(findings)
}

fn too_long(page: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if page.len() > MOST_BYTES {
        let bytes = page.len();
        findings.push(format!("{PAGE} has {bytes} bytes, more than {MOST_BYTES}: what only one part needs goes to docs/parts"));
    }
    let long =
        rows(page, QUESTIONS).filter(|cells| cells.get(1).is_some_and(|it| files(it) > MOST_FILES));
    findings.extend(long.map(|cells| {
        format!("{PAGE}: the answer to \"{}\" begins with more than {MOST_FILES} files", cells[0])
    }));
    findings
}

/// How many files and folders a cell names.
fn files(cell: &str) -> usize {
    let names = cell.split('`').skip(1).step_by(2).filter(|name| name.contains('/'));
    names.map(|name| paths(name).len()).sum()
}

/// Words that a page defines although another one does. `words` has those that are known, each with its page.
fn defined_again(path: &str, text: &str, words: &mut BTreeMap<String, String>) -> Vec<String> {
    let mut findings = Vec::new();
    for cells in rows(text, WORDS) {
        let word = cells.first().copied().unwrap_or_default();
        if let Some(other) = words.insert(word.to_owned(), path.to_owned()) {
            findings.push(format!("{path} defines \"{word}\", which {other} does"));
        }
    }
    findings
}

/// The rows of all tables of a text with this heading, in cells.
fn rows<'a>(text: &'a str, heading: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    text.split(heading).skip(1).flat_map(|table| {
        let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_makes_it_long_is_named() {
        assert_eq!(too_long(&"x".repeat(MOST_BYTES)), [""; 0]);
        assert_eq!(too_long(&"x".repeat(MOST_BYTES + 1)).len(), 1);
        let questions =
            |cell: &str| format!("{QUESTIONS} It |\n| --- | --- | --- |\n| a thing | {cell} | |\n");
        assert_eq!(too_long(&questions("`a/b` (`c`), `d/`, `e/f`")), [""; 0]);
        let found = too_long(&questions("`a/b`, `c/{d,e}`, `g/`"));
        assert_eq!(
            found,
            ["ARCHITECTURE.md: the answer to \"a thing\" begins with more than 3 files"]
        );
    }

    #[test]
    fn pages_without_a_link_and_words_with_two_homes_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let parts = directory.path().join("docs/parts");
        fs::create_dir_all(&parts).unwrap();
        let words = |word: &str| format!("{WORDS}\n| --- | --- | --- |\n| {word} | it | |\n");
        let page = words("job") + "\n[a](docs/parts/a.md#b)\n";
        fs::write(directory.path().join(PAGE), page).unwrap();
        fs::write(parts.join("a.md"), words("task")).unwrap();
        fs::write(parts.join("b.md"), words("job")).unwrap();
        let expected = [
            "docs/parts/b.md defines \"job\", which ARCHITECTURE.md does",
            "ARCHITECTURE.md does not lead to docs/parts/b.md",
        ];
        assert_eq!(check(&Workspace::at(directory.path())).unwrap(), expected);
    }
}
