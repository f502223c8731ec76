//! `warren files ls`.

use std::io::{self, Write};

use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::{FileEntry, FileKind};
use serde_json::json;

use super::{ProjectPath, find};
use crate::commands::{
    say, say_json,
    table::{plain, table},
    words::bytes,
    workspace::Output,
};

/// List a directory
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren files ls site:src")]
pub(super) struct Ls {
    /// The directory
    #[arg(value_name = "PROJECT[:PATH]")]
    path: ProjectPath,
    #[command(flatten)]
    output: Output,
}

impl Ls {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let (mut workspace, project) = find(&self.output.server, file, &self.path).await?;
        let (path, mut part, mut is_first) = (&self.path.path, Some(String::new()), true);
        while let Some(after) = part {
            let (entries, next) = workspace.list_files(project, path, &after).await?;
            match self.output.json {
                true => say_part(&entries, is_first, next.is_none())?,
                false => say_rows(&entries, is_first)?,
            }
            (part, is_first) = (next, false);
        }
        Ok(())
    }
}

/// Prints a part of a directory as a table. Only the first part has a header.
fn say_rows(entries: &[FileEntry], is_first: bool) -> io::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    let table = table(&["name", "size"], &rows, 1);
    match table.split_once('\n').filter(|_| !is_first) {
        Some((_head, rows)) => say(rows),
        None => say(&table),
    }
}

/// Prints a part of a directory as a part of one JSON object, an entry a line.
fn say_part(entries: &[FileEntry], is_first: bool, is_last: bool) -> anyhow::Result<()> {
    if is_first && is_last {
        return Ok(say_json(&json!({"entries": entries}))?);
    }
    let mut out = io::stdout().lock();
    let mut before = if is_first { "{\"entries\": [\n" } else { ",\n" };
    for entry in entries {
        write!(out, "{before}{}", base::plain::escaped(&serde_json::to_string(entry)?))?;
        before = ",\n";
    }
    if is_last {
        writeln!(out, "\n]}}")?;
    }
    Ok(out.flush()?)
}

fn row(entry: &FileEntry) -> Vec<String> {
    let name = plain(&entry.name);
    match entry.kind {
        FileKind::Dir => vec![format!("{name}/"), String::new()],
        FileKind::Symlink => vec![format!("{name}@"), String::new()],
        FileKind::File => vec![name, bytes(entry.size)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entrys_kind_shows_in_its_name() {
        let entry = |kind| FileEntry { name: "a\n".into(), path: "a".into(), kind, size: 2048 };
        assert_eq!(row(&entry(FileKind::Dir)), ["a\u{fffd}/", ""]);
        assert_eq!(row(&entry(FileKind::Symlink)), ["a\u{fffd}@", ""]);
        assert_eq!(row(&entry(FileKind::File)), ["a\u{fffd}", "2.0 KiB"]);
    }
}
