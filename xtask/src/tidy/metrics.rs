//! The metrics that dashboards, alerts and pages name are exported: every one is registered in the code.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::workspace::Workspace;

/// How the name of every metric begins.
const PREFIX: &str = "warren_";

/// How a registry gets the beginning of its metrics' names, and a part of a registry a further piece.
const REGISTRY: &str = "Registry::with_prefix(\"";
const PART: &str = "sub_registry_with_prefix(\"";

/// The endings that are added to a registered name: units, and the parts of counters and histograms.
const ENDINGS: [&str; 6] = ["_total", "_bucket", "_sum", "_count", "_seconds", "_bytes"];

/// Names every metric that is asked for, or described, and that the server does not export.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut exported = BTreeSet::new();
    for path in workspace.files(&["crates/daemon/src"], ".rs")? {
        exported.extend(registered(&workspace.read(&path)?));
    }
    let mut findings = Vec::new();
    for (directory, ending) in [("deploy", ".json"), ("deploy", ".yaml"), ("docs/src", ".md")] {
        for path in workspace.files(&[directory], ending)? {
            findings.extend(unknown(&path, &named(&workspace.read(&path)?), &exported));
        }
    }
    Ok(findings)
}

fn unknown(path: &str, named: &BTreeSet<String>, exported: &BTreeSet<String>) -> Vec<String> {
    let missing = named.iter().filter(|name| !exported.contains(without_endings(name)));
    missing.map(|name| format!("{path} names {name}, which no server exports")).collect()
}

/// The names that a file may register: each word in quotes behind each prefix of its registries. A file without a registry
/// registers nothing.
fn registered(code: &str) -> BTreeSet<String> {
    let parts: Vec<&str> = quoted_after(code, PART).collect();
    let words: Vec<&str> = code.split('"').filter(|piece| is_name(piece)).collect();
    let mut names = BTreeSet::new();
    for prefix in quoted_after(code, REGISTRY) {
        for word in &words {
            names.insert(format!("{prefix}_{word}"));
            names.extend(parts.iter().map(|part| format!("{prefix}_{part}_{word}")));
        }
    }
    names
}

/// The texts in quotes that begin with `opening`.
fn quoted_after<'a>(code: &'a str, opening: &'a str) -> impl Iterator<Item = &'a str> {
    code.split(opening).skip(1).filter_map(|rest| rest.split('"').next())
}

fn is_name(piece: &str) -> bool {
    !piece.is_empty() && piece.chars().all(of_name)
}

fn of_name(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter == '_'
}

/// All metrics that a text names. A name that ends with an underscore stands for several.
fn named(text: &str) -> BTreeSet<String> {
    let ends = text.split(PREFIX).skip(1);
    let ends = ends.map(|rest| rest.chars().take_while(|letter| of_name(*letter)).collect());
    let ends = ends.filter(|end: &String| !end.is_empty() && !end.ends_with('_'));
    ends.map(|end| format!("{PREFIX}{end}")).collect()
}

fn without_endings(name: &str) -> &str {
    let shorter = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    shorter.map_or(name, without_endings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_nobody_exports_is_named() {
        let code = "Registry::with_prefix(\"warren_mesh\"); it.register(\"peers\", \"Peers, all\"); \
                    it.sub_registry_with_prefix(\"relay\")";
        let asked =
            "rate(warren_mesh_peers_bytes_total[5m]) + warren_mesh_relay_peers + warren_mesh_pears";
        let expected = ["a.json names warren_mesh_pears, which no server exports"];
        assert_eq!(unknown("a.json", &named(asked), &registered(code)), expected);
        assert!(registered("it.register(\"peers\")").is_empty());
        assert!(named("`warren_` and `warren_mesh_…`").is_empty());
    }
}
