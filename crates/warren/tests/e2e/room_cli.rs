//! Rooms from the command line: made, joined, asked, watched, changed and closed.

use serde_json::{Value, json};
use testkit::{DEADLINE, FakeHub, Gate, MockBackend, RefusingPort, Reply, eventually};

use crate::{
    common::serve,
    room_people::{Person, saying},
};

#[tokio::test]
async fn friends_share_a_model_with_two_commands_on_each_side() {
    let daemon = serve().start().await;
    let (host, friend) = (Person::of(&daemon.url()), Person::of(&daemon.url()));
    let made = host.room(&["create", "--name", "Friends", "--qr"]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let invitation = made.out.lines().find(|line| line.contains("warren room join")).unwrap();
    let code = invitation.split_whitespace().nth(3).unwrap();
    assert!(made.out.contains(&format!("{}/rooms/{code}/v1", daemon.url())), "{made:?}");
    assert!(made.out.contains('█') && made.err.contains("Only this machine"), "{made:?}");

    let backend = saying(&["Hel", "lo\n", "you"]).await;
    let mut join = friend.joins(code, &backend, &["--nickname", "Ann"]).await;
    let asked = host.room(&["ask", code, "hi"]).await;
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "Hello\nyou\n"), "{asked:?}");
    assert!(asked.err.contains("7 tokens") && asked.err.contains("tokens/s"), "{asked:?}");
    let url = format!("{}/rooms/{code}", daemon.url());
    let asked = host.room(&["ask", &url, "--private", "--model", "model:m", "hi"]).await;
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "Hello\nyou\n"), "{asked:?}");
    join.line_with(" answered · ").await;
    join.sigterm();
    assert_eq!(join.exit().await, Some(0), "{}", join.log());
    assert!(host.participants(code).await.is_empty());
    let nobody = host.room(&["ask", code, "hi"]).await;
    let said = nobody.err.contains("nobody lends a model in this room: `warren room join CODE`");
    assert!(nobody.code == Some(1) && said, "{nobody:?}");
}

/// The makers of a room lend in the same command. Their file's aliases are known in the room.
#[tokio::test]
async fn who_makes_a_room_can_lend_to_it_at_once() {
    let daemon = serve().start().await;
    let host = Person::of(&daemon.url());
    let backend = saying(&["hi"]).await;
    host.configures("[models.quick]\ntargets = ['gone', 'm']\n");
    let args = ["create", "--lend", "--backend", &backend.url(), "--nickname", "Ann"];
    let mut lending = host.start(&args);
    let joined = lending.line_with("joined").await;
    let code = joined.split_whitespace().nth(1).unwrap().to_owned();
    lending.line_with("offers m, quick").await;
    let models = daemon.client().get(&format!("/rooms/{code}/v1/models")).await.json();
    let ids: Vec<&str> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["m", "quick"]);
    let asked = host.room(&["ask", &code, "--model", "quick", "hi"]).await;
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "hi\n"), "{asked:?}");
    assert_eq!(backend.request().await.json()["model"], "m");
    lending.sigterm();
    assert_eq!(lending.exit().await, Some(0), "{}", lending.log());
    assert!(lending.log().contains("To lend again: warren room join"), "{}", lending.log());
    assert!(host.participants(&code).await.is_empty());

    let unsaid = host.room(&["create", "--demo"]).await;
    assert!(unsaid.code == Some(2) && unsaid.err.contains("--lend"), "{unsaid:?}");
}

