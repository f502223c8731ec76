//! Sessions that come and go.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use testkit::{Random, workspace::Mark};
use tokio::time::{Instant, sleep};

use crate::workspace::{account::Report, numbers, server::Server};

pub(crate) async fn fill(server: &Server, count: usize, random: &mut Random, report: &Report) {
    let open = || server.sessions.lock().expect("nobody panics with it").count();
    while open() < count {
        if let Err(wrong) = open_one(server, random, report).await {
            report.wrong(wrong);
            return;
        }
    }
}

pub(crate) async fn churn(
    server: Arc<Server>,
    count: usize,
    mut random: Random,
    report: Report,
    until: Instant,
) {
    while Instant::now() < until {
        sleep(Duration::from_millis(200 + random.below(1_500))).await;
        if let Err(wrong) = kill_one(&server, &mut random, &report).await {
            report.wrong(wrong);
        }
        fill(&server, count, &mut random, &report).await;
    }
}

async fn open_one(server: &Server, random: &mut Random, report: &Report) -> Result<(), String> {
    let mark = Mark::new();
    let open = json!({
        "type": "open_terminal", "working_dir": server.dir(), "command": "sh",
        "args": ["-c", numbers::script(random, mark.word())],
    });
    let opened = server.ask(open, "terminal_opened").await?;
    let id = opened["session"]["id"].as_str().ok_or("a session without an id")?.to_owned();
    server.sessions.lock().expect("nobody panics with it").opened(id, mark);
    report.tally(|counts| counts.opened += 1);
    Ok(())
}

/// Kills one, and checks that nothing of it is left.
async fn kill_one(server: &Server, random: &mut Random, report: &Report) -> Result<(), String> {
    let killed = {
        let mut sessions = server.sessions.lock().expect("nobody panics with it");
        let id = sessions.any(random);
        id.and_then(|id| Some((sessions.remove(&id)?, id)))
    };
    let Some((terminal, id)) = killed else { return Ok(()) };
    server.ask(json!({"type": "kill_session", "session_id": id}), "session_killed").await?;
    terminal.mark.is_gone().await;
    report.tally(|counts| counts.killed += 1);
    Ok(())
}
