//! Rules about fuzz targets: each has seeds to begin with, and stands in the table of `fuzz/README.md`.

use anyhow::Result;

use crate::{soak, workspace::Workspace};

/// Names every target without a seed or without its line in the table.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let page = workspace.read("fuzz/README.md")?;
    let seeds = workspace.files(&["fuzz/corpus"], "")?;
    let targets = soak::fuzz_targets(&workspace.read("fuzz/Cargo.toml")?);
    Ok(targets.iter().flat_map(|target| broken_rules(target, &page, &seeds)).collect())
}

fn broken_rules(target: &str, page: &str, seeds: &[String]) -> impl Iterator<Item = String> {
    let place = format!("fuzz/corpus/{target}/seed-");
    let has_seed = seeds.iter().any(|seed| seed.starts_with(&place));
    let is_listed = page.contains(&format!("`{target}`"));
    let missing = (!has_seed).then(|| format!("{place}*: the fuzz target has no seed"));
    let unlisted = (!is_listed).then(|| format!("fuzz/README.md: {target} is not in the table"));
    missing.into_iter().chain(unlisted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_seed_and_a_line_in_the_table() {
        let broken =
            |target| broken_rules(target, "| `a` |", &["fuzz/corpus/a/seed-1".into()]).count();
        assert_eq!(broken("a"), 0);
        assert_eq!(broken("b"), 2);
    }
}
