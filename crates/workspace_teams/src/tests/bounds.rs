//! Bounds: what exceeds one is refused, and everything else goes on.

use std::sync::Arc;

use ::session::team::Limits;
use protocol::workspace::SessionId;
use protocol::workspace::TurnOutcome;
use workspace::Refusal;

use super::rig::Rig;
use crate::queue::{ASKS, Input, LEFT_OUT, NOTICES, Queue, SessionNotice, TEXT, ask};

fn ended(turn: u64, bytes: usize) -> SessionNotice {
    let text = Some("x".repeat(bytes));
    SessionNotice::ended(SessionId::from_random(1), turn, true, text, 0)
}

async fn all(queue: &Queue) -> Vec<SessionNotice> {
    let mut all = Vec::new();
    loop {
        let taken = queue.next(Some(std::time::Instant::now())).await;
        if taken.is_empty() {
            return all;
        }
        all.extend(taken.into_iter().filter_map(|input| match input {
            Input::SessionNotice(notice) => Some(notice),
            Input::Ask(_) => None,
        }));
    }
}

#[tokio::test(start_paused = true)]
async fn callers_beyond_the_bound_are_refused() {
    // Nobody takes anything out of this queue.
    let queue = Arc::new(Queue::default());
    let asks: Vec<_> = (0..ASKS)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { ask(&queue, |_, _| (Ok(()), Vec::new())).await })
        })
        .collect();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let refused = ask(&queue, |_, _| (Ok(()), Vec::new())).await.unwrap_err();
    assert!(matches!(refused, Refusal::TooMany { most: ASKS, .. }), "{refused}");
    // No caller waits for ever.
    for request in asks {
        let late = request.await.unwrap().unwrap_err().to_string();
        assert!(late.contains("does not answer"), "{late}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_waiting_for_the_store_are_bounded() {
    let queue = Queue::default();
    (0..NOTICES as u64 + 10).for_each(|turn| queue.tell(ended(turn, 0)));
    let waiting = all(&queue).await;
    assert_eq!(waiting.len(), NOTICES);
    queue.tell(ended(7, 0));
    assert_eq!(all(&queue).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn texts_that_do_not_fit_are_left_out_and_their_turns_end_all_the_same() {
    let queue = Queue::default();
    queue.tell(ended(1, TEXT - 10));
    queue.tell(ended(2, 11));
    queue.tell(ended(3, 10));
    let waiting = all(&queue).await;
    let text = |notice: &SessionNotice| match notice {
        SessionNotice::Ended { text, outcome: TurnOutcome::Completed, .. } => text.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(text(&waiting[0]).len(), TEXT - 10);
    assert_eq!(text(&waiting[1]), LEFT_OUT);
}

#[tokio::test(start_paused = true)]
async fn returned_inputs_come_first_in_their_order() {
    let queue = Queue::default();
    queue.tell(ended(3, 0));
    queue.put_back(vec![ended(1, 5), ended(2, 5)]);
    assert_eq!(all(&queue).await, [ended(1, 5), ended(2, 5), ended(3, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_team_too_many_leaves_no_session_behind() {
    let rig = Rig::within(Limits { teams: 1, ..Limits::default() }).await;
    rig.create().await;
    let refused = rig.say(r#"{"type":"create_team","name":"more","working_dir":"/"}"#).await;
    assert!(matches!(refused, Err(Refusal::TooMany { what: "teams", most: 1 })));
    assert_eq!(rig.sessions.lock().all.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_too_many_leaves_no_session_behind() {
    let rig = Rig::within(Limits { workers: 1, ..Limits::default() }).await;
    let team = rig.create().await;
    rig.spawn(team.id).await;
    for request in ["spawn_worker", "assign", "handoff"] {
        let request = format!(r#"{{"type":"{request}","team_id":"{}","prompt":"go"}}"#, team.id);
        let refused = rig.say(&request).await.unwrap_err().to_string();
        assert!(refused.contains("1 workers already"), "{refused}");
    }
    assert_eq!(rig.sessions.lock().all.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_too_long_leaves_no_session_behind() {
    let rig = Rig::within(Limits { payload: 3, ..Limits::default() }).await;
    let team = rig.create().await;
    let request = format!(r#"{{"type":"assign","team_id":"{}","prompt":"long"}}"#, team.id);
    assert!(rig.say(&request).await.unwrap_err().to_string().contains("4 bytes"));
    rig.settle().await;
    assert_eq!(rig.sessions.lock().all.len(), 1);
    assert!(
        rig.say(&request.replace("long", " ")).await.unwrap_err().to_string().contains("empty")
    );
}
