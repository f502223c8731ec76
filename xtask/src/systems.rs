//! Do only the listed files ask which system they are built for?

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// How the heading row of the table in ARCHITECTURE.md begins.
const HEADING: &str = "| Asks which system it is built for |";
/// By these words it is asked; of `cfg` and `cfg!`.
const WORDS: [&str; 4] = ["target_os", "target_family", "unix", "windows"];
/// Where a file's tests begin: they may ask.
const TESTS: &str = "#[cfg(test)]\nmod ";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let listed = listed(&workspace.read("ARCHITECTURE.md")?)?;
    let mut asking = BTreeSet::new();
    for path in workspace.files(&["crates"], ".rs")? {
        if is_source(&path) && asks(&workspace.read(&path)?) {
            asking.insert(path);
        }
    }
    let unlisted = asking.difference(&listed).map(|path| format!("{path} asks and is not listed"));
    let idle = listed.difference(&asking).map(|path| format!("{path} is listed and does not ask"));
    let wrong: Vec<String> = unlisted.chain(idle).collect();
    if !wrong.is_empty() {
        bail!("the table of systems in ARCHITECTURE.md is wrong:\n  {}", wrong.join("\n  "));
    }
    println!("layers: {} files ask which system they are built for", listed.len());
    Ok(())
}

/// The files of the table, by their paths from the root.
fn listed(text: &str) -> Result<BTreeSet<String>> {
    let after = text.split_once(HEADING).context("ARCHITECTURE.md has no table of systems")?.1;
    let rows = after.lines().skip(2).take_while(|line| line.starts_with('|'));
    let path =
        |line: &str| Some(format!("crates/{}", line.strip_prefix("| `")?.split_once('`')?.0));
    rows.map(|line| path(line).with_context(|| format!("no file in the row {line}"))).collect()
}

fn is_source(path: &str) -> bool {
    path.contains("/src/") && !path.ends_with("/tests.rs") && !path.contains("/tests/")
}

/// Whether the text, without its tests, has a `cfg` of the system.
fn asks(text: &str) -> bool {
    let own = text.split_once(TESTS).map_or(text, |(own, _)| own);
    let conditions = own.split("cfg").skip(1).filter_map(|after| {
        let inner = ["(", "!(", "_attr("].iter().find_map(|open| after.strip_prefix(open))?;
        Some(inner.split_once(['\n', ']', '{']).map_or(inner, |(condition, _)| condition))
    });
    let mut words =
        conditions.flat_map(|inner| inner.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_asks_only_where_the_table_says() {
        if let Err(error) = run(&Workspace::here()) {
            panic!("{error:?}");
        }
    }

    #[test]
    fn every_form_of_the_question_is_found() {
        for text in [
            "#[cfg(target_os = \"linux\")]\nfn a() {}",
            "#[cfg(all(unix, feature = \"a\"))]\nfn a() {}",
            "if cfg!(windows) {",
            "#[cfg_attr(not(unix), expect(unused))]\nfn a() {}",
        ] {
            assert!(asks(text), "{text}");
        }
        for text in [
            "#[cfg(target_env = \"gnu\")]\nfn a() {}",
            "#[cfg(feature = \"postgres\")]\nuse std::os::unix::fs::FileExt;",
            "//! A window's size; on unix.",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    #[cfg(unix)]\n",
        ] {
            assert!(!asks(text), "{text}");
        }
    }

    #[test]
    fn a_row_names_a_file() {
        let text = format!("{HEADING} Why |\n| --- |\n| `a/src/b.rs` | `c` |\nrest");
        assert!(listed(&text).unwrap().iter().eq(["crates/a/src/b.rs"]));
        assert!(listed("no table").is_err());
        assert!(listed(&text.replace('`', "")).is_err());
    }
}
