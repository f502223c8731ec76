//! Finds the team that is meant, and its members.

use anyhow::anyhow;
use client::Workspace;
use daemon::ConfigFile;
use protocol::workspace::{SessionId, SessionInfo, Team};

use super::Output;
use crate::{
    commands::{
        table::plain,
        workspace::{Machines, named, named_on, short},
    },
    exit::usage,
};

/// The other name of every team's leader.
const LEADER: &str = "leader";

/// A connection, and the team that is meant.
pub(super) async fn team(
    output: &Output,
    file: &ConfigFile,
    meant: &str,
) -> anyhow::Result<(Workspace, Team)> {
    let mut workspace = output.server.connect(file).await?;
    let teams = workspace.teams().await?;
    let team = named(&mut workspace, &teams, meant).await?.clone();
    Ok((workspace, team))
}

/// The sessions of a team, the leader first.
pub(super) async fn members(
    workspace: &mut Workspace,
    team: &Team,
) -> anyhow::Result<Vec<SessionInfo>> {
    let sessions = workspace.sessions(true).await?;
    let ids = std::iter::once(team.leader_session_id).chain(team.worker_session_ids.clone());
    Ok(ids.filter_map(|id| sessions.iter().find(|session| session.id == id).cloned()).collect())
}

/// The member that is meant.
pub(super) fn member(
    team: &Team,
    members: &[SessionInfo],
    meant: &str,
) -> anyhow::Result<SessionId> {
    let is_named = members.iter().any(|it| it.name.as_deref() == Some(LEADER));
    if meant == LEADER && !is_named {
        return Ok(team.leader_session_id);
    }
    // A member that has ended and is forgotten is still known by its id.
    let is_member =
        |id: &SessionId| *id == team.leader_session_id || team.worker_session_ids.contains(id);
    match meant.parse().ok().filter(is_member) {
        Some(id) => Ok(id),
        None => Ok(named_on(members, meant, &Machines::default())?.id),
    }
}

/// The name of a member.
pub(super) fn called(members: &[SessionInfo], id: SessionId) -> String {
    let name = members.iter().find(|it| it.id == id).and_then(|it| it.name.as_deref());
    name.map_or_else(|| short(id), plain)
}

/// A time-out in milliseconds.
pub(super) fn milliseconds(seconds: f64) -> anyhow::Result<u64> {
    let span = std::time::Duration::try_from_secs_f64(seconds);
    let span = span.map_err(|error| usage(anyhow!("--timeout {seconds}: {error}")))?;
    Ok(base::millis(span))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use protocol::workspace::{TeamId, TeamStatus};

    use super::*;

    #[test]
    fn members_are_meant_by_name_id_or_as_the_leader() {
        let id = SessionId::from_random;
        let team = Team {
            id: TeamId::from_random(1),
            name: "t".to_owned(),
            leader_session_id: id(1),
            worker_session_ids: vec![id(2)],
            status: TeamStatus::Active,
            created_at: Timestamp::UNIX_EPOCH,
            last_active: Timestamp::UNIX_EPOCH,
            project_id: None,
        };
        assert_eq!(member(&team, &[], "leader").unwrap(), id(1));
        assert_eq!(member(&team, &[], &id(2).to_string()).unwrap(), id(2));
        assert!(member(&team, &[], &id(3).to_string()).is_err());
        assert!(member(&team, &[], "nobody").is_err());
    }

    #[test]
    fn a_time_out_is_a_span() {
        assert_eq!(milliseconds(1.5).unwrap(), 1500);
        assert!(milliseconds(-1.0).is_err() && milliseconds(f64::NAN).is_err());
    }
}