#[tokio::test]
async fn anybody_who_is_asked_answers_with_a_model_for_chat() {
    let daemon = serve().start().await;
    let person = Person::of(&daemon.url());
    let code = person.creates(&["--name", "x"]).await;
    let embeds = saying(&["never"]).await;
    embeds.set_models(&["nomic-embed-text"]);
    let _embeds = person.joins(&code, &embeds, &["--id", "p1"]).await;
    let nobody = person.room(&["ask", &code, "hi"]).await;
    assert_eq!(nobody.code, Some(4), "{nobody:?}");
    let both = saying(&["yes"]).await;
    both.set_models(&["nomic-embed-text", "qwen3:8b"]);
    let _both = person.joins(&code, &both, &["--id", "p2"]).await;
    let asked = person.room(&["ask", &code, "hi"]).await;
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "yes\n"), "{asked:?}");
    assert_eq!(both.request().await.json()["model"], "qwen3:8b");
}

#[tokio::test]
async fn an_answer_can_be_read_by_a_program_and_its_failure_is_told() {
    let daemon = serve().start().await;
    let person = Person::of(&daemon.url());
    let code = person.creates(&["--name", "x"]).await;
    let backend = saying(&["a", "b"]).await;
    let _join = person.joins(&code, &backend, &["--id", "p1"]).await;
    let asked = person.room(&["ask", &code, "--json", "hi"]).await;
    let lines: Vec<Value> = asked.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let token = |text: &str| json!({"type": "token", "participantId": "p1", "token": text});
    assert_eq!(lines[..2], [token("a"), token("b")]);
    assert_eq!(
        (lines[2]["type"].as_str(), &lines[2]["metrics"]["tokens"]),
        (Some("complete"), &json!(7))
    );
    for (private, words) in [("--private", "boom"), ("--model=p1", "boom")] {
        backend.then(Reply::json(500, &json!({"error": {"message": "boom"}})));
        let failed = person.room(&["ask", &code, private, "hi"]).await;
        assert_eq!(failed.code, Some(1), "{failed:?}");
        assert!(failed.err.contains(words), "{failed:?}");
    }
}

#[tokio::test]
async fn an_interrupt_cancels_the_question() {
    let daemon = serve().start().await;
    let person = Person::of(&daemon.url());
    let code = person.creates(&["--name", "x"]).await;
    let backend = MockBackend::start(&["m"]).await;
    let chunk = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "a"}}]}));
    let _join = person.joins(&code, &backend, &[]).await;
    for how in ["--private", "--model=m"] {
        let gate = Gate::closed();
        gate.open(1);
        backend.then(Reply::stream([chunk.clone(), chunk.clone()], &gate));
        let mut ask = person.start(&["ask", &code, "--json", how, "hi"]);
        ask.line_with("token").await;
        ask.sigterm();
        assert_eq!(ask.exit().await, Some(1));
        assert!(ask.log().contains("cancelled"), "{}", ask.log());
    }
    backend.aborted(2).await;
}

#[tokio::test]
async fn a_room_is_the_hosts_who_made_it() {
    let daemon = serve().start().await;
    let (host, other) = (Person::of(&daemon.url()), Person::of(&daemon.url()));
    let code = host.creates(&["--name", "Den", "--password", "pw", "--expires", "2h"]).await;
    let listed = other.room(&["list", "--json"]).await.json();
    assert_eq!(listed["rooms"][0]["spokenCode"], json!(code));
    assert_eq!(listed["rooms"][0]["server"], json!(daemon.url()));

    let shown = other.room(&["show", &code]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("Den") && shown.err.contains("password"), "{shown:?}");
    let wrong = other.room(&["show", &code, "--password", "no"]).await;
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.err.contains("Invalid password"), "{wrong:?}");
    assert!(other.room(&["join", &code, "--demo"]).await.err.contains("has a password"));

    let cases: [&[&str]; 2] = [&["close", &code, "--yes"], &["change", &code, "--name", "Mine"]];
    for case in cases {
        let refused = other.room(case).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains("only the host"), "{refused:?}");
    }
    assert_eq!(host.room(&["close", &code]).await.code, Some(2), "nobody could be asked");
    assert_eq!(host.room(&["change", &code]).await.code, Some(2));
    let changed =
        host.room(&["change", &code, "--name", "Lair", "--no-password", "--json"]).await.json();
    assert_eq!((&changed["name"], &changed["passwordProtected"]), (&json!("Lair"), &json!(false)));
    assert!(other.participants(&code).await.is_empty());
    assert_eq!(host.room(&["close", &code, "--yes"]).await.code, Some(0));
    assert_eq!(host.room(&["show", &code]).await.code, Some(4));
}

