//! Lines of agents, and the messages beside them.

use protocol::workspace::{
    AgentEvent, PermissionOutcome, ServerMessage, SessionMode, SessionStatus,
};
use serde_json::json;
use session::agent::Usage;

use super::{bare::Bare, seen::Watcher};
use crate::{
    engine::PermissionAnswer,
    identity::ClientId,
    sessions::{Activity, Feed},
    testing::soon,
};

fn text(text: &str) -> AgentEvent {
    AgentEvent::Text { text: text.to_owned(), delta: false, unasked: false }
}

fn line(feed: &Feed, number: usize) {
    feed.line(format!("{{\"line\":{number}}}\n"), vec![text(&format!("{number}"))]);
}

fn events(seen: &Watcher) -> Vec<String> {
    let texts = seen.messages.iter().filter_map(|message| match message {
        ServerMessage::AgentEvent(it) => match &it.event {
            AgentEvent::Text { text, .. } => Some(text.clone()),
            _ => None,
        },
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn a_lines_events_follow_it_once_for_every_returning_viewer() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Sdk);
    let mut first = Watcher::begun(bare.attach(session.id, 1, None)).await;
    line(&feed, 1);
    line(&feed, 2);
    feed.event(AgentEvent::Notice { message: "no line said this".to_owned() });
    line(&feed, 3);
    first.catch_up().await;
    assert_eq!(events(&first), ["1", "2", "3"]);
    assert_eq!(first.text, "{\"line\":1}\n{\"line\":2}\n{\"line\":3}\n");
    let seqs = first.messages.iter().filter_map(|message| match message {
        ServerMessage::AgentEvent(it) => Some(it.seq),
        _ => None,
    });
    assert!(seqs.eq([1, 2, 2, 3]));
    let mut second = Watcher::of(bare.attach(session.id, 2, Some(2)));
    second.catch_up().await;
    assert_eq!((events(&second), second.snapshots), (vec!["3".to_owned()], 0));
}

#[tokio::test]
async fn the_snapshot_of_an_agent_is_its_newest_whole_lines() {
    let bare = Bare::with(|settings| settings.log_bytes = 64 * 1024);
    let (session, feed, _) = bare.session(SessionMode::Sdk);
    for number in 0..20_000 {
        line(&feed, number);
        if number % 1000 == 0 {
            bare.sessions.0.shared.writer.flush().await;
        }
    }
    let mut attachment = bare.attach(session.id, 1, None);
    let Some(crate::sessions::StreamItem::Message(ServerMessage::SessionHistory(history))) =
        attachment.next().await
    else {
        panic!("no history first")
    };
    let snapshot = history.snapshot.unwrap();
    assert!((100_000..=256 * 1024).contains(&snapshot.data.len()), "{}", snapshot.data.len());
    assert!(
        snapshot.data.starts_with("{\"line\":") && snapshot.data.ends_with("{\"line\":19999}\n")
    );
}

#[tokio::test]
async fn a_question_waits_for_whoever_comes_and_is_answered_once() {
    let bare = Bare::new();
    let (session, feed, heard) = bare.session(SessionMode::Sdk);
    feed.ask("toolu_1".to_owned(), "Bash".to_owned(), json!({"command": "ls"}));
    let mut seen = Watcher::begun(bare.attach(session.id, 1, None)).await;
    seen.catch_up().await;
    drop(seen);
    let mut seen = Watcher::begun(bare.attach(session.id, 2, None)).await;
    seen.catch_up().await;
    let requests = seen.messages.iter().filter_map(|message| match message {
        ServerMessage::PermissionRequest(request) => Some(request.request_id),
        _ => None,
    });
    let [id] = requests.collect::<Vec<_>>()[..] else { panic!("it is asked once") };
    assert_eq!(bare.sessions.asker(&id.to_string()), Some(session.id));
    let answer = PermissionAnswer { request_id: id.to_string(), allow: true, message: None };
    bare.sessions.permit(session.id, answer.clone()).unwrap();
    assert_eq!(heard.answers.lock().unwrap()[0].request_id, "toolu_1");
    feed.resolved("toolu_1", PermissionOutcome::Allow);
    seen.catch_up().await;
    assert!(
        matches!(seen.messages.last(), Some(ServerMessage::PermissionResolved(it)) if it.request_id == id)
    );
    let second = bare.sessions.permit(session.id, answer).unwrap_err();
    assert!(second.to_string().contains("nobody asks"), "{second}");
}

#[tokio::test]
async fn every_change_of_the_number_of_open_questions_is_told_to_all_clients() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Sdk);
    let mut events = bare.sessions.0.shared.events.subscribe();
    let mut asks = async || loop {
        let message = soon(events.recv()).await.unwrap().message;
        if let ServerMessage::SessionStatusChanged(it) = message {
            break it.session.asks;
        }
    };
    let ask = |id: &str| feed.ask(id.to_owned(), "Bash".to_owned(), json!({}));
    assert_eq!(session.info().asks, 0);
    ask("toolu_1");
    assert_eq!(asks().await, 1);
    ask("toolu_2");
    assert_eq!(asks().await, 2);
    feed.resolved("toolu_1", PermissionOutcome::Allow);
    assert_eq!(asks().await, 1);
    feed.resolved("toolu_2", PermissionOutcome::Expired);
    assert_eq!(asks().await, 0);
}

