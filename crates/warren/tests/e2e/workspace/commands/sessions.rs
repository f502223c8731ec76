//! `warren session` and `warren open`, without a terminal.

use serde_json::{Value, json};

use crate::workspace::{kit::WorkspaceHost, talk::Agents};

/// Opens a terminal without attaching; the session's id.
async fn opened(place: &WorkspaceHost, name: &str, script: &str) -> String {
    let dir = place.dir();
    let args = ["--detached", "--json", "--name", name, "--dir", &dir, "--", "sh", "-c", script];
    let session = place.cli(&["open"], &args).await.json();
    session["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn terminals_are_opened_listed_shown_renamed_and_killed() {
    let place = WorkspaceHost::start().await;
    let empty = place.cli(&["session", "list"], &[]).await;
    assert!(empty.code == Some(0) && empty.out.contains("warren open"), "{empty:?}");
    let id = opened(&place, "build", "echo it runs; read x; echo got $x; read x").await;
    let list = place.cli(&["session", "list"], &["--json"]).await.json();
    assert_eq!(list["sessions"][0]["id"], id.as_str(), "{list}");
    let table = place.cli(&["session", "list"], &[]).await;
    assert!(table.out.contains("build") && table.out.contains(&id[..8]), "{table:?}");
    for meant in [&*id, &id[..8], "build"] {
        let shown = place.cli(&["session", "show"], &[meant, "--json"]).await.json();
        assert_eq!(shown["name"], "build", "{shown}");
    }
    let shown = place.cli(&["session", "show"], &["build"]).await;
    assert!(shown.out.contains(&id) && shown.out.contains("running"), "{shown:?}");
    let renamed = place.cli(&["session", "rename"], &["build", "tests"]).await;
    assert_eq!(renamed.code, Some(0), "{renamed:?}");

    let sent = place.cli(&["session", "send"], &["tests", "from afar"]).await;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let got =
        async || place.cli(&["session", "history"], &["tests"]).await.out.contains("got from afar");
    testkit::eventually("the input being seen", testkit::DEADLINE, got).await;
    let history = place.cli(&["session", "history"], &["tests"]).await;
    assert!(history.out.starts_with("it runs\r\n"), "{history:?}");
    let pieces = place.cli(&["session", "history"], &["tests", "--json", "--all"]).await;
    let first: Value = serde_json::from_str(pieces.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["from_seq"], 1, "{pieces:?}");

    let killed = place.cli(&["session", "kill"], &["tests"]).await;
    assert!(killed.code == Some(0) && killed.out.contains(&id), "{killed:?}");
    let list = place.cli(&["session", "list"], &["--json", "--all"]).await.json();
    assert_eq!(list, json!({"sessions": []}));
}

#[tokio::test]
async fn an_agent_is_made_asked_and_asked_again() {
    let agents = Agents::start().await;
    let place = &agents.place;
    let dir = place.dir();
    let made = place
        .cli(
            &["session", "new"],
            &["--provider", "codex", "--name", "reviewer", "--dir", &dir, "--json"],
        )
        .await
        .json();
    assert_eq!((&made["provider"], &made["mode"]), (&json!("codex"), &json!("sdk")), "{made}");
    let said = place.cli(&["session", "send"], &["reviewer", "say looks good", "--wait"]).await;
    assert_eq!((said.code, said.out.trim()), (Some(0), "looks good"), "{said:?}");
    let events =
        place.cli(&["session", "send"], &["reviewer", "say more", "--wait", "--json"]).await;
    let events: Vec<Value> =
        events.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.len() > 1, "{events:?}");
    let failed = place.cli(&["session", "send"], &["reviewer", "crash", "--wait"]).await;
    assert!(failed.code == Some(1) && failed.err.contains("told to crash"), "{failed:?}");
    let taken = place.cli(&["session", "send"], &["reviewer", "say last", "--json"]).await.json();
    assert_eq!((&taken["session_id"], &taken["turn"]), (&made["id"], &json!(4)), "{taken}");
    let args = ["--dir", &dir, "--prompt", "say at once", "--wait"];
    let said = place.cli(&["session", "new"], &args).await;
    assert!(said.code == Some(0) && said.out.contains("at once"), "{said:?}");
    let said = place.cli(&["session", "send"], &["reviewer", "- say a list", "--wait"]).await;
    assert!(said.code == Some(0) && !said.out.trim().is_empty(), "{said:?}");
    let hidden =
        place.cli(&["session", "new"], &["--dir", &dir, "--hidden", "--json"]).await.json();
    assert_eq!(hidden["hidden"], true);
    let count = async |args: &[&str]| {
        let list = place.cli(&["session", "list"], args).await.json();
        list["sessions"].as_array().unwrap().len()
    };
    assert_eq!((count(&["--json"]).await, count(&["--json", "--all"]).await), (2, 3));
}

#[tokio::test]
async fn the_history_of_an_agent_is_its_conversation_and_its_lines_are_told_on_request() {
    let agents = Agents::start().await;
    let place = &agents.place;
    let dir = place.dir();
    let args = ["--name", "reviewer", "--dir", &dir, "--prompt", "use Bash; say done"];
    let made = place.cli(&["session", "new"], &args).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let follow = "warren session attach reviewer\n";
    assert!(made.err.contains(follow) && made.err.contains("session history reviewer"), "{made:?}");
    let said = place.cli(&["session", "send"], &["reviewer", "say more", "--wait"]).await;
    assert_eq!((said.code, said.out.trim()), (Some(0), "more"), "{said:?}");
    let history = async |args: &[&str]| {
        let ran = place.cli(&["session", "history"], &[&["reviewer"], args].concat()).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    };
    let first = "> use Bash; say done\n  → Bash ls … ok\ndone\n";
    let last = "> say more\nmore\n";
    assert_eq!(history(&[]).await, format!("{first}\n{last}"));
    assert_eq!(history(&["--turns", "1"]).await, last);
    let raw = history(&["--raw", "--all"]).await;
    let lines: Vec<Value> = raw.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["type"], "result", "{raw}");
    let json = history(&["--json", "--turns", "1"]).await;
    let events: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event"]["prompt"], "say more", "{json}");
    assert_eq!(events.last().unwrap()["event"]["outcome"], "completed", "{json}");
    let terminal = place.cli(&["open"], &["--detached", "--name", "t", "--dir", &dir]).await;
    assert_eq!(terminal.code, Some(0), "{terminal:?}");
    let refused = place.cli(&["session", "history"], &["t", "--turns", "1"]).await;
    assert!(refused.code == Some(2) && refused.err.contains("--bytes"), "{refused:?}");
}

#[tokio::test]
async fn an_answer_that_is_waited_for_is_that_to_ones_own_prompt() {
    let agents = Agents::start().await;
    let mut talk = agents.talk("claude").await;
    // One that runs, and two of others that wait before ours.
    for prompt in ["slow 300; say running", "say first", "say second"] {
        talk.prompts(prompt).await;
    }
    talk.told_where("agent_event", |told| told["event"]["kind"] == "turn_started").await;
    let said = agents.place.cli(&["session", "send"], &["claude", "say mine", "--wait"]).await;
    assert_eq!((said.code, said.out.trim()), (Some(0), "mine"), "{said:?}");
}
