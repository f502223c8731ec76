//! Terminals and agents outlive their server, if the next one comes in time.

use serde_json::json;
use testkit::{ChildProcess, workspace::Mark};

use super::kit::{Viewer, WorkspaceHost, about, serving};
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
