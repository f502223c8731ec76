//! The sessions that teams make.

use std::time::Duration;

use protocol::workspace::{ServerMessage, SessionMode};

use super::rig::Rig;

#[tokio::test(start_paused = true)]
async fn a_team_is_made_around_a_leader_that_is_an_agent() {
    let rig = Rig::start().await;
    let request = r#"{"type":"create_team","name":"crew","working_dir":"/work","model":"opus"}"#;
    let ServerMessage::TeamCreated(made) = rig.say(request).await.unwrap() else { panic!() };
    let leader = &rig.sessions.lock().all[&made.leader_session.id].facts;
    assert_eq!((leader.mode, &*leader.provider), (SessionMode::Sdk, "claude"));
    assert_eq!((leader.team_id, leader.is_team_leader), (Some(made.team.id), true));
    assert_eq!((leader.name.as_deref(), leader.model.as_deref()), (Some("crew"), Some("opus")));
    assert_eq!(made.team.leader_session_id, made.leader_session.id);
}

#[tokio::test(start_paused = true)]
async fn a_worker_starts_as_its_leader_did_unless_it_is_told_otherwise() {
    let rig = Rig::start().await;
    let request = r#"{"type":"create_team","name":"crew","working_dir":"/work","model":"opus",
        "extra_args":["--verbose"],"provider":"codex"}"#;
    let ServerMessage::TeamCreated(made) = rig.say(request).await.unwrap() else { panic!() };
    let spawn = async |more: &str| {
        let request = format!(r#"{{"type":"spawn_worker","team_id":"{}"{more}}}"#, made.team.id);
        let ServerMessage::WorkerSpawned(made) = rig.say(&request).await.unwrap() else { panic!() };
        rig.sessions.lock().all[&made.worker_session.id].facts.clone()
    };
    let same = spawn("").await;
    assert_eq!((&*same.working_dir, &*same.provider), ("/work", "codex"));
    assert_eq!(
        (same.model.as_deref(), &same.extra_args[..]),
        (Some("opus"), &["--verbose".to_owned()][..])
    );
    let other = spawn(r#","provider":"claude","working_dir":"/tmp","mode":"pty""#).await;
    assert_eq!((&*other.working_dir, other.mode), ("/tmp", SessionMode::Pty));
    assert_eq!((other.model, other.extra_args.len()), (None, 0));
    assert!(!other.is_team_leader && other.team_id == Some(made.team.id));
}

#[tokio::test(start_paused = true)]
async fn a_bad_member_is_refused() {
    let rig = Rig::start().await;
    let refused = rig.say(r#"{"type":"create_team","name":"x","mode":"adopted"}"#).await;
    assert!(refused.unwrap_err().to_string().contains("adopted"));
    let refused =
        rig.say(r#"{"type":"create_team","name":"x","extra_args":["--dangerous"]}"#).await;
    assert!(refused.unwrap_err().to_string().contains("--dangerous"));
    rig.sessions.lock().refuses = true;
    let refused = rig.say(r#"{"type":"create_team","name":"x","working_dir":"/"}"#).await;
    assert!(refused.unwrap_err().to_string().contains("no more sessions"));
    assert!(rig.stored().is_empty() && rig.sessions.lock().all.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_team_that_cannot_be_kept_leaves_no_session_behind() {
    let rig = Rig::start().await;
    rig.store.fail_writes(true);
    let refused = rig.say(r#"{"type":"create_team","name":"x","working_dir":"/"}"#).await;
    assert!(refused.unwrap_err().to_string().contains("cannot be written down"));
    assert!(rig.sessions.lock().all.is_empty());
    rig.store.fail_writes(false);
    rig.create().await;
}

#[tokio::test(start_paused = true)]
async fn a_team_whose_leader_has_ended_takes_no_workers() {
    let (rig, team) = Rig::with_team().await;
    rig.die(team.leader_session_id).await;
    let request = format!(r#"{{"type":"assign","team_id":"{}","prompt":"go"}}"#, team.id);
    assert!(rig.say(&request).await.unwrap_err().to_string().contains("inactive"));
    assert_eq!(rig.sessions.lock().all.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_while_a_worker_is_made_leaves_it_in_its_team() {
    let rig = std::sync::Arc::new(Rig::start().await);
    let team = rig.create().await;
    let request = format!(r#"{{"type":"assign","team_id":"{}","prompt":"go"}}"#, team.id);
    let beside = std::sync::Arc::clone(&rig);
    let asking = tokio::spawn(async move { beside.say(&request).await });
    while rig.sessions.lock().all.len() < 2 {
        tokio::task::yield_now().await;
    }
    asking.abort();
    let _aborted = asking.await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.settle().await;
    let waited = rig.wait(&format!(r#""team_id":"{}","timeout_ms":10"#, team.id)).await;
    assert_eq!(waited.pending_workers.len(), 1);
}
