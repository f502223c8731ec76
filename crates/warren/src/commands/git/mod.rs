//! `warren git`: what git says of a project.

use clap::{Args, Subcommand};
use client::Workspace;
use daemon::ConfigFile;
use protocol::workspace::{ChangeStatus, GitChange, GitStatus, Project};
use serde_json::json;

use super::{
    files::ProjectPath,
    say, say_json, say_json_line,
    table::plain,
    words::count,
    worker_runtime,
    workspace::{Output, WorkspaceServer, named},
};

/// See what changed in a project since the last commit
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren git status site\n  \
    warren git diff site\n  \
    warren git diff site:src/main.rs --staged")]
pub(crate) struct Git {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the branch, and the files that changed
    Status(Status),
    /// Show the changes, as a unified diff
    Diff(Diff),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren git status site")]
struct Status {
    /// The project: its id, the beginning of it, or its name
    project: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren git diff site:src/main.rs --staged")]
struct Diff {
    /// The project, and a file in it [default: every file that changed]
    #[arg(value_name = "PROJECT[:PATH]")]
    path: ProjectPath,
    /// The changes that are staged for the next commit, instead of the others
    #[arg(long)]
    staged: bool,
    /// Print JSON: a line for each file
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: WorkspaceServer,
}

impl Git {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        worker_runtime()?.block_on(async {
            match self.command {
                Command::Status(status) => status.run(file).await,
                Command::Diff(diff) => diff.run(file).await,
            }
        })
    }
}

impl Status {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let projects = workspace.projects().await?;
        let project = named(&mut workspace, &projects, &self.project).await?;
        let status = workspace.git_status(project.id).await?;
        match self.output.json {
            true => Ok(say_json(&status)?),
            false => Ok(say(&readable(&status))?),
        }
    }
}

impl Diff {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.server.connect(file).await?;
        let projects = workspace.projects().await?;
        let project = named(&mut workspace, &projects, &self.path.project).await?;
        for path in self.paths(&mut workspace, project).await? {
            let patch = workspace.git_diff(project.id, &path, self.staged).await?;
            if self.json {
                say_json_line(&json!({"path": path, "staged": self.staged, "patch": patch}))?;
            } else if !patch.is_empty() {
                say(patch.trim_end_matches('\n'))?;
            }
        }
        Ok(())
    }

    /// The named file, or all files that changed.
    async fn paths(
        &self,
        workspace: &mut Workspace,
        project: &Project,
    ) -> anyhow::Result<Vec<String>> {
        if !self.path.path.is_empty() {
            return Ok(vec![self.path.path.clone()]);
        }
        let status = workspace.git_status(project.id).await?;
        let changes = if self.staged { status.staged } else { status.unstaged };
        Ok(changes.into_iter().map(|change| change.path).collect())
    }
}

fn readable(status: &GitStatus) -> String {
    if !status.is_repo {
        return "This project is in no git repository".to_owned();
    }
    let mut lines = vec![head(status)];
    lines.extend(changes("Staged", &status.staged));
    lines.extend(changes("Not staged", &status.unstaged));
    if !status.untracked.is_empty() {
        lines.push("Not known to git:".to_owned());
        lines.extend(status.untracked.iter().map(|path| format!("  ? {}", plain(path))));
    }
    if lines.len() == 1 {
        lines.push("Nothing changed".to_owned());
    }
    lines.join("\n")
}

fn head(status: &GitStatus) -> String {
    let branch = match &status.branch {
        Some(branch) => format!("On branch {}", plain(branch)),
        None => "On no branch".to_owned(),
    };
    let Some(upstream) = &status.upstream else { return branch };
    let ahead = (status.ahead > 0).then(|| format!("{} ahead of", count(status.ahead, "commit")));
    let behind = (status.behind > 0).then(|| format!("{} behind", count(status.behind, "commit")));
    let parts: Vec<String> = [ahead, behind].into_iter().flatten().collect();
    let upstream = plain(upstream);
    match &parts[..] {
        [] => format!("{branch}, as {upstream}"),
        parts => format!("{branch}, {} {upstream}", parts.join(" and ")),
    }
}

fn changes(title: &str, changes: &[GitChange]) -> Vec<String> {
    let line = |change: &GitChange| {
        let from = change.from.as_deref().map(|from| format!("{} -> ", plain(from)));
        let letter = letter(change.status);
        format!("  {letter} {}{}", from.unwrap_or_default(), plain(&change.path))
    };
    let title = (!changes.is_empty()).then(|| format!("{title}:"));
    title.into_iter().chain(changes.iter().map(line)).collect()
}

const fn letter(status: ChangeStatus) -> char {
    match status {
        ChangeStatus::Modified => 'M',
        ChangeStatus::Added => 'A',
        ChangeStatus::Deleted => 'D',
        ChangeStatus::Renamed => 'R',
        ChangeStatus::Copied => 'C',
        ChangeStatus::TypeChanged => 'T',
        ChangeStatus::Unmerged => 'U',
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::ProjectId;

    use super::*;

    #[test]
    fn a_status_reads_well() {
        let mut status = GitStatus::no_repository(ProjectId::from_random(1));
        assert!(readable(&status).contains("no git repository"));
        status.is_repo = true;
        assert_eq!(readable(&status), "On no branch\nNothing changed");
        status.branch = Some("main".to_owned());
        status.upstream = Some("origin/main".to_owned());
        assert!(readable(&status).starts_with("On branch main, as origin/main"));
        (status.ahead, status.behind) = (1, 2);
        let change = |path: &str, status, from: Option<&str>| GitChange {
            path: path.to_owned(),
            status,
            from: from.map(str::to_owned),
        };
        status.staged = vec![change("b", ChangeStatus::Renamed, Some("a"))];
        status.unstaged = vec![change("c\u{1b}", ChangeStatus::Modified, None)];
        status.untracked = vec!["d".to_owned()];
        let expected = "On branch main, 1 commit ahead of and 2 commits behind origin/main\n\
            Staged:\n  R a -> b\nNot staged:\n  M c\u{fffd}\nNot known to git:\n  ? d";
        assert_eq!(readable(&status), expected);
    }
}
