//! Agents that lead teams, and agents that do not.

use std::time::Duration;

use protocol::workspace::{ServerMessage, SessionId, Team};
use workspace::Member;

use super::rig::Rig;

/// The leader's agent gives work to a new worker.
async fn assign(rig: &Rig, team: &Team, prompt: &str) -> SessionId {
    let leader = Member { team: team.id, session: team.leader_session_id };
    let assign = format!(r#"{{"type":"assign","team_id":"{}","prompt":"{prompt}"}}"#, team.id);
    match rig.say_as(Some(leader), &assign).await.unwrap() {
        ServerMessage::WorkerAssigned(made) => made.worker_session_id,
        other => panic!("{other:?}"),
    }
}

/// A team whose worker is done, and the prompt about that, which its leader was not given yet.
async fn with_news(rig: &Rig) -> (Team, String) {
    let team = rig.create().await;
    let ann = assign(rig, &team, "work").await;
    rig.sessions.lock().all.get_mut(&team.leader_session_id).unwrap().is_idle = false;
    rig.begin(ann).await;
    rig.end(ann, true, "done").await;
    let news = format!("[team: worker, session {ann}, is done]\n\ndone");
    (team, news)
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_has_ended_its_turn_hears_of_the_workers_that_it_assigned() {
    let rig = Rig::start().await;
    let (team, news) = with_news(&rig).await;
    let leader = team.leader_session_id;
    assert!(rig.given(leader).is_empty(), "it may still wait itself");
    is_idle(&rig, leader);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.given(leader), [news]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_hears_nothing_twice_and_nothing_of_work_that_others_gave() {
    let rig = Rig::start().await;
    let (team, _) = with_news(&rig).await;
    let leader = team.leader_session_id;
    // The leader waits, and gets the result.
    rig.wait(&format!(r#""team_id":"{}""#, team.id)).await;
    is_idle(&rig, leader);
    let bob = rig.assign(team.id, "somebody else's").await;
    rig.begin(bob).await;
    rig.end(bob, true, "done").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(rig.given(leader).is_empty());
}

fn is_idle(rig: &Rig, leader: SessionId) {
    rig.sessions.lock().all.get_mut(&leader).unwrap().is_idle = true;
}

#[tokio::test(start_paused = true)]
async fn a_result_that_a_leader_was_not_told_is_told_after_a_restart() {
    let rig = Rig::start().await;
    let (team, news) = with_news(&rig).await;
    let leader = team.leader_session_id;
    let rig = rig.restart().await;
    is_idle(&rig, leader);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.given(leader), std::slice::from_ref(&news));
    // The daemon dies before the turn with this prompt is over, so the leader gets it again.
    assert_eq!(rig.begin(leader).await, news);
    let rig = rig.restart().await;
    is_idle(&rig, leader);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.begin(leader).await, news);
    rig.end(leader, true, "I see").await;
    let rig = rig.restart().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(rig.given(leader).is_empty(), "it has heard of it");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_has_no_room_for_its_news_is_told_later() {
    let rig = Rig::start().await;
    let (team, news) = with_news(&rig).await;
    let leader = team.leader_session_id;
    rig.sessions.lock().all.get_mut(&leader).unwrap().is_full = true;
    is_idle(&rig, leader);
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.sessions.lock().all.get_mut(&leader).unwrap().is_full = false;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.given(leader), [news]);
}

#[tokio::test(start_paused = true)]
async fn news_of_a_turn_that_the_daemons_death_ended_are_delivered_again() {
    let (rig, team) = Rig::with_team().await;
    let leader = team.leader_session_id;
    let ann = assign(&rig, &team, "work").await;
    rig.relay(team.id, ann, None, "look at this").await.unwrap();
    let message = rig.begin(leader).await;
    rig.begin(ann).await;
    rig.end(ann, true, "done").await;
    rig.wait(&format!(r#""team_id":"{}""#, team.id)).await;
    let rig = rig.restart().await;
    assert_eq!(rig.begin(leader).await, message);
    rig.end(leader, true, "I see").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let news = format!("[team: worker, session {ann}, is done]\n\ndone");
    assert_eq!(rig.begin(leader).await, news);
    rig.end(leader, true, "I see").await;
    let rig = rig.restart().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(rig.given(leader).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_result_whose_wait_failed_with_the_store_is_still_told() {
    let (rig, team) = Rig::with_team().await;
    let leader = team.leader_session_id;
    let ann = assign(&rig, &team, "work").await;
    rig.relay(team.id, ann, None, "look at this").await.unwrap();
    rig.begin(leader).await;
    let waited = rig.wait(&format!(r#""team_id":"{}","timeout_ms":10"#, team.id)).await;
    rig.begin(ann).await;
    rig.end(ann, true, "done").await;
    rig.store.fail_writes(true);
    let resume = format!(
        r#"{{"type":"team_wait","team_id":"{}","wait_id":"{}"}}"#,
        team.id,
        waited.wait_id.unwrap()
    );
    let refused = rig.say(&resume).await.unwrap_err().to_string();
    assert!(refused.contains("cannot be written down"), "{refused}");
    rig.store.fail_writes(false);
    rig.end(leader, true, "I see").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.given(leader), [format!("[team: worker, session {ann}, is done]\n\ndone")]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_turn_ends_while_the_store_fails_is_not_told_twice() {
    let rig = Rig::start().await;
    let (team, news) = with_news(&rig).await;
    let leader = team.leader_session_id;
    is_idle(&rig, leader);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.begin(leader).await, news);
    rig.store.fail_writes(true);
    rig.end_unheard(leader, true, "I see");
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.store.fail_writes(false);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(rig.given(leader).is_empty(), "{:?}", rig.given(leader));
}

#[tokio::test(start_paused = true)]
async fn a_worker_gives_no_work_to_others() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.spawn(team.id).await;
    let ann = Member { team: team.id, session: ann };
    for request in ["spawn_worker", "assign", "handoff"] {
        let request = format!(r#"{{"type":"{request}","team_id":"{}","prompt":"go"}}"#, team.id);
        let refused = rig.say_as(Some(ann), &request).await.unwrap_err().to_string();
        assert!(refused.contains("only the leader"), "{refused}");
    }
    assert_eq!(rig.sessions.lock().all.len(), 2);
}
