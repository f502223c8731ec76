//! The state that is left at the end.

use std::{fs, time::Duration};

use serde_json::json;
use testkit::{eventually, workspace::Mark};

use crate::workspace::{account::Report, server::Server};

/// The most memory of the server in the end, in MiB.
const MOST_MIB: u64 = 160;
/// Files and sockets that it may have open in the end.
const MOST_OPEN: usize = 80;
const DEADLINE: Duration = Duration::from_secs(60);

/// Ends all sessions, and checks that nothing is left. Returns the memory of the server, in MiB.
pub(crate) async fn settle(server: &Server, report: &Report) -> u64 {
    if let Err(wrong) = end(server).await {
        report.wrong(format!("at the end: {wrong}"));
    }
    let mut daemon = server.daemon.lock().await;
    let mib = daemon.resident_bytes() / 1024 / 1024;
    if mib > MOST_MIB {
        report.wrong(format!("the server occupies {mib} MiB in the end"));
    }
    let open = || fs::read_dir(format!("/proc/{}/fd", daemon.pid())).map_or(0, Iterator::count);
    eventually("few open files", DEADLINE, async || open() < MOST_OPEN).await;
    daemon.sigterm();
    let code = daemon.exit().await;
    if code != Some(0) {
        report.wrong(format!("the server ended with {code:?}"));
    }
    // Every process that was started there has its directory in its command line, or that of the fakes.
    Mark::of(&server.dir()).is_gone().await;
    mib
}

async fn end(server: &Server) -> Result<(), String> {
    for session in server.listed().await? {
        let kill = json!({"type": "kill_session", "session_id": session["id"]});
        server.ask(kill, "session_killed").await?;
    }
    match server.listed().await?.len() {
        0 => Ok(()),
        left => Err(format!("{left} sessions are left")),
    }
}
