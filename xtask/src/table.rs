//! The table of layers in ARCHITECTURE.md: the only authority on which crate may use which.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

/// How the table's heading row begins.
const HEADING: &str = "| Crate | Kind | May use, beside `base` |";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Whether nothing of tokio may be reachable from the crate.
    pub(crate) pure: bool,
    /// The crates of the workspace that it may use, `base` included.
    pub(crate) may_use: BTreeSet<String>,
}

/// Reads the table. Crates that are planned and not there yet may have rows.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Row>> {
    let after = text.split_once(HEADING).context("ARCHITECTURE.md has no table of layers")?.1;
    let rows = after.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut table = BTreeMap::new();
    for line in rows {
        for (name, row) in parse_row(line).with_context(|| format!("in the row {line}"))? {
            ensure!(table.insert(name.clone(), row).is_none(), "{name} has two rows");
        }
    }
    ensure!(!table.is_empty(), "the table of layers is empty");
    Ok(table)
}

fn parse_row(line: &str) -> Result<Vec<(String, Row)>> {
    let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [crates, kind, uses] = cells.as_slice() else { bail!("a row has three cells") };
    let mut may_use = if *uses == "nothing" { BTreeSet::new() } else { names(uses)? };
    let row = |name: String| {
        if name != "base" {
            may_use.insert("base".to_owned());
        }
        (name, Row { pure: *kind == "pure", may_use: may_use.clone() })
    };
    Ok(names(crates)?.into_iter().map(row).collect())
}

/// Names in back quotes, separated by commas.
fn names(cell: &str) -> Result<BTreeSet<String>> {
    cell.split(',').map(|word| name(word.trim())).collect()
}

fn name(word: &str) -> Result<String> {
    let bare = word.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    Ok(bare.with_context(|| format!("{word} is no crate in back quotes"))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &str) -> Result<BTreeMap<String, Row>> {
        parse(&format!("before\n\n{HEADING}\n| --- | --- | --- |\n{rows}\nafter | no row |\n"))
    }

    #[test]
    fn a_row_may_stand_for_several_crates() {
        let table = table("| `a`, `b` | pure | nothing |\n| `c` | shell | `a`, `b` |\n").unwrap();
        assert_eq!(table.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(table["a"].pure && !table["c"].pure);
        assert!(table["c"].may_use.iter().eq(["a", "b", "base"]));
    }

    #[test]
    fn base_does_not_use_itself() {
        assert!(table("| `base` | pure | nothing |\n").unwrap()["base"].may_use.is_empty());
    }

    #[test]
    fn a_malformed_table_is_an_error() {
        assert!(parse("no table").is_err());
        assert!(table("").is_err());
        assert!(table("| `a` | pure |\n").is_err());
        assert!(table("| a | pure | nothing |\n").is_err());
        assert!(table("| `a` | pure | all of the above |\n").is_err());
        assert!(table("| `a` | pure | nothing |\n| `a` | pure | nothing |\n").is_err());
    }
}
