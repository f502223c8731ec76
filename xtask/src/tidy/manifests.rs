//! Rules about the crates' manifests: what all share stands once, at the root.

use anyhow::Result;

use crate::workspace::Workspace;

/// The fields that every crate takes from the workspace.
const INHERITED: [&str; 6] = [
    "version.workspace = true",
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
    "publish.workspace = true",
    "[lints]\nworkspace = true",
];

/// Names every manifest that breaks a rule. `fuzz/` is a workspace of its own.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in workspace.files(&["crates", "xtask", "benches"], "Cargo.toml")? {
        let text = workspace.read(&path)?;
        findings.extend(broken_rules(&path, &text).map(|rule| format!("{path}: {rule}")));
    }
    Ok(findings)
}

fn broken_rules<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let lines = format!("\n{text}");
    let missing = INHERITED.iter().filter(move |line| !lines.contains(&format!("\n{line}\n")));
    let directory = path.rsplit('/').nth(1).unwrap_or_default();
    let named = text.contains(&format!("name = \"{directory}\""));
    let described = text.contains("\ndescription = \"");
    missing
        .map(|line| format!("lacks {}", line.replace('\n', " ")))
        .chain((!named).then(|| "a crate is named as its directory".to_owned()))
        .chain((!described).then(|| "lacks a description".to_owned()))
        .chain(own_versions(text))
}

/// Dependencies whose version or path is not the workspace's.
fn own_versions(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut in_dependencies = false;
    text.lines().filter_map(move |line| {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
        }
        let depends = in_dependencies && line.contains(" = ") && !line.starts_with('#');
        (depends && !line.contains("workspace = true"))
            .then(|| format!("a dependency of its own: {line}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> String {
        format!("[package]\nname = \"a\"\ndescription = \"A\"\n{}\n", INHERITED.join("\n"))
    }

    fn broken(text: &str) -> Vec<String> {
        broken_rules("crates/a/Cargo.toml", text).collect()
    }

    #[test]
    fn a_good_manifest_passes() {
        let with = "\n[dependencies]\nbase.workspace = true\nx = { workspace = true }\n";
        assert!(broken(&(good() + with)).is_empty());
    }

    #[test]
    fn every_rule_is_found_broken() {
        for line in INHERITED {
            let without = good().replace(&format!("\n{line}\n"), "\n");
            assert_eq!(broken(&without).len(), 1, "{line}");
        }
        assert_eq!(broken(&good().replace("name = \"a\"", "name = \"b\"")).len(), 1);
        assert_eq!(broken(&good().replace("\ndescription", "\nsaying")).len(), 1);
        assert_eq!(broken(&(good() + "[dev-dependencies]\nx = \"1\"\n")).len(), 1);
    }
}
