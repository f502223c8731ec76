//! A client on one side, a plain peer on the other.

use serde_json::{Value, json};

use super::*;

const ID: SessionId = SessionId::from_random(7);
const OTHER: SessionId = SessionId::from_random(8);

struct Pair {
    translation: Translation,
    now: Instant,
}

/// The output of a translation.
#[derive(Debug, PartialEq)]
enum Out {
    Peer(Value),
    Client(Value),
    Other(Action),
}

impl Pair {
    fn new(role: Role) -> Self {
        let translation = Translation::new("box".to_owned(), role, Hops::default(), 1 << 100);
        Self { translation, now: Instant::now() }
    }

    fn client(&mut self, message: &Value) -> Vec<Out> {
        self.translation.request(self.now, &message.to_string());
        self.out()
    }

    fn out(&mut self) -> Vec<Out> {
        let value = |text: String| serde_json::from_str(&text).unwrap();
        std::iter::from_fn(|| self.translation.next())
            .map(|action| match action {
                Action::Send(message) => Out::Peer(value(message.encode())),
                Action::Answer(reply) => Out::Client(value(reply.encode())),
                Action::Pass(text) => Out::Client(value(text)),
                other => Out::Other(other),
            })
            .collect()
    }

    /// A request, and its id.
    fn asked(&mut self, message: &Value) -> String {
        let out = self.client(message);
        let [Out::Other(Action::Expect(expected)), Out::Peer(request)] = &out[..] else {
            panic!("{out:?}")
        };
        assert_eq!((&request["type"], &request["hops"]), (&json!("forwarded_request"), &json!(4)));
        assert_eq!(request["request_id"], *expected);
        let payload: Value = serde_json::from_str(request["payload"].as_str().unwrap()).unwrap();
        assert_eq!(payload, *message);
        expected.clone()
    }

    fn answered(&mut self, id: &str, payload: &Value) -> Vec<Out> {
        self.translation.response(id, payload.to_string());
        self.out()
    }
}

fn client(message: Value) -> Out {
    Out::Client(message)
}

fn of(kind: &str) -> Value {
    json!({"type": kind, "session_id": ID})
}

fn input(id: Option<&str>) -> Value {
    let mut input = json!({"type": "send_input", "session_id": ID, "input": "hello"});
    if let Some(id) = id {
        input["input_id"] = json!(id);
    }
    input
}

fn words(out: &[Out]) -> &str {
    let [.., Out::Client(error)] = out else { panic!("{out:?}") };
    assert_eq!(error["type"], "error");
    error["message"].as_str().unwrap()
}

#[test]
fn what_concerns_a_session_is_forwarded_and_answered() {
    let mut pair = Pair::new(Role::Write);
    let rename = json!({"type": "rename_session", "session_id": ID, "name": "new"});
    for request in [input(None), of("interrupt"), of("kill_session"), of("get_history"), rename] {
        let id = pair.asked(&request);
        let refusal = json!({"type": "error", "message": "no"});
        assert_eq!(pair.answered(&id, &refusal), [client(refusal.clone())], "{request}");
        assert_eq!(pair.answered(&id, &refusal), [], "once");
    }
}

#[test]
fn a_client_hears_what_it_waits_for_whatever_the_peer_answers() {
    let mut pair = Pair::new(Role::Write);
    let ack = json!({"type": "input_ack", "input_id": "i"});
    let size = json!({"type": "terminal_size", "session_id": ID, "cols": 80, "rows": 24});
    let id = pair.asked(&input(Some("i")));
    assert_eq!(pair.answered(&id, &size), [client(size.clone()), client(ack.clone())]);
    let id = pair.asked(&input(Some("i")));
    assert_eq!(pair.answered(&id, &json!({"type": "who_knows"})), [client(ack)]);
    let own = json!({"type": "input_ack", "input_id": "i", "turn": 4});
    let id = pair.asked(&input(Some("i")));
    assert_eq!(pair.answered(&id, &own), [client(own.clone())]);
    let id = pair.asked(&of("kill_session"));
    assert_eq!(pair.answered(&id, &size), [client(size.clone()), client(of("session_killed"))]);
    let id = pair.asked(&of("kill_session"));
    assert_eq!(pair.answered(&id, &of("session_killed")), [client(of("session_killed"))]);
    let id = pair.asked(&of("get_history"));
    assert!(words(&pair.answered(&id, &json!({"type": "who_knows"}))).contains("cannot be read"));
}

#[test]
fn a_session_that_the_peer_does_not_run_has_ended() {
    let dead = || vec![client(of("session_killed")), Out::Other(Action::Dead(ID))];
    let mut pair = Pair::new(Role::Write);
    let id = pair.asked(&input(None));
    assert_eq!(pair.answered(&id, &of("session_unknown")), dead());
    let id = pair.asked(&input(None));
    pair.translation.disclaimed(OTHER);
    assert_eq!(pair.out(), [], "it asked for another one");
    pair.translation.disclaimed(ID);
    let mut expected = vec![Out::Other(Action::Forget(id))];
    expected.extend(dead());
    assert_eq!(pair.out(), expected);
}

