//! A prompt, and the turn that answers it.
//!
//! - `own_turn`: which of an agent's turns that is, and how it ends; `shown`: what is printed of it

mod own_turn;
mod shown;

use std::time::Duration;

use anyhow::{anyhow, bail};
use client::{
    ClientError, Workspace,
    workspace::{Addresses, Follower, FollowerSettings, SessionView},
};
use protocol::workspace::SessionInfo;
use tokio::time::{Instant, timeout_at};

use self::{
    own_turn::{OwnTurn, TurnOutput},
    shown::PrintedTurn,
};
use crate::commands::{note, say_json_line};

/// How long a lost server is tried while a turn is awaited.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a server that has come back, and reports its agent as idle, has to report the turn.
const RESTS: Duration = Duration::from_secs(10);

/// Gives an agent a prompt and prints its answer to its end; with `json`, each event.
pub(super) async fn ask(
    workspace: Workspace,
    addresses: &Addresses,
    session: &SessionInfo,
    text: String,
    json: bool,
) -> anyhow::Result<()> {
    let settings =
        FollowerSettings { is_agent: true, patience: PATIENCE, ..FollowerSettings::default() };
    let mut follower = Follower::begin(workspace, addresses, session.id, settings)?;
    let (mut own, mut shown) = (OwnTurn::of(session), PrintedTurn::new());
    let mut prompt = Some(text);
    while let Some(seen) = next(&mut follower, own.rests_since()).await? {
        // Only output after the first screen is reported. To an earlier prompt, the answer could be in that screen.
        if matches!(seen, SessionView::Screen(_))
            && let Some(prompt) = prompt.take()
        {
            follower.prompt(prompt);
        }
        for heard in own.take(seen, Instant::now())? {
            match heard {
                TurnOutput::Event(event) if json => say_json_line(&event)?,
                TurnOutput::Event(event) => shown.print(&event)?,
                TurnOutput::Aside(words) => {
                    shown.end_line()?;
                    note(&words);
                }
            }
        }
        if let Some(ended) = own.ended() {
            follower.close().await;
            return ended.map_err(|words| anyhow!("{words}"));
        }
    }
    bail!("the server stopped telling before the turn ended")
}

/// The next view. If the agent rests, the wait for it ends after [`RESTS`], with an error.
async fn next(
    follower: &mut Follower,
    rests_since: Option<Instant>,
) -> anyhow::Result<Option<SessionView>> {
    let Some(since) = rests_since else { return Ok(follower.next().await?) };
    let seen: Result<Result<_, ClientError>, _> = timeout_at(since + RESTS, follower.next()).await;
    match seen {
        Ok(seen) => Ok(seen?),
        Err(_) => bail!(
            "the server was restarted, and what came of the prompt is not known; warren session \
             history shows what there is"
        ),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use jiff::Timestamp;
    use protocol::workspace::{SessionId, SessionInfo, SessionKind, SessionMode, SessionStatus};

    pub(crate) fn session() -> SessionInfo {
        SessionInfo {
            id: SessionId::from_random(1),
            name: None,
            mode: SessionMode::Sdk,
            status: SessionStatus::Idle,
            working_dir: "/".to_owned(),
            model: None,
            created_at: Timestamp::UNIX_EPOCH,
            last_active: Timestamp::UNIX_EPOCH,
            attached_clients: 0,
            adopted_pid: None,
            project_id: None,
            node_id: None,
            kind: SessionKind::Claude,
            provider: "claude".to_owned(),
            hidden: false,
            team_id: None,
            is_team_leader: false,
            reachable: true,
            dev_server_port: None,
            exit_code: None,
            last_seq: None,
            asks: 0,
            tags: Vec::new(),
        }
    }
}
