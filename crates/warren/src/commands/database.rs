//! `warren database`: the PostgreSQL that several servers share.

use std::path::PathBuf;

use base::Secret;
use clap::{Args, Subcommand};
use daemon::{
    ConfigFile,
    database::{ImportCounts, Taken, import},
    options::heading,
    settings::data_dir,
};
use serde_json::json;

use super::{say, say_json, words::count};
use crate::exit::usage;

#[derive(Subcommand)]
pub(crate) enum Database {
    /// Take the keys, open invitations, sign-ins, usage and audit log of a stopped server's own file along into the
    /// database. What is there already stays, so twice is the same as once
    #[command(after_help = "Examples:\n  \
        warren database import --dry-run\n  \
        warren database import --data-dir /var/lib/warren")]
    Import(Import),
}

#[derive(Args)]
pub(crate) struct Import {
    /// Say what would be taken along, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The data directory of the stopped server
    #[arg(long, env = "WARREN_DATA_DIR", value_name = "DIR", help_heading = heading::SERVER)]
    data_dir: Option<PathBuf>,
    /// The database that it is going to share with others
    #[arg(long, env = "WARREN_DATABASE", value_name = "URL", hide_env_values = true, help_heading = heading::SERVER)]
    database: Option<Secret>,
}

impl Database {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self {
            Self::Import(import) => import.run(file),
        }
    }
}

impl Import {
    fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let database = self.database.as_ref().or(file.serve.database.as_ref());
        let none = || anyhow::anyhow!("name the database with --database or WARREN_DATABASE");
        let database = database.ok_or_else(none).map_err(usage)?;
        let directory = data_dir(self.data_dir.or_else(|| file.serve.data_dir.clone()))?;
        let imported = import(database, &directory, self.dry_run)?;
        match self.json {
            true => Ok(say_json(&as_json(&imported, self.dry_run))?),
            false => Ok(say(&readable(&imported, self.dry_run))?),
        }
    }
}

fn tables(imported: &ImportCounts) -> [(&'static str, Taken); 5] {
    [
        ("key", imported.keys),
        ("invitation", imported.invitations),
        ("page session", imported.page_sessions),
        ("row of usage", imported.usage),
        ("row of the audit log", imported.audit),
    ]
}

fn as_json(imported: &ImportCounts, is_dry: bool) -> serde_json::Value {
    let taken = |it: Taken| json!({"new": it.new, "known": it.known});
    json!({
        "dry_run": is_dry,
        "keys": taken(imported.keys),
        "invitations": taken(imported.invitations),
        "page_sessions": taken(imported.page_sessions),
        "usage": taken(imported.usage),
        "audit": taken(imported.audit),
    })
}

fn readable(imported: &ImportCounts, is_dry: bool) -> String {
    let done = if is_dry { "would be taken along" } else { "taken along" };
    let line = |(what, taken): (&str, Taken)| {
        let (first, rest) = what.split_once(' ').unwrap_or((what, ""));
        let counted = match rest {
            "" => count(taken.new, first),
            "session" => count(taken.new, what),
            rest => format!("{} {rest}", count(taken.new, first)),
        };
        format!("{counted} {done}, {} there already", taken.known)
    };
    tables(imported).map(line).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_along_is_counted_in_words() {
        let taken = |new, known| Taken { new, known };
        let imported = ImportCounts {
            keys: taken(1, 2),
            invitations: taken(0, 0),
            page_sessions: taken(2, 0),
            usage: taken(30, 4),
            audit: taken(1, 0),
        };
        let words = readable(&imported, true);
        let lines: Vec<&str> = words.lines().collect();
        assert_eq!(lines[0], "1 key would be taken along, 2 there already");
        assert_eq!(lines[2], "2 page sessions would be taken along, 0 there already");
        assert_eq!(lines[3], "30 rows of usage would be taken along, 4 there already");
        assert_eq!(as_json(&imported, false)["usage"]["known"], 4);
    }
}
