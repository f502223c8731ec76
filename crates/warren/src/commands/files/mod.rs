//! `warren files`: files of projects.
//!
//! - `path`: a project and a path in it; `list`, `change`: list files, and change them without a transfer
//! - `get`, `put`: fetch and send a file; `parts`: sends a large one in parts

mod change;
mod get;
mod list;
mod parts;
mod path;
mod put;

use clap::{Args, Subcommand};
use client::Workspace;
use daemon::ConfigFile;
use protocol::workspace::ProjectId;

pub(crate) use path::ProjectPath;

use super::{
    worker_runtime,
    workspace::{WorkspaceServer, project},
};

/// List, fetch, send and change files of projects
#[derive(Args)]
#[command(
    after_help = "A file is named PROJECT:PATH; the project by its id, the beginning of it, or its name.\n\n\
    Examples:\n  \
    warren files ls site:src\n  \
    warren files cat site:README.md\n  \
    warren files get site:build/app.tar.gz\n  \
    warren files put logo.png site:assets/logo.png\n  \
    warren files mv site:a.txt b.txt"
)]
pub(crate) struct Files {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List a directory
    Ls(list::Ls),
    /// Print a file
    Cat(get::Cat),
    /// Fetch a file, of any size
    Get(get::Get),
    /// Send a file, of any size
    Put(put::Put),
    /// Delete files
    #[command(visible_alias = "rm")]
    Remove(change::Remove),
    /// Move or rename a file or directory
    Mv(change::Mv),
    /// Copy a file or directory
    Cp(change::Cp),
    /// Make a directory
    Mkdir(change::Mkdir),
}

impl Files {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        worker_runtime()?.block_on(self.command.run(file))
    }
}

impl Command {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self {
            Self::Ls(ls) => ls.run(file).await,
            Self::Cat(cat) => cat.run(file).await,
            Self::Get(get) => get.run(file).await,
            Self::Put(put) => put.run(file).await,
            Self::Remove(remove) => remove.run(file).await,
            Self::Mv(mv) => mv.run(file).await,
            Self::Cp(cp) => cp.run(file).await,
            Self::Mkdir(mkdir) => mkdir.run(file).await,
        }
    }
}

/// A connection, and the project that a path is in.
async fn find(
    server: &WorkspaceServer,
    file: &ConfigFile,
    path: &ProjectPath,
) -> anyhow::Result<(Workspace, ProjectId)> {
    let mut workspace = server.connect(file).await?;
    let id = project(&mut workspace, &path.project).await?;
    Ok((workspace, id))
}
