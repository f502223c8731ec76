//! The server, killed or stopped, and what it knows when it is there again.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use testkit::Random;
use tokio::time::Instant;

use crate::workspace::{account::Report, server::Server, sessions::Terminal, talks::Agent};

/// Output that a client saw this long before the server was killed must be on the disk.
const WRITTEN: Duration = Duration::from_secs(2);
/// The bytes of history that are read again at each restart.
const READ: u64 = 64 * 1024;

/// Kills or stops it, starts it again, and checks everything.
pub(crate) async fn restart(
    server: &Server,
    agents: &[Agent],
    random: &mut Random,
    report: &Report,
) {
    let is_rude = random.chance(0.7);
    let before = Instant::now().checked_sub(if is_rude { WRITTEN } else { Duration::ZERO });
    {
        let mut daemon = server.daemon.lock().await;
        match is_rude {
            true => daemon.kill_and_restart().await,
            false => daemon.stop_and_restart().await,
        }
    }
    report.tally(|counts| counts.restarts += 1);
    let terminals = server.sessions.lock().expect("nobody panics with it").take();
    for terminal in terminals.values() {
        terminal.mark.is_gone().await;
    }
    if let Err(wrong) = check(server, agents, &terminals, before).await {
        report.wrong(format!("after a restart (killed: {is_rude}): {wrong}"));
    }
}

async fn check(
    server: &Server,
    agents: &[Agent],
    terminals: &BTreeMap<String, Terminal>,
    before: Option<Instant>,
) -> Result<(), String> {
    let mut listed = BTreeMap::new();
    for session in server.listed().await? {
        let text = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
        listed.insert(text("id"), text("status"));
    }
    for agent in agents {
        let status = listed.remove(&agent.id);
        if status.as_deref() != Some("idle") {
            return Err(format!("an agent is {status:?}"));
        }
    }
    for (id, terminal) in terminals {
        let status = listed.remove(id);
        if status.as_deref() != Some("exited") {
            return Err(format!("a terminal whose process is gone is {status:?}"));
        }
        let seen = before.map_or(0, |before| terminal.seen_before(before));
        history(server, id, seen).await?;
        server.ask(json!({"type": "kill_session", "session_id": id}), "session_killed").await?;
    }
    match listed.is_empty() {
        true => Ok(()),
        false => Err(format!("sessions that should not be there: {listed:?}")),
    }
}

/// Checks that the seen lines are still there, and that each line follows the one before.
async fn history(server: &Server, id: &str, seen: u64) -> Result<(), String> {
    let ask = json!({"type": "get_history", "session_id": id, "max_bytes": READ});
    let history = server.ask(ask, "history").await?;
    let last = history["to_seq"].as_u64().unwrap_or_default();
    if last < seen {
        return Err(format!("{id}: output {seen} was seen, and only {last} is kept"));
    }
    let mut lines = crate::workspace::numbers::Lines::default();
    if history["from_seq"] != 1 {
        lines.begin();
    }
    let text = history["data"].as_str().ok_or("history without data")?;
    lines.take(text).map_err(|wrong| format!("{id}: in its history {wrong}"))
}
