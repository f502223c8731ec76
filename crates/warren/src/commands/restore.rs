//! `warren restore`: a server's data out of a backup.

use std::path::PathBuf;

use clap::Args;
use daemon::{
    ConfigFile,
    backup::{Contents, Restoration, check, restore},
};
use serde_json::json;

use super::{
    backup::SHARED,
    note, say, say_json,
    servers::Lookup,
    table::{plain, table},
    words,
};

/// Restore a server's data from a file of `warren backup`; the server must not run
///
/// The file is read and checked as a whole first. Models in the data directory stay.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren restore warren.tar.gz --check\n  warren restore warren.tar.gz --data-dir /var/lib/warren\n  \
warren restore warren.tar.gz --force       (moves the data that is there aside)"
)]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// The data directory to restore into [default: as for `warren serve`]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Move the data that is there aside, into a directory beside the new one
    #[arg(long)]
    force: bool,
    /// Check the file, and write nothing
    #[arg(long, conflicts_with_all = ["force", "list"])]
    check: bool,
    /// Check the file, and list what is in it
    #[arg(long, conflicts_with = "force")]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Restore {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        if self.check || self.list {
            return self.look();
        }
        let lookup = Lookup { named: &[], data_dir: self.data_dir.as_ref(), config: &file.serve };
        let restored = restore(&self.from, &lookup.directory()?, self.force)?;
        match self.json {
            true => say_json(&json!({
                "data_dir": restored.data_dir, "before": restored.before,
                "outside": restored.outside, "contents": restored.contents,
            }))?,
            false => say(&readable(&restored, file))?,
        }
        if has_shared(&restored.contents) {
            note(SHARED);
        }
        Ok(())
    }

    fn look(&self) -> anyhow::Result<()> {
        let contents = check(&self.from)?;
        match (self.json, self.list) {
            (true, _) => say_json(&contents)?,
            (false, true) => say(&listed(&contents))?,
            (false, false) => say(&format!("{} It is whole.", made(&contents)))?,
        }
        Ok(())
    }
}

/// Whether the server shared its keys and its usage with others.
fn has_shared(contents: &Contents) -> bool {
    contents.files.iter().any(|file| file.path == "data/shared.db")
}

fn made(contents: &Contents) -> String {
    let (head, count) = (&contents.head, contents.files.len());
    let (version, at) = (plain(&head.version), plain(&head.made_at));
    format!("A backup of {at}, made by Warren {version}: {count} files.")
}

fn listed(contents: &Contents) -> String {
    let row = |file: &daemon::backup::FileEntry| vec![plain(&file.path), words::bytes(file.bytes)];
    let rows: Vec<Vec<String>> = contents.files.iter().map(row).collect();
    format!("{}\n\n{}", made(contents), table(&["file", "size"], &rows, 0))
}

fn readable(restored: &Restoration, file: &ConfigFile) -> String {
    let Restoration { data_dir, contents, before, outside } = restored;
    let mut lines = vec![made(contents), format!("Restored into {}.", data_dir.display())];
    if let Some(before) = before {
        let before = before.display();
        lines.push(format!("The data of before is in {before}: remove it when all is well."));
    }
    if let Some(outside) = outside {
        let outside = outside.display();
        lines.push(format!(
            "Files that were elsewhere are in {outside}: put them where they belong."
        ));
    }
    if let Some(workspace) = &file.serve.workspace.dir {
        let (own, workspace) = (data_dir.join("workspace"), workspace.display());
        lines.push(format!(
            "The configuration has the workspace at {workspace}: move {} there.",
            own.display()
        ));
    }
    lines.push(
        "Never run two servers from one backup at once: they would be the same node.".to_owned(),
    );
    lines.join("\n")
}
