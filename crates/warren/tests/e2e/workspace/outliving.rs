//! Terminals and agents outlive their server, if the next one comes in time.

use serde_json::{Value, json};
use testkit::{ChildProcess, workspace::Mark};

use super::{
    kit::{Viewer, WorkspaceHost, about, serving},
    talk::Agents,
};
use crate::{common::binary, terminal::Terminal};

/// Writes numbers, each in a line, as fast as it can.
const COUNTS: &str = "n=0; while :; do n=$((n+1)); echo $n; done";

async fn keeping(span: &str) -> WorkspaceHost {
    WorkspaceHost::of(serving().set("--keep-sessions", span)).await
}

/// The numbers in a text, of which the first and the last may be cut.
fn numbers(text: &str) -> Vec<u64> {
    let lines: Vec<&str> = text.lines().collect();
    let whole = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
    whole.iter().filter_map(|line| line.trim().parse().ok()).collect()
}

#[tokio::test]
async fn a_program_that_writes_without_pause_loses_and_doubles_nothing_in_kills_of_its_server() {
    let mut place = keeping("60s").await;
    let mut client = place.client().await;
    let id = place.runs(&mut client, COUNTS).await;
    for _ in 0..3 {
        let mut viewer = Viewer::of(place.client().await, &id).await;
        for _ in 0..20 {
            viewer.step().await;
        }
        place.daemon.kill_and_restart().await;
    }
    place.is(&id, "running").await;
    let mut client = place.client().await;
    let keys =
        json!({"type": "terminal_input", "session_id": id, "data": "\u{3}", "input_id": "c"});
    client.say(json!({"type": "attach", "session_id": id})).await;
    client.ask(keys, "input_ack").await;
    place.is(&id, "exited").await;
    let history = client.ask(about("get_history", &id), "history").await;
    let numbers = numbers(history["data"].as_str().unwrap());
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    assert!(last > 1000, "{last}");
    let gap = (first..).zip(&numbers).find(|(one, other)| one != *other);
    assert_eq!(gap, None, "from {first} to {last}");
}

#[tokio::test]
async fn a_viewer_that_comes_back_goes_on_where_it_was_after_a_kill_and_after_a_stop() {
    let mut place = keeping("60").await;
    let mut client = place.client().await;
    let id = place.runs(&mut client, "echo begun; while read x; do echo got $x; done").await;
    let mut viewer = Viewer::of(client, &id).await;
    viewer.shows("begun").await;
    viewer.type_until_applied("one\n").await;
    viewer.shows("got one").await;
    for (round, word) in ["two", "three"].into_iter().enumerate() {
        match round {
            0 => place.daemon.kill_and_restart().await,
            _ => place.daemon.stop_and_restart().await,
        }
        let mut client = place.client().await;
        client.say(viewer.follow.attach()).await;
        viewer.asides.clear();
        viewer.client = client;
        let history = viewer.told("session_history").await;
        assert_eq!(history["snapshot"], Value::Null, "{history}");
        viewer.type_until_applied(&format!("{word}\n")).await;
        viewer.shows(&format!("got {word}")).await;
    }
}

#[tokio::test]
async fn without_a_server_in_time_or_with_a_span_of_nothing_everything_ends() {
    for span in ["0", "0.3"] {
        let mut place = keeping(span).await;
        let mut client = place.client().await;
        let mark = Mark::new();
        let word = mark.word();
        place.runs(&mut client, &format!("trap '' TERM HUP; sleep {word}; sleep {word}")).await;
        mark.has_processes(2).await;
        place.daemon.kill9().await;
        mark.is_gone().await;
        place.daemon.start_again().await;
        let all = super::kit::listed(&mut place.client().await).await;
        assert_eq!(all[0]["status"], "exited", "{span}");
    }
}

#[tokio::test]
async fn an_agents_question_before_a_kill_is_answered_after_it() {
    let serve = serving().set("--keep-sessions", "60s");
    let mut agents = Agents::of(serve, "").await;
    let mut viewer = agents.talk("claude").await;
    let id = viewer.id();
    viewer.prompts("ask Bash").await;
    let question = viewer.told("permission_request").await;
    agents.place.daemon.kill_and_restart().await;
    let mut viewer = Viewer::of(agents.place.client().await, &id).await;
    let again = viewer.told("permission_request").await;
    assert_eq!(again["request_id"], question["request_id"]);
    let respond = json!({
        "type": "permission_response", "request_id": again["request_id"], "allow": true,
    });
    viewer.client.say(respond).await;
    let turn = viewer.turn_ends().await;
    assert!(turn.text.contains("Bash was allowed"), "{turn:?}");
}

/// At Ctrl-C `warren up` asks, and does what it is told.
#[tokio::test]
async fn ctrl_c_asks_whether_to_keep_what_runs() {
    for (key, kept) in [("e", false), ("k", true)] {
        let data = tempfile::tempdir().unwrap();
        let dir = data.path().display().to_string();
        let args = ["up", "--demo", "--listen", "127.0.0.1:0", "--data-dir", &dir];
        let token = [("WARREN_WORKSPACE_TOKEN", super::kit::TOKEN), ("WARREN_KEEP_SESSIONS", "60")];
        let mut terminal = Terminal::start_with(&args, &token);
        // The beginning has scrolled away by then.
        terminal.shows("warren room create").await;
        let line = terminal.lines().into_iter().find(|line| line.contains("listening on")).unwrap();
        let address = line.trim().rsplit("//").next().unwrap().parse().unwrap();
        let mut client =
            testkit::workspace::WorkspaceClient::connect(address, super::kit::TOKEN).await;
        let mark = Mark::new();
        let open = json!({
            "type": "open_terminal", "working_dir": "/", "command": "sleep", "args": [mark.word()],
        });
        client.ask(open, "terminal_opened").await;
        mark.has_processes(1).await;
        terminal.press("\u{3}").await;
        terminal.shows("(k), or end (e)?").await;
        terminal.press(key).await;
        terminal.ends(0).await;
        if !kept {
            mark.is_gone().await;
            continue;
        }
        mark.has_processes(1).await;
        let args = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &dir];
        let mut next = ChildProcess::start("next", binary(), &args);
        next.line_with("took over").await;
        next.sigterm();
        next.exit().await;
        mark.is_gone().await;
    }
}
