//! `warren files remove`, `mv`, `cp` and `mkdir`.

use anyhow::anyhow;
use clap::Args;
use client::{ClientError, Workspace};
use daemon::ConfigFile;
use protocol::workspace::{FileKind, ProjectId};
use serde_json::json;

use super::{ProjectPath, find};
use crate::{
    commands::{say, say_json_line, table::plain, workspace::Output},
    exit::usage,
};

/// Delete files
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren files remove site:a.txt\n  \
    warren files remove -r site:build")]
pub(super) struct Remove {
    /// What to delete
    #[arg(required = true, value_name = "PROJECT:PATH")]
    path: Vec<ProjectPath>,
    /// Directories, too, with all that is in them
    #[arg(long, short)]
    recursive: bool,
    #[command(flatten)]
    output: Output,
}

/// Move or rename a file or directory
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren files mv site:a.txt b.txt")]
pub(super) struct Mv {
    /// What to move
    #[arg(value_name = "PROJECT:PATH")]
    from: ProjectPath,
    /// Where to, in the same project; it must not be there
    #[arg(value_name = "PATH")]
    to: String,
    #[command(flatten)]
    output: Output,
}

/// Copy a file or directory
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren files cp site:a.txt b.txt")]
pub(super) struct Cp {
    /// What to copy
    #[arg(value_name = "PROJECT:PATH")]
    from: ProjectPath,
    /// Where to, in the same project; it must not be there
    #[arg(value_name = "PATH")]
    to: String,
    #[command(flatten)]
    output: Output,
}

/// Make a directory
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren files mkdir site:assets")]
pub(super) struct Mkdir {
    /// Which; what it is in must be there
    #[arg(value_name = "PROJECT:PATH")]
    path: ProjectPath,
    #[command(flatten)]
    output: Output,
}

impl Remove {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        for path in &self.path {
            let (mut workspace, project) = find(&self.output.server, file, path).await?;
            if !self.recursive && is_directory(&mut workspace, project, path).await? {
                let shown = plain(&path.path);
                return Err(usage(anyhow!("{shown} is a directory: say --recursive to delete it")));
            }
            workspace.delete_entry(project, &path.path).await?;
            done("deleted", &path.path, self.output.json)?;
        }
        Ok(())
    }
}

impl Mv {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let to = within(&self.from, &self.to)?;
        let (mut workspace, project) = find(&self.output.server, file, &self.from).await?;
        workspace.move_entry(project, &self.from.path, &to).await?;
        done("moved", &to, self.output.json)
    }
}

impl Cp {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let to = within(&self.from, &self.to)?;
        let (mut workspace, project) = find(&self.output.server, file, &self.from).await?;
        workspace.copy_entry(project, &self.from.path, &to).await?;
        done("copied", &to, self.output.json)
    }
}

impl Mkdir {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let (mut workspace, project) = find(&self.output.server, file, &self.path).await?;
        workspace.make_directory(project, &self.path.path).await?;
        done("made", &self.path.path, self.output.json)
    }
}

async fn is_directory(
    workspace: &mut Workspace,
    project: ProjectId,
    path: &ProjectPath,
) -> anyhow::Result<bool> {
    let (directory, name) = path.split();
    let entry = workspace.find_file(project, directory, name).await?;
    let missing = || ClientError::NotFound { words: format!("there is no {}", plain(&path.path)) };
    Ok(entry.ok_or_else(missing)?.kind == FileKind::Dir)
}

/// A path in the same project. It may repeat the project.
fn within(from: &ProjectPath, to: &str) -> anyhow::Result<String> {
    let to = match to.split_once(':') {
        Some((project, path)) if project == from.project => path,
        Some((project, _)) if !project.contains('/') => {
            return Err(usage(anyhow!(
                "from {} to {}: files are moved and copied within one project; get and put lead \
                 from one to another",
                plain(&from.project),
                plain(project)
            )));
        }
        _ => to,
    };
    match to.trim_end_matches('/') {
        "" => Err(usage(anyhow!("the path to move or copy to is empty"))),
        path => Ok(path.to_owned()),
    }
}

fn done(what: &str, path: &str, json: bool) -> anyhow::Result<()> {
    match json {
        true => Ok(say_json_line(&json!({"path": path, "done": what}))?),
        false => Ok(say(&format!("{} is {what}", plain(path)))?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_move_within_their_project() {
        let from: ProjectPath = "site:a".parse().unwrap();
        assert_eq!(within(&from, "b/").unwrap(), "b");
        assert_eq!(within(&from, "site:b").unwrap(), "b");
        assert_eq!(within(&from, "d/x:y").unwrap(), "d/x:y");
        assert!(within(&from, "other:b").is_err());
        assert!(within(&from, "site:").is_err() && within(&from, "").is_err());
    }
}
