//! Roles, malformed messages, bounds.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use base::KeyScope;
use protocol::workspace::{
    ClientMessage, ServerMessage, client::ListSessions, limits::MAX_MESSAGE,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, duplex},
    time::{Instant, timeout},
};
use wire::{Frame, Limits, Link, Outbox, link::Role};
use workspace::{Identity, testing::soon};

use super::kit::{FAR, Kit, TOKEN};
use crate::request_server::RequestServer;

const NOBODY: &str = "00000000-0000-4000-8000-000000000001";

#[tokio::test]
async fn an_unreadable_message_is_answered_and_the_connection_stays() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    for text in [
        "",
        "{",
        "null",
        "{}",
        "{\"type\":7}",
        "{\"type\":\"nonsense\"}",
        "{\"type\":\"attach\"}",
        "{\"type\":\"attach\",\"session_id\":\"x\"}",
        "{\"type\":\"resize\",\"session_id\":\"x\",\"cols\":-1,\"rows\":99999999}",
        "{\"type\":\"auth\",\"token\":\"again\"}",
        "{\"type\":\"detach\"}",
    ] {
        client.outbox.push(text.to_owned()).unwrap();
        let answer = client.hear().await;
        assert_eq!(answer["type"], "error", "{text}: {answer}");
    }
    client.outbox.push(bytes::Bytes::from_static(b"\x01binary")).unwrap();
    assert_eq!(client.hear().await["type"], "error");
    assert_eq!(client.all_until_now().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_message_longer_than_may_be_ends_the_connection_and_a_long_one_is_read() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let long = "x".repeat(3 * 1024 * 1024);
    client.say(json!({"type": "send_input", "session_id": NOBODY, "input": long}));
    let answer = client.hear_of("error").await;
    assert!(answer["message"].as_str().unwrap().contains("input"), "{answer}");
    client.outbox.push("x".repeat(MAX_MESSAGE + 1)).unwrap();
    client.until_over().await;
}

#[tokio::test]
async fn each_role_may_do_its_own_and_is_told_what_it_lacks() {
    let kit = Kit::new().await;
    let looks = [json!({"type": "list_sessions"}), json!({"type": "list_projects"})];
    let works = json!({"type": "kill_session", "session_id": NOBODY});
    let reaches = json!({"type": "list_directory", "path": "/"});
    for (scope, may_work, may_reach) in [
        (KeyScope::WorkspaceRead, false, false),
        (KeyScope::WorkspaceWrite, true, false),
        (KeyScope::WorkspaceAdmin, true, true),
    ] {
        let mut client = kit.client_with(&kit.key(scope).1).await;
        client.ask(looks[0].clone(), "session_list").await;
        client.ask(looks[1].clone(), "project_list").await;
        client.say(works.clone());
        let worked = client.hear().await;
        assert_eq!(worked["type"] == "session_unknown", may_work, "{scope:?}: {worked}");
        client.say(reaches.clone());
        let reached = client.hear().await;
        assert_eq!(reached["type"] == "directory_listing", may_reach, "{scope:?}: {reached}");
        for (refused, may) in [(worked, may_work), (reached, may_reach)] {
            let words = refused["message"].as_str().unwrap_or_default();
            assert!(may || words.contains("needs the scope workspace:"), "{words}");
        }
    }
}

#[tokio::test]
async fn a_fast_sender_is_slowed_down_and_loses_nothing() {
    let kit = Kit::with(|settings| settings.message_rate = 10).await;
    let mut client = kit.client().await;
    tokio::time::pause();
    let began = Instant::now();
    for _ in 0..40 {
        client.say(json!({"type": "keepalive"}));
    }
    for _ in 0..40 {
        assert_eq!(client.hear().await["type"], "keepalive_ack");
    }
    let took = began.elapsed().as_millis();
    assert!((2800..3200).contains(&took), "{took} ms");
}

/// An authenticated client that reads nothing any more.
async fn deaf(kit: &Kit) -> Link {
    deaf_with_outbox(kit).await.0
}

async fn deaf_with_outbox(kit: &Kit) -> (Link, wire::Outbox) {
    let (far, near) = duplex(1024);
    let _serving = kit.serve(near, FAR);
    // What it has not sent stays in its outbox.
    let limits = Limits { write_buffer: 1024, ..Limits::default() };
    let (mut link, outbox) = Link::within(Box::pin(far), Role::Client, limits);
    outbox.push(json!({"type": "auth", "token": TOKEN}).to_string()).unwrap();
    let Ok(Some(Frame::Text(text))) = soon(link.next()).await else { panic!("no answer") };
    assert!(text.contains("true"), "{text}");
    (link, outbox)
}

