//! `warren backup`: a server's data in one file.

use std::path::{Path, PathBuf};

use clap::Args;
use daemon::{
    ConfigFile, ServerFile,
    backup::{Backup as Made, NOT_IN_IT, Source, backup},
};
use serde_json::json;

use super::{note, say, say_json, servers::Lookup, words};

/// Save a server's data in one file, also while the server runs
///
/// The file has secrets: keep it as private as the data directory.
#[derive(Args)]
#[command(
    after_help = "In it: the databases, tokens, secrets and the node's key, the output of sessions, and the configuration and \
the certificate with its key, as far as the configuration names them. Not in it: models, and files of agents and projects.\n\n\
Examples:\n  warren backup warren.tar.gz\n  warren backup /backup --data-dir /var/lib/warren\n  warren restore warren.tar.gz --check"
)]
pub(crate) struct Backup {
    /// The file to write, or a directory in which it gets a name with the time
    #[arg(value_name = "FILE")]
    to: PathBuf,
    /// The server's data directory [default: as for `warren serve`]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Leave the output of terminals and agents out
    #[arg(long)]
    no_history: bool,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let source = self.source(file)?;
        let made = backup(&source, &self.to, self.force)?;
        let shares = made.shares || file.serve.database.is_some();
        match self.json {
            true => say_json(&json!({
                "file": made.path, "bytes": made.bytes, "running": made.running,
                "shares": shares, "contents": made.contents,
            }))?,
            false => say(&readable(&made, &source.data_dir))?,
        }
        if shares {
            note(SHARED);
        }
        Ok(())
    }

    fn source(&self, file: &ConfigFile) -> anyhow::Result<Source> {
        let serve = &file.serve;
        let lookup = Lookup { named: &[], data_dir: self.data_dir.as_ref(), config: serve };
        let data_dir = lookup.directory()?;
        let certificate = serve.tls_cert.clone();
        let shown = || ServerFile::of(&data_dir).and_then(|server| server.certificate);
        let certificate = certificate.or_else(shown);
        let outside = [file.path.clone(), certificate, serve.tls_key.clone()];
        let workspace_dir = serve.workspace.dir.clone();
        let outside = outside.into_iter().flatten().collect();
        Ok(Source { data_dir, workspace_dir, outside, history: !self.no_history })
    }
}

/// The note about data that is not in the file.
pub(super) const SHARED: &str = "Note: keys, usage and the audit log are in the PostgreSQL database that servers share, and not in this \
file. Save them with `pg_dump --schema=warren`, restore them with `psql`.";

fn readable(made: &Made, data_dir: &Path) -> String {
    let Made { path, bytes, contents, running, .. } = made;
    let of = if *running { "a server that runs" } else { "a stopped server" };
    format!(
        "Saved {} of {of}: {} files, {}, in {}\nNot in it: {NOT_IN_IT}.\nIt has secrets: only its owner can read it. Keep it so.",
        data_dir.display(),
        contents.files.len(),
        words::bytes(*bytes),
        path.display(),
    )
}
