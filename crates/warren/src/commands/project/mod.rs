//! `warren project`: working directories that the workspace knows.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use daemon::ConfigFile;
use protocol::workspace::{
    Project,
    client::{CreateProject, UpdateProject},
};
use serde_json::json;

use super::{
    say, say_json, say_json_line,
    table::plain,
    worker_runtime,
    workspace::{Machines, Output, named, short, terms::ago},
};

/// Make, list and change projects: working directories that the workspace knows
#[derive(Args)]
#[command(after_help = "Projects are named by their id, by how it begins, or by their name.\n\n\
    Examples:\n  \
    warren project create site --dir ~/src/site --env NODE_ENV=development\n  \
    warren files ls site:src\n  \
    warren open --project site")]
pub(crate) struct ProjectCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the projects
    #[command(after_help = "Examples:\n  \
        warren project list")]
    List(List),
    /// Make a project of a directory
    #[command(after_help = "Examples:\n  \
        warren project create site --dir ~/src/site")]
    Create(Create),
    /// Show one project
    #[command(after_help = "Examples:\n  \
        warren project show site")]
    Show(One),
    /// Change a project; what is not said stays
    #[command(after_help = "Examples:\n  \
        warren project update site --env NODE_ENV=production")]
    Update(Update),
    /// Forget a project; its files stay
    #[command(after_help = "Examples:\n  \
        warren project remove site")]
    #[command(visible_alias = "rm")]
    Remove(One),
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct One {
    /// The project: its id, the beginning of it, or its name
    project: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Create {
    /// What to call it
    name: String,
    /// Its directory [default: this one]
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
    /// The user its sessions run as and its files are written as [default: the server's own]
    #[arg(long, value_name = "USER")]
    run_as: Option<String>,
    /// A variable of its sessions' environment (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Update {
    /// The project: its id, the beginning of it, or its name
    project: String,
    /// What to call it
    #[arg(long)]
    name: Option<String>,
    /// Its directory
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
    /// The user its sessions run as; empty: the server's own
    #[arg(long, value_name = "USER")]
    run_as: Option<String>,
    /// A variable of its sessions' environment, beside those that it has (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Take a variable away (repeatable)
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,
    #[command(flatten)]
    output: Output,
}

impl ProjectCommand {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        worker_runtime()?.block_on(self.command.run(file))
    }
}

impl Command {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self {
            Self::List(list) => list.run(file).await,
            Self::Create(create) => create.run(file).await,
            Self::Show(one) => one.show(file).await,
            Self::Update(update) => update.run(file).await,
            Self::Remove(one) => one.remove(file).await,
        }
    }
}

impl List {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let projects = workspace.projects().await?;
        if self.output.json {
            return Ok(say_json(&json!({"projects": projects}))?);
        }
        if projects.is_empty() {
            return Ok(say("There are no projects yet. Make one: warren project create NAME")?);
        }
        let machines = Machines::of(&mut workspace).await?;
        let header = ["id", "name", "directory", "runs as", "changed"];
        let nodes = projects.iter().map(|project| project.node_id.as_deref());
        Ok(say(&machines.table(&header, projects.iter().map(row).collect(), nodes, 0))?)
    }
}

impl Create {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let directory = self.output.server.directory(self.dir.as_deref(), false)?;
        let new = CreateProject {
            name: self.name,
            working_dir: directory.unwrap_or_default(),
            run_as_user: self.run_as,
            env: self.env.into_iter().collect(),
        };
        tell(&workspace.create_project(new).await?, self.output.json)
    }
}

impl Update {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let working_dir = match &self.dir {
            Some(dir) => self.output.server.directory(Some(dir), true)?,
            None => None,
        };
        let projects = workspace.projects().await?;
        let project = named(&mut workspace, &projects, &self.project).await?;
        let env = changed(&project.env, &self.env, &self.unset);
        let (name, run_as_user) = (self.name, self.run_as);
        let change = UpdateProject { project_id: project.id, name, working_dir, run_as_user, env };
        tell(&workspace.update_project(change).await?, self.output.json)
    }
}

impl One {
    async fn show(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let projects = workspace.projects().await?;
        tell(named(&mut workspace, &projects, &self.project).await?, self.output.json)
    }

    async fn remove(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let projects = workspace.projects().await?;
        let project = named(&mut workspace, &projects, &self.project).await?;
        workspace.delete_project(project.id).await?;
        match self.output.json {
            true => Ok(say_json_line(&json!({"project_id": project.id, "removed": true}))?),
            false => {
                let (name, directory) = (plain(&project.name), plain(&project.working_dir));
                Ok(say(&format!("{name} is forgotten; its files in {directory} stay"))?)
            }
        }
    }
}

/// All variables after a change; `None` if nothing changes.
fn changed(
    before: &BTreeMap<String, String>,
    set: &[(String, String)],
    unset: &[String],
) -> Option<BTreeMap<String, String>> {
    let mut env = before.clone();
    env.retain(|name, _| !unset.contains(name));
    env.extend(set.iter().cloned());
    (!set.is_empty() || !unset.is_empty()).then_some(env)
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn row(project: &Project) -> Vec<String> {
    vec![
        short(project.id),
        plain(&project.name),
        plain(&project.working_dir),
        plain(project.run_as_user.as_deref().unwrap_or_default()),
        ago(project.updated_at),
    ]
}

fn tell(project: &Project, json: bool) -> anyhow::Result<()> {
    if json {
        return Ok(say_json(project)?);
    }
    say(&format!("id         {}", project.id))?;
    say(&format!("name       {}", plain(&project.name)))?;
    say(&format!("directory  {}", plain(&project.working_dir)))?;
    if let Some(user) = &project.run_as_user {
        say(&format!("runs as    {}", plain(user)))?;
    }
    // Values may be secrets; a user who wants them asks for JSON.
    let names: Vec<String> = project.env.keys().map(|name| plain(name)).collect();
    if !names.is_empty() {
        say(&format!("variables  {}", names.join(", ")))?;
    }
    Ok(say(&format!("changed    {}", ago(project.updated_at)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_set_beside_others_and_taken_away() {
        let before = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        assert_eq!(changed(&before, &[], &[]), None);
        let set = [variable("B=2=3").unwrap()];
        let both = changed(&before, &set, &[]).unwrap();
        assert_eq!(both, BTreeMap::from([before.clone().pop_first().unwrap(), set[0].clone()]));
        assert_eq!(changed(&before, &[], &["A".to_owned()]), Some(BTreeMap::new()));
        assert!(variable("=1").is_err() && variable("A").is_err());
    }
}
