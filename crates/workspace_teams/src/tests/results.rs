//! Results of work: one a turn, and the callers that wait for it.

use std::{sync::Arc, time::Duration};

use protocol::workspace::{ServerMessage, SessionId, TeamId, client::HandoffResult};

use super::rig::Rig;

/// Sends this request in a task of its own.
fn say_beside(
    rig: &Arc<Rig>,
    message: String,
) -> tokio::task::JoinHandle<Result<ServerMessage, String>> {
    let rig = Arc::clone(rig);
    tokio::spawn(async move { rig.say(&message).await.map_err(|refused| refused.to_string()) })
}

fn handoff(team: TeamId, timeout_ms: u64) -> String {
    format!(
        r#"{{"type":"handoff","team_id":"{team}","prompt":"audit","worker_name":"ann",
        "timeout_ms":{timeout_ms}}}"#
    )
}

fn report(team: TeamId, worker: SessionId, result: &str) -> String {
    format!(
        r#"{{"type":"report_result","team_id":"{team}","worker_session_id":"{worker}",
        "success":true,"result":"{result}"}}"#
    )
}

/// The one session that is no leader, once it is there.
async fn worker(rig: &Rig) -> SessionId {
    loop {
        let found = {
            let state = rig.sessions.lock();
            let workers = state.all.values().filter(|one| !one.facts.is_team_leader);
            workers.filter(|one| !one.prompts.is_empty()).map(|one| one.facts.id).next()
        };
        match found {
            Some(id) => return id,
            None => tokio::task::yield_now().await,
        }
    }
}

