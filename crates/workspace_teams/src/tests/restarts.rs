//! A daemon that dies and starts again.

use protocol::workspace::{ServerMessage, TeamStatus};

use super::rig::Rig;

#[tokio::test(start_paused = true)]
async fn teams_messages_and_results_are_there_after_a_restart() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.assign(team.id, "work").await;
    rig.begin(ann).await;
    rig.end(ann, true, "done").await;
    let rig = rig.restart().await;
    let ServerMessage::TeamList(list) = rig.say(r#"{"type":"list_teams"}"#).await.unwrap() else {
        panic!()
    };
    assert_eq!(list.teams[0].worker_session_ids, [ann]);
    assert_eq!((&*list.teams[0].name, list.teams[0].status), ("crew", TeamStatus::Active));
    let waited = rig.wait(&format!(r#""team_id":"{}""#, team.id)).await;
    assert_eq!(waited.results[0].result, "done");
    assert!(rig.given(ann).is_empty(), "it has been delivered before");
    let seq = rig.relay(team.id, team.leader_session_id, Some(ann), "more").await.unwrap();
    assert_eq!(seq, 2);
}

#[tokio::test(start_paused = true)]
async fn an_undelivered_message_is_delivered_after_a_restart() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.assign(team.id, "work").await;
    rig.relay(team.id, team.leader_session_id, Some(ann), "and this").await.unwrap();
    let rig = rig.restart().await;
    assert_eq!(rig.begin(ann).await, "work");
    assert!(rig.begin(ann).await.ends_with("and this"));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_the_daemons_death_ended_has_failed() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.assign(team.id, "work").await;
    rig.begin(ann).await;
    let rig = rig.restart().await;
    let waited = rig.wait(&format!(r#""team_id":"{}""#, team.id)).await;
    assert_eq!((waited.completed_workers, waited.results[0].success), (vec![ann], false));
    assert!(rig.given(ann).is_empty());
}

#[tokio::test(start_paused = true)]
async fn sessions_that_died_with_the_daemon_are_gone() {
    let (rig, team) = Rig::with_team().await;
    let (ann, bob) = (rig.assign(team.id, "one").await, rig.assign(team.id, "two").await);
    rig.sessions.lock().all.get_mut(&ann).unwrap().facts.ended = Some("killed".to_owned());
    let lost = rig.sessions.lock().all.remove(&bob);
    drop(lost);
    let rig = rig.restart().await;
    let waited = rig.wait(&format!(r#""team_id":"{}","timeout_ms":10"#, team.id)).await;
    assert!(waited.pending_workers.is_empty(), "{waited:?}");
    assert!(waited.results.iter().all(|one| !one.success));
    let ServerMessage::TeamList(list) =
        rig.say(&format!(r#"{{"type":"get_team","team_id":"{}"}}"#, team.id)).await.unwrap()
    else {
        panic!()
    };
    assert_eq!(list.teams[0].worker_session_ids, [ann], "one that is listed still is shown");
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_resumed_after_a_restart() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.assign(team.id, "work").await;
    let waited = rig.wait(&format!(r#""team_id":"{}","timeout_ms":10"#, team.id)).await;
    let wait_id = waited.wait_id.unwrap();
    let rig = rig.restart().await;
    rig.begin(ann).await;
    rig.end(ann, true, "done").await;
    let waited = rig.wait(&format!(r#""team_id":"{}","wait_id":"{wait_id}""#, team.id)).await;
    assert_eq!((waited.completed_workers, &*waited.results[0].result), (vec![ann], "done"));
}
