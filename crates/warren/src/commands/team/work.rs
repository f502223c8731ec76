//! `warren team assign`, `handoff`, `wait` and `report`.

use anyhow::{anyhow, bail};
use clap::Args;
use client::{Workspace, workspace::TeamReport};
use daemon::ConfigFile;
use protocol::workspace::{
    SessionInfo, WaitId,
    client::{self as message, HandoffResult, TeamWait, WorkerResult},
};
use serde_json::json;

use super::{
    Output,
    find::{called, member, members, milliseconds, team},
};
use crate::{
    commands::{answer::prompt, note, say, say_json, session::Mode, workspace::short},
    exit::usage,
};

/// Give work to a new team worker
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team assign review 'write the missing tests'")]
pub(super) struct Assign {
    #[command(flatten)]
    work: Work,
    #[command(flatten)]
    output: Output,
}

/// Give work to a new team worker, and wait for what comes of it
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team handoff review 'look for races' --name races")]
pub(super) struct Handoff {
    #[command(flatten)]
    work: Work,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    timeout: f64,
    #[command(flatten)]
    output: Output,
}

/// Wait for team workers to report
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team wait review\n  \
    warren team wait review races --timeout 60")]
pub(super) struct Wait {
    /// The team
    team: String,
    /// The team workers [default: all that have work]
    worker: Vec<String>,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    timeout: f64,
    /// An earlier wait to go on with
    #[arg(long, value_name = "ID", conflicts_with = "worker")]
    wait_id: Option<WaitId>,
    #[command(flatten)]
    output: Output,
}

/// Say what came of a team worker's work
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team report review races 'found two'")]
pub(super) struct Report {
    /// The team
    team: String,
    /// Whose work it was
    worker: String,
    /// What came of it; - reads standard input
    #[arg(allow_hyphen_values = true)]
    result: String,
    /// It did not go well
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    output: Output,
}

/// Work for a new team worker
#[derive(Args)]
struct Work {
    /// The team
    team: String,
    /// The work; - reads standard input
    #[arg(allow_hyphen_values = true)]
    prompt: String,
    /// What to call the team worker
    #[arg(long)]
    name: Option<String>,
    /// The agent [default: the leader's]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// How it is driven: turn by turn, or as a terminal [default: sdk]
    #[arg(long, value_enum, hide_short_help = true)]
    mode: Option<Mode>,
    /// The machine to run it on: its name, or its node id or how that begins [default: the leader's]
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// The directory to start in [default: the leader's]
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
}

impl Work {
    /// The workspace, and the message that gives the work.
    async fn request(
        self,
        output: &Output,
        file: &ConfigFile,
    ) -> anyhow::Result<(Workspace, message::Assign)> {
        let prompt = prompt(&self.prompt)?;
        let (workspace, team) = team(output, file, &self.team).await?;
        // In the form that the machine of the session understands.
        let working_dir =
            output.server.directory_on(self.node.as_deref(), self.dir.as_deref(), true)?;
        let Self { name: worker_name, provider, node: node_id, .. } = self;
        let (team_id, mode) = (team.id, self.mode.map(Into::into));
        let work =
            message::Assign { team_id, prompt, worker_name, provider, mode, working_dir, node_id };
        Ok((workspace, work))
    }
}

impl Assign {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let (mut workspace, work) = self.work.request(&self.output, file).await?;
        let assigned = workspace.assign(work).await?;
        match self.output.json {
            true => Ok(say_json(&assigned)?),
            false => Ok(say(&assigned.worker_session_id.to_string())?),
        }
    }
}

impl Handoff {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let timeout_ms = Some(milliseconds(self.timeout)?);
        let team = self.work.team.clone();
        let (mut workspace, work) = self.work.request(&self.output, file).await?;
        let message::Assign { team_id, prompt, worker_name, provider, mode, working_dir, node_id } =
            work;
        let work = message::Handoff {
            team_id,
            prompt,
            worker_name,
            timeout_ms,
            provider,
            mode,
            working_dir,
            node_id,
        };
        let result = workspace.handoff(work).await?;
        if self.output.json {
            say_json(&result)?;
        }
        tell(&result, &team, self.output.json)
    }
}

