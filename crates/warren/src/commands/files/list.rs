//! `warren files ls`.

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
pub(super) struct Ls {
    /// The directory
    #[arg(value_name = "PROJECT[:PATH]")]
    path: ProjectPath,
    #[command(flatten)]
    output: Output,
}

impl Ls {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let (mut workspace, project) = find(&self.output.place, file, &self.path).await?;
        let entries = workspace.list_files(project, &self.path.path).await?;
        if self.output.json {
            return Ok(say_json(&json!({"entries": entries}))?);
        }
        if entries.is_empty() {
            return Ok(());
        }
        let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
        Ok(say(&table(&["name", "size"], &rows, 1))?)
    }
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