fn handed(answer: Result<ServerMessage, String>) -> HandoffResult {
    match answer.unwrap() {
        ServerMessage::HandoffResult(result) => result,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_handoff_gives_its_prompt_and_comes_back_with_the_turns_last_words() {
    let rig = Arc::new(Rig::start().await);
    let team = rig.create().await;
    let request = say_beside(&rig, handoff(team.id, 60_000));
    let ann = worker(&rig).await;
    assert_eq!(rig.begin(ann).await, "audit");
    rig.messages();
    rig.end(ann, true, "all is well").await;
    let result = handed(request.await.unwrap());
    assert_eq!((result.worker_session_id, result.completed, result.success), (ann, true, true));
    assert_eq!((result.result.as_deref(), result.wait_id), (Some("all is well"), None));
    assert_eq!(rig.message_names(), ["worker_result_received", "team_completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_handoff_that_times_out_is_resumed_and_its_result_is_not_lost() {
    let rig = Arc::new(Rig::start().await);
    let team = rig.create().await;
    let request = say_beside(&rig, handoff(team.id, 5_000));
    let ann = worker(&rig).await;
    rig.begin(ann).await;
    let result = handed(request.await.unwrap());
    assert_eq!((result.completed, result.result), (false, None));
    let wait_id = result.wait_id.unwrap();
    // The result comes while nobody waits.
    rig.end(ann, true, "late").await;
    let resume = format!(r#""team_id":"{}","wait_id":"{wait_id}","timeout_ms":1000"#, team.id);
    for _ in 0..2 {
        let waited = rig.wait(&resume).await;
        assert_eq!((&waited.completed_workers[..], waited.timed_out), (&[ann][..], false));
        assert_eq!(waited.results[0].result, "late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_for_all_who_have_work_and_tells_who_still_works_when_it_times_out() {
    let (rig, team) = Rig::with_team().await;
    let (ann, bob) = (rig.assign(team.id, "one").await, rig.assign(team.id, "two").await);
    rig.begin(ann).await;
    rig.end(ann, false, "it broke").await;
    let waited = rig.wait(&format!(r#""team_id":"{}","timeout_ms":50"#, team.id)).await;
    assert_eq!((waited.completed_workers, waited.pending_workers), (vec![ann], vec![bob]));
    assert!(waited.timed_out && waited.wait_id.is_some());
    assert_eq!((waited.results[0].success, &*waited.results[0].result), (false, "it broke"));
}

#[tokio::test(start_paused = true)]
async fn a_turn_has_one_result_however_often_it_is_reported() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.assign(team.id, "work").await;
    rig.begin(ann).await;
    rig.messages();
    for said in ["first", "second"] {
        let counts = rig.say(&report(team.id, ann, said)).await.unwrap();
        let ServerMessage::WorkerResultReceived(counts) = counts else { panic!("{counts:?}") };
        assert_eq!(counts.result, "first");
    }
    rig.end(ann, true, "last words").await;
    assert_eq!(rig.message_names(), ["worker_result_received", "team_completed"]);
    let waited = rig.wait(&format!(r#""team_id":"{}""#, team.id)).await;
    assert_eq!(waited.results[0].result, "first");
}

#[tokio::test(start_paused = true)]
async fn a_workers_death_ends_the_waits_for_it() {
    let rig = Arc::new(Rig::start().await);
    let team = rig.create().await;
    let request = say_beside(&rig, handoff(team.id, 60_000));
    let ann = worker(&rig).await;
    rig.begin(ann).await;
    rig.die(ann).await;
    let result = handed(request.await.unwrap());
    assert_eq!((result.completed, result.success), (true, false));
    assert!(result.result.unwrap().contains("ended before it gave a result"));
}

#[tokio::test(start_paused = true)]
async fn deleting_a_team_ends_its_sessions_and_its_waits() {
    let rig = Arc::new(Rig::start().await);
    let team = rig.create().await;
    let request = say_beside(&rig, handoff(team.id, 60_000));
    worker(&rig).await;
    rig.messages();
    let deleted = rig.say(&format!(r#"{{"type":"delete_team","team_id":"{}"}}"#, team.id)).await;
    assert!(matches!(deleted, Ok(ServerMessage::TeamDeleted(of)) if of.team_id == team.id));
    assert!(rig.sessions.lock().all.is_empty());
    assert!(request.await.unwrap().unwrap_err().contains("deleted"));
    assert!(rig.stored().is_empty(), "{:?}", rig.stored());
    assert_eq!(rig.message_names(), ["team_deleted"]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_waits_no_more() {
    let rig = Arc::new(Rig::start().await);
    let team = rig.create().await;
    let request = say_beside(&rig, handoff(team.id, 60_000));
    let ann = worker(&rig).await;
    rig.settle().await;
    assert_eq!(rig.waits().await, 1);
    request.abort();
    let _aborted = request.await;
    rig.settle().await;
    assert_eq!(rig.waits().await, 0);
    // The work goes on.
    rig.begin(ann).await;
    rig.end(ann, true, "done").await;
    let waited = rig.wait(&format!(r#""team_id":"{}""#, team.id)).await;
    assert_eq!(waited.completed_workers, [ann]);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_told_when_the_store_fails() {
    let rig = Arc::new(Rig::start().await);
    let team = rig.create().await;
    let request = say_beside(&rig, handoff(team.id, 60_000));
    let ann = worker(&rig).await;
    rig.begin(ann).await;
    rig.store.fail_writes(true);
    rig.end_unheard(ann, true, "done");
    let refused = request.await.unwrap().unwrap_err();
    assert!(refused.contains("cannot be written down"), "{refused}");
    // What happened meanwhile is not lost.
    rig.store.fail_writes(false);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let waited = rig.wait(&format!(r#""team_id":"{}""#, team.id)).await;
    assert_eq!(waited.results[0].result, "done");
}

#[tokio::test(start_paused = true)]
async fn a_message_in_work_is_not_delivered_twice_when_the_store_fails() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.assign(team.id, "work").await;
    rig.store.fail_writes(true);
    assert!(rig.relay(team.id, team.leader_session_id, Some(ann), "lost").await.is_err());
    rig.store.fail_writes(false);
    rig.settle().await;
    assert_eq!(rig.given(ann), ["work"]);
    assert_eq!(rig.begin(ann).await, "work");
    rig.end(ann, true, "done").await;
    assert!(rig.given(ann).is_empty());
    let waited = rig.wait(&format!(r#""team_id":"{}""#, team.id)).await;
    assert_eq!(waited.results[0].result, "done");
}