#[tokio::test]
async fn a_watch_goes_on_through_a_restart_of_the_server_until_the_room_is_closed() {
    let mut daemon = serve().start().await;
    let person = Person::of(&daemon.url());
    let code = person.creates(&["--name", "x"]).await;
    let (mut words, mut lines) =
        (person.start(&["watch", &code]), person.start(&["watch", &code, "--json"]));
    lines.line_with("\"connected\"").await;
    let backend = saying(&["one\n", "two"]).await;
    // The one for people does not say when it has begun: the command is repeated until it has.
    let told = async || {
        let mut join = person.joins(&code, &backend, &["--nickname", "Ann", "--no-specs"]).await;
        join.sigterm();
        join.exit().await;
        words.log().contains("joined with m")
    };
    eventually("somebody being told", DEADLINE, told).await;
    daemon.stop_and_restart().await;
    words.line_with("trying again").await;
    lines.lines_with("\"connected\"", 2).await;
    let _join = person.joins(&code, &backend, &["--nickname", "Ann"]).await;
    words.lines_with("joined with m on", 1).await;
    assert_eq!(person.room(&["ask", &code, "hi"]).await.code, Some(0));
    words.line_with("Ann: one").await;
    words.line_with("✓ Ann answered with m: 7 tokens").await;
    lines.line_with("\"llm.token\"").await;
    assert_eq!(person.room(&["close", &code, "--yes"]).await.code, Some(0));
    assert_eq!((words.exit().await, lines.exit().await), (Some(0), Some(0)));
    words.line_with("the room is closed").await;
}

#[tokio::test]
async fn a_participant_that_is_kicked_or_leaves_stops_lending() {
    let daemon = serve().start().await;
    let (host, friend) = (Person::of(&daemon.url()), Person::of(&daemon.url()));
    let code = host.creates(&["--name", "x"]).await;
    let backend = saying(&["a"]).await;
    let mut join = friend.joins(&code, &backend, &["--nickname", "Ann"]).await;
    assert_eq!(friend.room(&["kick", &code, "Ann"]).await.code, Some(1), "it is not the host");
    assert_eq!(host.room(&["kick", &code, "Ann"]).await.code, Some(0));
    assert_eq!(join.exit().await, Some(1));
    assert!(join.log().contains("removed"), "{}", join.log());
    assert_eq!(friend.room(&["leave", &code]).await.code, Some(4));

    let mut join = friend.joins(&code, &backend, &[]).await;
    assert_eq!(host.room(&["leave", &code]).await.code, Some(4), "it is another machine");
    assert_eq!(friend.room(&["leave", &code]).await.code, Some(0));
    join.exit().await;
    assert!(host.participants(&code).await.is_empty());
}

#[tokio::test]
async fn a_participant_that_comes_again_is_the_same() {
    let daemon = serve().start().await;
    let person = Person::of(&daemon.url());
    let code = person.creates(&["--name", "x"]).await;
    let backend = saying(&["a"]).await;
    let mut join = person.joins(&code, &backend, &[]).await;
    let id = person.participants(&code).await[0]["id"].clone();
    join.kill9().await;
    let mut join = person.joins(&code, &backend, &["--stay"]).await;
    let [one] = &person.participants(&code).await[..] else { panic!("it is there twice") };
    assert_eq!((&one["id"], &one["status"]), (&id, &json!("online")));
    join.sigterm();
    assert_eq!(join.exit().await, Some(0));
    let [one] = &person.participants(&code).await[..] else { panic!("it has not stayed") };
    assert_eq!((&one["id"], &one["status"]), (&id, &json!("offline")));
}

