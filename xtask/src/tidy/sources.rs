//! Rules about Rust files.

use anyhow::Result;

use crate::workspace::Workspace;

/// The directories that hold our Rust files.
const PLACES: [&str; 4] = ["crates", "xtask", "benches", "fuzz"];
/// The longest that a file of a crate may be, in lines.
const MOST_LINES: usize = 600;
/// Texts that must not be left in a file: words are put together here, so that this one passes.
const LEFT_OVER: [&str; 6] = [
    concat!("#[", "ignore"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("dbg", "!("),
];

/// Names every file that breaks a rule.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in workspace.files(&PLACES, ".rs")? {
        let text = workspace.read(&path)?;
        findings.extend(broken_rules(&path, &text).map(|rule| format!("{path}: {rule}")));
    }
    Ok(findings)
}

fn broken_rules(path: &str, text: &str) -> impl Iterator<Item = String> {
    let mut broken = Vec::new();
    if !opens_with_docs(text) {
        broken.push("does not open with //! what it is for".to_owned());
    }
    if path.contains("/src/") && text.lines().count() > MOST_LINES {
        broken.push(format!("has more than {MOST_LINES} lines"));
    }
    if path.split('/').any(|part| part.starts_with("util")) {
        broken.push("a name like that says nothing".to_owned());
    }
    let left = LEFT_OVER.iter().filter(|word| text.contains(**word));
    broken.extend(left.map(|word| format!("{word} is left over")));
    broken.into_iter()
}

/// Attributes of the whole file may stand before its documentation.
fn opens_with_docs(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("#!["));
    lines.next().is_some_and(|line| line.starts_with("//! "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<String> {
        broken_rules(path, text).collect()
    }

    #[test]
    fn a_good_file_passes() {
        assert!(broken("crates/a/src/lib.rs", "//! What it is for.\n\nfn a() {}\n").is_empty());
        assert!(broken("fuzz/fuzz_targets/a.rs", "#![no_main]\n//! What it is for.\n").is_empty());
    }

    #[test]
    fn every_rule_is_found_broken() {
        let long = format!("//! Long.\n{}", "\n".repeat(MOST_LINES));
        assert_eq!(broken("crates/a/src/lib.rs", &long), ["has more than 600 lines"]);
        assert!(broken("crates/a/tests/long.rs", &long).is_empty());
        assert_eq!(broken("crates/a/src/lib.rs", "fn a() {}\n").len(), 1);
        assert_eq!(broken("crates/a/src/utils.rs", "//! A.\n").len(), 1);
        assert_eq!(broken("crates/a/src/utils/a.rs", "//! A.\n").len(), 1);
        for word in LEFT_OVER {
            assert_eq!(broken("crates/a/src/lib.rs", &format!("//! A.\n{word}")).len(), 1);
        }
    }
}