/// Prints the result of a handoff. One that failed, or goes on, is a failure of the command.
fn tell(result: &HandoffResult, team: &str, json: bool) -> anyhow::Result<()> {
    let worker = short(result.worker_session_id);
    let words = result.result.as_deref().unwrap_or_default();
    match (result.completed, result.success) {
        (true, true) if json => Ok(()),
        (true, true) => Ok(say(words.trim_end_matches('\n'))?),
        (true, false) => bail!("{worker} failed: {words}"),
        (false, _) => match result.wait_id {
            Some(id) => {
                bail!("{worker} still works: warren team wait {team} --wait-id {id} waits on")
            }
            None => bail!("{worker} still works: warren team wait {team} waits on"),
        },
    }
}

impl Wait {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let timeout_ms = Some(milliseconds(self.timeout)?);
        let (mut workspace, team) = team(&self.output, file, &self.team).await?;
        let members = members(&mut workspace, &team).await?;
        let meant = self.worker.iter().map(|meant| member(&team, &members, meant));
        let meant = meant.collect::<anyhow::Result<Vec<_>>>()?;
        let for_session_ids = Some(meant).filter(|meant| !meant.is_empty());
        let (team_id, wait_id) = (team.id, self.wait_id);
        let wait = TeamWait { team_id, for_session_ids, timeout_ms, wait_id };
        let reported = workspace.team_wait(wait).await?;
        self.tell(&reported, &members)
    }

    fn tell(&self, reported: &TeamReport, members: &[SessionInfo]) -> anyhow::Result<()> {
        let TeamReport { answer, results } = reported;
        if self.output.json {
            let all = json!({"wait": answer, "results": results});
            say_json(&all)?;
        } else {
            for id in &answer.completed_workers {
                say(&format!("{} has reported", called(members, *id)))?;
            }
            for result in results {
                let name = called(members, result.worker_session_id);
                let how = if result.success { "" } else { " (failed)" };
                say(&format!("\n{name}{how}:\n{}", result.result))?;
            }
        }
        if answer.pending_workers.is_empty() {
            return Ok(());
        }
        let names: Vec<String> =
            answer.pending_workers.iter().map(|id| called(members, *id)).collect();
        if let Some(id) = answer.wait_id {
            note(&format!("warren team wait {} --wait-id {id} waits on", self.team));
        }
        bail!("still at work: {}", names.join(", "))
    }
}

impl Report {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let result = prompt(&self.result)?;
        let (mut workspace, team) = team(&self.output, file, &self.team).await?;
        let members = members(&mut workspace, &team).await?;
        let worker_session_id = member(&team, &members, &self.worker)?;
        if worker_session_id == team.leader_session_id {
            return Err(usage(anyhow!("the leader has no work to report on: name a team worker")));
        }
        let (team_id, success) = (team.id, !self.failed);
        let result = WorkerResult { team_id, worker_session_id, success, result };
        workspace.report(result.clone()).await?;
        match self.output.json {
            true => Ok(say_json(&result)?),
            false => Ok(say(&format!("{} has reported", called(&members, worker_session_id)))?),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use protocol::workspace::{SessionId, TeamId};

    use super::*;

    #[derive(Parser)]
    enum Cli {
        Assign(Assign),
        Handoff(Handoff),
        Report(Report),
    }

    #[test]
    fn work_and_its_result_may_begin_with_a_dash() {
        for args in [
            &["team", "assign", "t", "- [ ] first"][..],
            &["team", "handoff", "t", "- [ ] first", "--timeout", "1"],
            &["team", "report", "t", "w", "- [ ] first", "--failed"],
        ] {
            let said = match Cli::try_parse_from(args).unwrap() {
                Cli::Assign(it) => it.work.prompt,
                Cli::Handoff(it) => it.work.prompt,
                Cli::Report(it) => it.result,
            };
            assert_eq!(said, "- [ ] first");
        }
    }

    #[test]
    fn a_handoff_that_failed_or_goes_on_is_a_failure() {
        let mut result = HandoffResult {
            team_id: TeamId::from_random(1),
            worker_session_id: SessionId::from_random(2),
            success: true,
            result: Some("done".to_owned()),
            completed: true,
            wait_id: None,
        };
        assert!(tell(&result, "t", true).is_ok());
        result.success = false;
        assert!(tell(&result, "t", false).unwrap_err().to_string().ends_with("failed: done"));
        (result.completed, result.wait_id) = (false, Some(WaitId::from_random(3)));
        let words = tell(&result, "t", false).unwrap_err().to_string();
        assert!(words.contains(&format!("wait t --wait-id {}", WaitId::from_random(3))), "{words}");
    }
}