#[tokio::test]
async fn a_server_without_rooms_is_reported_as_such() {
    let (refusing, backend) = (RefusingPort::take(), MockBackend::start(&["m"]).await);
    let (nobody, other) = (Person::of(&refusing.url()), Person::of(&backend.url()));
    let cases: [&[&str]; 3] = [&["list"], &["show", "swift-eagle-42"], &["create", "--name", "x"]];
    for case in cases {
        let ran = nobody.room(case).await;
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let ran = other.room(case).await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("is it a Warren or a gambi hub?"), "{ran:?}");
    }
    for place in ["a/b", "http://h/x", ""] {
        assert_eq!(nobody.room(&["show", place]).await.code, Some(2), "{place}");
    }
}

#[tokio::test]
async fn a_room_is_found_on_whichever_server_has_it() {
    let (one, two) = (serve().start().await, serve().start().await);
    let person = Person::of(&two.url());
    let code = person.creates(&["--name", "x"]).await;
    let refusing = RefusingPort::take();
    let both = ["--server", &one.url(), "--server", &refusing.url(), "--server", &two.url()];
    let shown = person.room(&[&["show", &code, "--json"][..], &both].concat()).await.json();
    assert_eq!(shown["server"], json!(two.url()));
    let nowhere = person.room(&[&["show", "no-such-11"][..], &both].concat()).await;
    assert_eq!(nowhere.code, Some(4), "{nowhere:?}");
    assert!(nowhere.err.contains("could not be asked"), "{nowhere:?}");
    let listed = person.room(&[&["list", "--json"][..], &both].concat()).await;
    assert!(listed.err.contains("warning"), "{listed:?}");
    assert_eq!(listed.json()["rooms"].as_array().unwrap().len(), 1);
    let create = person.room(&[&["create", "--name", "x"][..], &both].concat()).await;
    assert_eq!(create.code, Some(2), "{create:?}");
}

#[tokio::test]
async fn a_room_is_found_by_mdns() {
    let daemon = serve().flag("--mdns").start().await;
    daemon.line_with("announced by mDNS").await;
    let person = Person::of(&daemon.url());
    let code = person.creates(&["--name", "x"]).await;
    let found = async || {
        let listed = person.room(&["list", "--mdns", "--json"]).await;
        listed.code == Some(0) && listed.out.contains(&code)
    };
    eventually("the room being found", DEADLINE, found).await;
}

#[tokio::test]
async fn a_stock_hub_is_used_as_far_as_it_goes() {
    let hub = FakeHub::start("ABC123").await;
    let person = Person::of(&hub.url());
    let listed = person.room(&["list", "--json"]).await.json();
    assert_eq!(listed["rooms"][0]["code"], "ABC123");
    let backend = saying(&["Hel", "lo"]).await;
    let mut join = person.joins("abc123", &backend, &["--id", "p1"]).await;
    join.line_with("by a tunnel").await;
    let online = async || {
        let shown = person.room(&["show", "ABC123"]).await;
        shown.out.contains("p1") && shown.out.contains("online")
    };
    eventually("the participant being online", DEADLINE, online).await;
    let asked = person.room(&["ask", "ABC123", "--private", "hi"]).await;
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "Hello\n"), "{asked:?}");
    let aloud = person.room(&["ask", "ABC123", "hi"]).await;
    assert!(aloud.code == Some(1) && aloud.err.contains("--private"), "{aloud:?}");
    let made = person.room(&["create", "--name", "mine", "--json"]).await.json();
    assert!(made["room"]["code"].is_string() && made.get("hostToken").is_none(), "{made}");
    join.sigterm();
    assert_eq!(join.exit().await, Some(0), "{}", join.log());
    assert_eq!(hub.has("ABC123", "p1"), None);
}
