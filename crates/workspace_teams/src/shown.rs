//! Teams, results and messages in the form that clients get.

use ::session::team::{Answer, Message, Page, TeamView};
use jiff::Timestamp;
use protocol::workspace::{
    InboxMessage, ProjectId, SessionId, Team, TeamId, TeamStatus, WaitId,
    client::{HandoffResult, TeamInbox, TeamWaitResult, WorkerResult},
};
use uuid::Uuid;

/// The most bytes of results in one answer. If there are more, each result is cut to an equal share.
const RESULTS: usize = 16 << 20;

/// A team. A worker that has ended is listed for as long as its session is still known.
pub(crate) fn team(shown: TeamView, known: impl Fn(SessionId) -> bool) -> Team {
    let workers = shown.workers.iter().map(|worker| (SessionId::from_uuid(worker.session), worker));
    let listed = workers.filter(|(session, worker)| worker.living || known(*session));
    Team {
        id: TeamId::from_uuid(shown.id),
        leader_session_id: SessionId::from_uuid(shown.leader),
        worker_session_ids: listed.map(|(session, _)| session).collect(),
        status: if shown.active { TeamStatus::Active } else { TeamStatus::Inactive },
        created_at: time(shown.created_at),
        last_active: time(shown.last_active),
        project_id: shown.project.map(ProjectId::from_uuid),
        name: shown.name,
    }
}

pub(crate) fn result(team: Uuid, worker: Uuid, success: bool, text: &str) -> WorkerResult {
    WorkerResult {
        team_id: TeamId::from_uuid(team),
        worker_session_id: SessionId::from_uuid(worker),
        success,
        result: text.to_owned(),
    }
}

/// The outcome of a wait for one worker.
pub(crate) fn handoff(answer: &Answer, worker: SessionId) -> HandoffResult {
    let done = answer.finished.iter().find(|one| one.worker == worker.uuid());
    HandoffResult {
        team_id: TeamId::from_uuid(answer.team),
        worker_session_id: worker,
        success: done.is_some_and(|one| one.success),
        result: done.map(|one| one.result.to_string()),
        completed: done.is_some(),
        wait_id: answer.wait_id.map(WaitId::from_uuid),
    }
}

/// The outcome of a wait.
pub(crate) fn waited(answer: &Answer) -> TeamWaitResult {
    let all: usize = answer.finished.iter().map(|one| one.result.len()).sum();
    // Equal shares, so that one long result does not hide the others.
    let most = if all <= RESULTS { all } else { RESULTS / answer.finished.len().max(1) };
    let results = answer.finished.iter().map(|one| {
        let end = one.result.floor_char_boundary(most);
        let text = one.result.get(..end).unwrap_or_default();
        result(answer.team, one.worker, one.success, text)
    });
    TeamWaitResult {
        team_id: TeamId::from_uuid(answer.team),
        completed_workers: ids(answer.finished.iter().map(|one| one.worker)),
        pending_workers: ids(answer.pending.iter().copied()),
        timed_out: answer.timed_out(),
        wait_id: answer.wait_id.map(WaitId::from_uuid),
        results: results.collect(),
    }
}

pub(crate) fn inbox(team_id: TeamId, session_id: SessionId, page: &Page) -> TeamInbox {
    let messages = page.messages.iter().map(message).collect();
    TeamInbox { team_id, session_id, messages, next_seq: page.next_seq }
}

fn message(message: &Message) -> InboxMessage {
    InboxMessage {
        seq: message.seq,
        from_session_id: SessionId::from_uuid(message.from),
        payload: message.payload.to_string(),
        delivered_at: time(message.at),
    }
}

fn ids(uuids: impl Iterator<Item = Uuid>) -> Vec<SessionId> {
    uuids.map(SessionId::from_uuid).collect()
}

/// The time from milliseconds since 1970; 1970 itself if it is out of range.
fn time(at: u64) -> Timestamp {
    let at = i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    at.unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use ::session::team::Finished;

    use super::*;

    #[test]
    fn results_that_do_not_fit_into_an_answer_are_cut_evenly() {
        let long: std::sync::Arc<str> = "x".repeat(1 << 20).into();
        let finished = |number| Finished {
            worker: Uuid::from_u128(number),
            number: 1,
            success: true,
            result: std::sync::Arc::clone(&long),
        };
        let finished = (0..64).map(finished).collect();
        let team = Uuid::from_u128(1);
        let answer = Answer { team, finished, pending: Vec::new(), wait_id: None };
        let shown = waited(&answer);
        assert_eq!(shown.results.len(), 64);
        assert!(shown.results.iter().all(|one| one.result.len() == RESULTS / 64));
    }
}
