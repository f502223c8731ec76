//! Messages between members: stored before they are acknowledged, delivered in order, read again.

use std::time::Duration;

use protocol::workspace::{
    ServerMessage, SessionId, TeamId,
    client::{TeamInbox, TeamMessage},
};

use super::rig::Rig;

async fn inbox(rig: &Rig, team: TeamId, session: SessionId, since: Option<u64>) -> TeamInbox {
    let since = since.map_or("null".to_owned(), |since| since.to_string());
    let request = format!(
        r#"{{"type":"get_team_inbox","team_id":"{team}","session_id":"{session}","since_seq":{since}}}"#
    );
    match rig.say(&request).await.unwrap() {
        ServerMessage::TeamInbox(inbox) => inbox,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_kept_shown_to_the_addressees_viewers_and_is_its_next_prompt() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.spawn(team.id).await;
    rig.messages();
    let seq = rig.relay(team.id, team.leader_session_id, Some(ann), "go").await.unwrap();
    assert_eq!(seq, 1);
    assert!(rig.stored().iter().any(|id| id.ends_with("/message/00000000000000000001")));
    let event = rig.sessions.lock().events.remove(0);
    assert_eq!((event.only_viewers_of, event.team), (Some(ann), Some(team.id)));
    let (from_session_id, payload) = (team.leader_session_id, "go".to_owned());
    let said = TeamMessage { team_id: team.id, from_session_id, payload };
    assert_eq!(event.message, ServerMessage::TeamMessage(said));
    let leader = team.leader_session_id;
    let prompt = format!("[team message 1 from leader \"crew\", session {leader}]\n\ngo");
    assert_eq!(rig.given(ann), [prompt]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_stored_is_neither_acknowledged_nor_delivered() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.spawn(team.id).await;
    rig.messages();
    rig.store.fail_writes(true);
    let refused = rig.relay(team.id, team.leader_session_id, Some(ann), "lost").await.unwrap_err();
    assert!(refused.to_string().contains("cannot be written down"), "{refused}");
    assert!(rig.messages().is_empty() && rig.given(ann).is_empty());
    rig.store.fail_writes(false);
    let seq = rig.relay(team.id, team.leader_session_id, Some(ann), "kept").await.unwrap();
    assert_eq!(seq, 1, "the one that was lost is not there");
    assert!(rig.given(ann)[0].ends_with("kept"));
    assert_eq!(inbox(&rig, team.id, ann, None).await.messages.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_next_message_is_delivered_when_the_turn_with_the_last_one_begins() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.spawn(team.id).await;
    for payload in ["one", "two", "three"] {
        rig.relay(team.id, team.leader_session_id, Some(ann), payload).await.unwrap();
    }
    assert_eq!(rig.given(ann).len(), 1);
    assert!(rig.begin(ann).await.ends_with("one"));
    assert!(rig.begin(ann).await.ends_with("two"));
    assert!(rig.begin(ann).await.ends_with("three"));
    assert!(rig.given(ann).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_full_session_gets_the_message_when_its_turn_ends() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.assign(team.id, "work").await;
    rig.begin(ann).await;
    rig.sessions.lock().all.get_mut(&ann).unwrap().is_full = true;
    rig.relay(team.id, team.leader_session_id, Some(ann), "more").await.unwrap();
    rig.settle().await;
    assert!(rig.given(ann).is_empty());
    rig.sessions.lock().all.get_mut(&ann).unwrap().is_full = false;
    rig.end(ann, true, "done").await;
    assert!(rig.begin(ann).await.ends_with("more"));
}

#[tokio::test(start_paused = true)]
async fn a_full_session_without_turns_gets_the_message_later() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.spawn(team.id).await;
    rig.sessions.lock().all.get_mut(&ann).unwrap().is_full = true;
    rig.relay(team.id, team.leader_session_id, Some(ann), "later").await.unwrap();
    rig.settle().await;
    rig.sessions.lock().all.get_mut(&ann).unwrap().is_full = false;
    assert!(rig.given(ann).is_empty());
    tokio::time::sleep(Duration::from_secs(6)).await;
    rig.settle().await;
    assert_eq!(rig.given(ann).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_whose_turn_never_comes_is_delivered_again() {
    let (rig, team) = Rig::with_team().await;
    let ann = rig.spawn(team.id).await;
    rig.relay(team.id, team.leader_session_id, Some(ann), "again").await.unwrap();
    let lost = rig.sessions.lock().all.get_mut(&ann).unwrap().prompts.pop_front();
    drop(lost);
    rig.settle().await;
    assert!(rig.given(ann).is_empty());
    tokio::time::sleep(Duration::from_secs(6)).await;
    rig.settle().await;
    assert!(rig.given(ann)[0].ends_with("again"));
}

#[tokio::test(start_paused = true)]
async fn an_inbox_is_read_again_from_any_place() {
    let (rig, team) = Rig::with_team().await;
    let (ann, bob) = (rig.spawn(team.id).await, rig.spawn(team.id).await);
    let leader = team.leader_session_id;
    rig.relay(team.id, leader, None, "to all").await.unwrap();
    rig.relay(team.id, leader, Some(bob), "to bob").await.unwrap();
    rig.relay(team.id, bob, Some(ann), "to ann").await.unwrap();
    rig.relay(team.id, ann, None, "to the leader").await.unwrap();
    let seqs = |inbox: &TeamInbox| inbox.messages.iter().map(|one| one.seq).collect::<Vec<_>>();
    let all = inbox(&rig, team.id, ann, None).await;
    assert_eq!((seqs(&all), all.next_seq), (vec![1, 3], 5));
    assert_eq!(seqs(&inbox(&rig, team.id, ann, Some(2)).await), [3]);
    assert_eq!(seqs(&inbox(&rig, team.id, ann, None).await), [1, 3]);
    assert_eq!(seqs(&inbox(&rig, team.id, bob, None).await), [1, 2]);
    let of_leader = inbox(&rig, team.id, leader, None).await;
    assert_eq!(of_leader.messages[0].payload, "to the leader");
    assert_eq!(of_leader.messages[0].from_session_id, ann);
}

#[tokio::test(start_paused = true)]
async fn a_message_to_or_from_nobody_is_refused_in_words() {
    let (rig, team) = Rig::with_team().await;
    let leader = team.leader_session_id;
    let nobody = rig.relay(team.id, leader, None, "hello?").await.unwrap_err().to_string();
    assert!(nobody.contains("no workers"), "{nobody}");
    let stranger = SessionId::from_random(99);
    let refused = rig.relay(team.id, stranger, Some(leader), "hi").await.unwrap_err().to_string();
    assert!(refused.contains("not in the team"), "{refused}");
    let unknown = TeamId::from_random(98);
    let refused = rig.relay(unknown, leader, None, "hi").await.unwrap_err().to_string();
    assert!(refused.contains(&format!("there is no team {unknown}")), "{refused}");
}
