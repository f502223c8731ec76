//! The content of a backup. It is a fixed list, so that no file gets into a backup unnoticed.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use crate::data::{
    ADMIN_TOKEN, CLIENT_TOKEN, DATABASE, MESH_KEY, MESH_PROOFS, SERVER_ID, WORKER_SECRET,
};
use crate::stores::SHARED;

/// The databases. They are copied by SQLite.
pub(super) const DATABASES: [&str; 2] = [DATABASE, SHARED];

/// Small files of the data directory.
const FILES: [&str; 6] =
    [ADMIN_TOKEN, CLIENT_TOKEN, WORKER_SECRET, SERVER_ID, MESH_KEY, MESH_PROOFS];

/// The workspace's directory, if it is in the data directory, and its name in a backup in any case.
const WORKSPACE: &str = "workspace";
/// The file of the workspace's id.
const WORKSPACE_FILES: &str = "node.id";
/// The directory with the output of the workspace's sessions.
const HISTORY: &str = "history";

/// The content that no backup has, in words for people.
pub const NOT_IN_IT: &str =
    "models and model engines, files that agents keep for themselves, the projects' own files";

/// Where a server's data is.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The data directory.
    pub data_dir: PathBuf,
    /// The workspace's directory, if it is elsewhere.
    pub workspace_dir: Option<PathBuf>,
    /// Files elsewhere: the configuration, the certificate and its key.
    pub outside: Vec<PathBuf>,
    /// Whether the backup has the output of sessions.
    pub history: bool,
}

/// A file for a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackupFile {
    /// Its path in the archive.
    pub(super) name: String,
    /// Where it is.
    pub(super) path: PathBuf,
}

impl Source {
    /// The files beside the databases, without those that are missing.
    pub(super) fn files(&self) -> io::Result<Vec<BackupFile>> {
        let mut all: Vec<BackupFile> = FILES.iter().map(|name| self.of_data(name)).collect();
        let workspace = self.workspace_dir.clone();
        let workspace = workspace.unwrap_or_else(|| self.data_dir.join(WORKSPACE));
        let below = |path: &str| format!("data/{WORKSPACE}/{path}");
        all.push(BackupFile {
            name: below(WORKSPACE_FILES),
            path: workspace.join(WORKSPACE_FILES),
        });
        if self.history {
            add_below(&workspace.join(HISTORY), &below(HISTORY), &mut all)?;
        }
        all.extend(self.outside_files());
        all.retain(|wanted| wanted.path.is_file());
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// The files elsewhere. Two of one name get different ones: such as the certificate and its key, each called
    /// `server.pem` in a directory of its own.
    fn outside_files(&self) -> Vec<BackupFile> {
        let mut all: Vec<BackupFile> = Vec::new();
        for path in self.outside.iter().filter(|path| path.is_file()) {
            let own = path.file_name().and_then(OsStr::to_str);
            let Some(own) = own.filter(|_| all.iter().all(|other| other.path != *path)) else {
                continue;
            };
            let mut names = (1_u32..).map(|number| match number {
                1 => format!("outside/{own}"),
                _ => format!("outside/{number}-{own}"),
            });
            let is_free = |name: &String| all.iter().all(|other| other.name != *name);
            let path = path.clone();
            all.extend(names.find(is_free).map(|name| BackupFile { name, path }));
        }
        all
    }

    fn of_data(&self, name: &str) -> BackupFile {
        BackupFile { name: format!("data/{name}"), path: self.data_dir.join(name) }
    }
}

/// Adds the regular files below a directory. Links are not followed. Files that disappear meanwhile are left out.
fn add_below(directory: &Path, name: &str, into: &mut Vec<BackupFile>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        let Some(name) = entry.file_name().to_str().map(|own| format!("{name}/{own}")) else {
            continue;
        };
        if kind.is_dir() {
            add_below(&entry.path(), &name, into)?;
        } else if kind.is_file() {
            into.push(BackupFile { name, path: entry.path() });
        }
    }
    Ok(())
}