#[tokio::test]
async fn a_client_that_reads_nothing_holds_nobody_up_and_is_told_how_all_is_when_it_reads() {
    let kit = Kit::new().await;
    let mut deaf = deaf(&kit).await;
    let mut other = kit.client().await;
    for number in 0..4000 {
        let words = format!("{number} {}", "x".repeat(500));
        kit.workspace.events.tell(ServerMessage::error(words));
        if number % 100 == 0 {
            // The others must not fall behind.
            other.all_until_now().await;
        }
    }
    other.all_until_now().await;
    let (mut errors, mut lists) = (0, Vec::new());
    while lists.len() < 3 {
        let Ok(Some(Frame::Text(text))) = soon(deaf.next()).await else { panic!("it is over") };
        match serde_json::from_str::<Value>(&text).unwrap()["type"].as_str().unwrap() {
            "error" => errors += 1,
            list => lists.push(list.to_owned()),
        }
    }
    assert!(errors < 4000, "it has missed some");
    assert_eq!(lists, ["session_list", "project_list", "team_list"]);
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_all_leaves_nothing_behind() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let dir = kit.dir();
    let open = json!({"type": "open_terminal", "working_dir": dir, "command": "cat"});
    let opened = client.ask(open, "terminal_opened").await;
    let id = opened["session"]["id"].clone();
    client.ask(json!({"type": "attach", "session_id": id}), "session_history").await;
    drop(client.link);
    soon(client.serving).await.unwrap();
    assert_eq!(kit.socket.clients(), 0);
    let mut other = kit.client().await;
    let listed = other.ask(json!({"type": "list_sessions"}), "session_list").await;
    assert_eq!(listed["sessions"][0]["attached_clients"], 0);
    assert_eq!(listed["sessions"][0]["status"], "detached");
    kit.shut_down().await;
}

#[tokio::test]
async fn bytes_that_are_no_websocket_end_the_connection() {
    let kit = Kit::new().await;
    let (mut far, near) = duplex(1024);
    let serving = kit.serve(near, FAR);
    tokio::io::AsyncWriteExt::write_all(&mut far, &[0xff; 64]).await.unwrap();
    soon(serving).await.unwrap();
    let mut rest = Vec::new();
    let read = timeout(Duration::from_secs(5), far.read_to_end(&mut rest)).await;
    assert!(read.is_ok());
}

#[tokio::test]
async fn a_client_that_leaves_a_long_answer_unread_is_dropped_when_others_wait() {
    let kit = Kit::new().await;
    let mut client = kit.client().await;
    let id = kit.project(&mut client).await;
    let file = kit.site.dir.path().join("f");
    std::fs::File::create(file).unwrap().set_len(8 << 20).unwrap();
    let read = json!({"type": "read_project_file_chunk", "request_id": "r", "project_id": id,
        "path": "f", "offset": 0, "len": 8 << 20});
    // Only the memory for making one of these answers is left.
    let answers = &kit.socket.0.answers;
    let one = 24 * 1024;
    let others = u32::try_from(answers.available_permits() - one).unwrap();
    let _others = answers.acquire_many(others).await.unwrap();
    let (mut deaf, outbox) = deaf_with_outbox(&kit).await;
    outbox.push(read.to_string()).unwrap();
    let deaf = tokio::spawn(async move { deaf.write_only().await });
    let is_made = async {
        while !(1..one).contains(&answers.available_permits()) {
            tokio::task::yield_now().await;
        }
    };
    soon(is_made).await;
    client.say(read);
    assert_eq!(client.all_until_now().await, Vec::<Value>::new());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    assert_eq!(client.hear_of("project_file_chunk").await["request_id"], "r");
    deaf.abort();
}

/// The memory of a queued message.
fn outbox_cost(message: &str) -> usize {
    let (outbox, _reader) = Outbox::detached();
    outbox.push(message.to_owned()).unwrap();
    outbox.queued()
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_paused_and_loses_nothing() {
    let kit = Kit::with(|settings| settings.message_rate = 1_000_000).await;
    let (mut deaf, outbox) = deaf_with_outbox(&kit).await;
    let ask = json!({"type": "get_cluster_config"}).to_string();
    let requests = 25_000;
    (0..requests).for_each(|_| outbox.push(ask.clone()).unwrap());
    tokio::time::pause();
    let stuck = timeout(Duration::from_secs(1), deaf.write_only()).await;
    tokio::time::resume();
    assert!(stuck.is_err(), "{stuck:?}");
    let one = outbox_cost(&ask);
    let heard = requests - outbox.queued() / one;
    let (mut answers, mut length) = (0, 0);
    while answers < requests {
        let Ok(Some(Frame::Text(text))) = soon(deaf.next()).await else { panic!("{answers}") };
        length = text.len();
        answers += 1;
    }
    // The book's bound, and what is on its way: in the pipe, and in the buffers of the server's link.
    let bound = 2 * 1024 * 1024 + 768 * 1024;
    let taken = heard * (length + one - ask.len());
    assert!(taken < bound, "{heard} were heard, of {length} bytes each, which take {taken}");
}

#[tokio::test]
async fn a_request_that_its_lane_refuses_is_marked_as_answered() {
    let kit = Kit::new().await;
    let (outbox, _reader) = Outbox::detached();
    let me =
        Identity { who: "guest".to_owned(), role: protocol::workspace::Role::Admin, member: None };
    let mut server =
        RequestServer::new(&kit.socket.0, kit.socket.0.next_client(), me, outbox, false);
    let answered = Arc::<Mutex<Vec<usize>>>::default();
    // One at once and 64 that wait are the bound.
    for number in 1..=66 {
        let answered = Arc::clone(&answered);
        let done = move || answered.lock().unwrap().push(number);
        let request = ClientMessage::ListSessions(ListSessions::default());
        server.request(request, None, done).await.unwrap();
    }
    assert!(answered.lock().unwrap().contains(&66));
    kit.shut_down().await;
}