#[test]
fn output_is_subscribed_to_after_what_the_client_has() {
    let mut pair = Pair::new(Role::Read);
    let out = pair.client(&json!({"type": "attach", "session_id": ID, "after_seq": 7}));
    let [attached, history, follow, Out::Peer(subscribe)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(*attached, client(of("attached")));
    let expected = json!({"type": "session_history", "session_id": ID, "last_seq": 7,
        "snapshot": null});
    assert_eq!(*history, client(expected));
    assert_eq!(*follow, Out::Other(Action::Follow(ID, 7)));
    assert_eq!(
        (&subscribe["type"], &subscribe["after_seq"]),
        (&json!("subscribe_output"), &json!(7))
    );
    let first = subscribe["subscriber_id"].clone();
    // Another session takes the place of the first.
    let out = pair.client(&json!({"type": "attach", "session_id": OTHER}));
    assert_eq!(out[0], Out::Other(Action::Unfollow));
    let unsubscribe = json!({"type": "unsubscribe_output", "subscriber_id": first});
    assert_eq!(out[1], Out::Peer(unsubscribe));
    let out = pair.client(&json!({"type": "detach"}));
    assert_eq!(out[2], client(json!({"type": "detached", "session_id": OTHER})));
    assert!(words(&pair.client(&json!({"type": "detach"}))).contains("no session"));
}

#[test]
fn a_client_that_missed_output_is_told_and_asks_again() {
    let mut pair = Pair::new(Role::Read);
    pair.translation.lagged(9);
    assert_eq!(pair.out(), [], "it is attached to nothing");
    pair.client(&json!({"type": "attach", "session_id": ID}));
    pair.translation.lagged(9);
    let out = pair.out();
    let [Out::Client(notice), .., follow, Out::Peer(subscribe)] = &out[..] else {
        panic!("{out:?}")
    };
    assert_eq!(notice["notice"]["code"], "output_lagged");
    assert_eq!(*follow, Out::Other(Action::Follow(ID, 9)));
    assert_eq!(subscribe["after_seq"], 9);
}

#[test]
fn after_a_cut_requests_fail_and_subscriptions_go_on() {
    let mut pair = Pair::new(Role::Write);
    pair.client(&json!({"type": "attach", "session_id": ID}));
    pair.client(&json!({"type": "watch_project_files", "project_id": ID}));
    pair.asked(&input(None));
    pair.translation.unlinked();
    assert!(words(&pair.out()).contains("not known"));
    pair.translation.linked_again(3);
    let sent = pair.out().into_iter().filter_map(|out| match out {
        Out::Peer(message) => Some(message["type"].as_str().unwrap().to_owned()),
        _ => None,
    });
    let sent: Vec<_> = sent.collect();
    assert_eq!(sent, ["unsubscribe_output", "subscribe_output", "subscribe_project_files"]);
}

#[test]
fn changes_of_files_are_those_of_the_present_watch() {
    let mut pair = Pair::new(Role::Read);
    let watch = json!({"type": "watch_project_files", "project_id": ID});
    let out = pair.client(&watch);
    let [Out::Other(Action::Watch(subscriber)), Out::Peer(subscribe)] = &out[..] else {
        panic!("{out:?}")
    };
    assert_eq!(
        (&subscribe["project_id"], &subscribe["subscriber_id"]),
        (&json!(ID), &json!(subscriber))
    );
    pair.translation.files_changed(subscriber);
    assert_eq!(pair.out(), [client(json!({"type": "project_files_changed", "project_id": ID}))]);
    pair.client(&json!({"type": "unwatch_project_files", "project_id": ID}));
    pair.translation.files_changed(subscriber);
    assert_eq!(pair.out(), []);
}

#[test]
fn a_peer_that_does_not_answer_in_time_costs_an_error() {
    let mut pair = Pair::new(Role::Write);
    pair.asked(&input(None));
    let due = pair.translation.due().unwrap();
    assert_eq!(due, pair.now + DEADLINE);
    pair.translation.overdue(due - Duration::from_millis(1));
    assert_eq!(pair.out(), []);
    pair.translation.overdue(due);
    assert!(words(&pair.out()).contains("did not answer within 15 s"));
    assert_eq!(pair.translation.due(), None);
}

#[test]
fn requests_that_wait_are_bounded() {
    let mut pair = Pair::new(Role::Write);
    for _ in 0..MOST_WAITING {
        pair.asked(&input(None));
    }
    assert!(words(&pair.client(&input(None))).contains("no more requests"));
}

#[test]
fn what_a_plain_peer_cannot_do_gets_words() {
    let mut pair = Pair::new(Role::Admin);
    let out = pair.client(&json!({"type": "git_status", "project_id": ID}));
    assert_eq!(words(&out), "box is a peer that takes no `git_status` from here: connect to it");
    pair.translation.request(pair.now, "{");
    assert!(words(&pair.out()).contains("not JSON"));
    assert_eq!(
        pair.client(&json!({"type": "keepalive"})),
        [client(json!({"type": "keepalive_ack"}))]
    );
    let out = pair.client(&json!({"type": "rename_node", "node_id": "n", "name": "new"}));
    assert_eq!(out[0], Out::Peer(json!({"type": "peer_rename_node", "name": "new"})));
    let Out::Client(ack) = &out[1] else { panic!("{out:?}") };
    assert_eq!((&ack["type"], &ack["ok"]), (&json!("cluster_action_ack"), &json!(true)));
}

#[test]
fn a_role_allows_what_it_allows_elsewhere() {
    let mut pair = Pair::new(Role::Read);
    assert!(words(&pair.client(&input(None))).contains("needs the role write"));
    pair.asked(&of("get_history"));
    let rename = json!({"type": "rename_node", "node_id": "n", "name": "new"});
    assert!(words(&Pair::new(Role::Write).client(&rename)).contains("needs the role admin"));
}

#[test]
fn ids_are_uuids_and_never_the_same() {
    let mut pair = Pair::new(Role::Write);
    let ids: std::collections::BTreeSet<_> = (0..100).map(|_| pair.asked(&input(None))).collect();
    assert_eq!(ids.len(), 100);
    assert!(ids.iter().all(|id| id.parse::<SessionId>().is_ok()));
}