#[tokio::test]
async fn a_new_viewer_misses_no_event_before_its_history() {
    for after in [None, Some(1)] {
        let bare = Bare::new();
        let (session, feed, _) = bare.session(SessionMode::Sdk);
        line(&feed, 1);
        let attachment = bare.attach(session.id, 1, after);
        feed.event(AgentEvent::TurnStarted { turn: 1, prompt: None });
        feed.ask("toolu_1".to_owned(), "Bash".to_owned(), json!({}));
        line(&feed, 2);
        let mut seen = Watcher::begun(attachment).await;
        seen.catch_up().await;
        let is_start = |message: &&ServerMessage| {
            matches!(message, ServerMessage::AgentEvent(it)
                if it.event == AgentEvent::TurnStarted { turn: 1, prompt: None })
        };
        assert_eq!(seen.messages.iter().filter(is_start).count(), 1, "{:?}", seen.messages);
        assert_eq!(events(&seen), ["2"], "what was before it came is not said");
        let is_asked =
            |message: &&ServerMessage| matches!(message, ServerMessage::PermissionRequest(_));
        assert_eq!(seen.messages.iter().filter(is_asked).count(), 1, "{:?}", seen.messages);
    }
}

#[tokio::test]
async fn a_turn_is_seen_in_the_status_and_its_use_after_its_last_line() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Sdk);
    assert_eq!(session.info().status, SessionStatus::Idle);
    let mut seen = Watcher::begun(bare.attach(session.id, 1, None)).await;
    feed.turn_started(1, true);
    feed.activity(Activity::Working);
    assert_eq!(session.info().status, SessionStatus::Running);
    feed.conversation("conversation-1".to_owned());
    line(&feed, 1);
    let usage = Usage { input_tokens: 10, output_tokens: 2, cost_usd: Some(0.5) };
    feed.turn_ended(1, true, Some("done".to_owned()), usage);
    feed.activity(Activity::Idle);
    seen.catch_up().await;
    let [.., ServerMessage::AgentEvent(_), ServerMessage::Usage(usage)] = &seen.messages[..] else {
        panic!("{:?}", seen.messages)
    };
    assert_eq!((usage.turn, usage.input_tokens, usage.output_tokens), (1, 10, 2));
    let stored =
        store::WorkspaceStore::load_facts(&*bare.store, crate::sessions::life::facts::KIND)
            .unwrap();
    assert!(stored[0].json.contains("conversation-1") && stored[0].json.contains("\"turn\":1"));
}

#[tokio::test]
async fn a_refused_input_may_be_sent_again() {
    let bare = Bare::new();
    let (session, _, heard) = bare.session(SessionMode::Pty);
    let send = || bare.sessions.type_in(session.id, ClientId(1), "x".into(), Some("id"));
    heard.refuses.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(send().is_err());
    heard.refuses.store(false, std::sync::atomic::Ordering::Relaxed);
    assert!(send().unwrap().is_some());
    assert!(send().unwrap().is_none());
    assert_eq!(heard.typed.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_events_of_turns_are_read_by_their_numbers_from_memory_and_disk() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Sdk);
    let mut seen = Watcher::begun(bare.attach(session.id, 1, None)).await;
    let prompt = Some("why?".to_owned());
    feed.event(AgentEvent::TurnStarted { turn: 1, prompt });
    // More than memory keeps.
    let long = "x".repeat(100 * 1024);
    for number in 0..9 {
        feed.line(format!("{number}\n"), vec![text(&format!("{number}{long}"))]);
        bare.sessions.0.shared.writer.flush().await;
    }
    feed.event(AgentEvent::Notice { message: "not written yet".to_owned() });
    seen.catch_up().await;
    let numbers = seen.messages.iter().filter_map(|message| match message {
        ServerMessage::AgentEvent(it) => it.number,
        _ => None,
    });
    assert!(numbers.eq(1..=11), "viewers get the same numbers");
    let turns = |after, before, most| bare.sessions.turns(session.id, (after, before), most);
    let whole = turns(0, u64::MAX, 4 << 20).await.unwrap();
    assert!(whole.events.iter().map(|it| it.number).eq(1..=11) && !whole.more);
    let AgentEvent::TurnStarted { turn: 1, prompt } = &whole.events[0].event else { panic!() };
    assert_eq!(prompt.as_deref(), Some("why?"));
    let newest = turns(0, u64::MAX, 150 * 1024).await.unwrap();
    assert!(newest.events.iter().map(|it| it.number).eq(10..=11) && newest.more);
    for (after, before, expected) in [(9, u64::MAX, 10..12), (1, 4, 2..4), (3, 4, 4..4)] {
        let part = turns(after, before, 4 << 20).await.unwrap();
        assert!(part.events.iter().map(|it| it.number).eq(expected), "{after} {before}");
        assert!(!part.more, "{after} {before}");
    }
}
