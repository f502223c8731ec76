//! What is left at the end.

use std::{fs, time::Duration};

use serde_json::json;
use testkit::{eventually, workspace::Mark};

use crate::{account::Report, place::Place};

/// What the server may occupy in the end, in MiB.
const MOST_MIB: u64 = 160;
/// Files and sockets that it may have open in the end.
const MOST_OPEN: usize = 80;
const DEADLINE: Duration = Duration::from_secs(60);

/// Ends all sessions, and looks for what should not be there; how much the server occupies, in MiB.
pub(crate) async fn settle(place: &Place, report: &Report) -> u64 {
    if let Err(wrong) = end(place).await {
        report.wrong(format!("at the end: {wrong}"));
    }
    let mut daemon = place.daemon.lock().await;
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
    Mark::of(&place.dir()).is_gone().await;
    mib
}

async fn end(place: &Place) -> Result<(), String> {
    for session in place.listed().await? {
        let kill = json!({"type": "kill_session", "session_id": session["id"]});
        place.ask(kill, "session_killed").await?;
    }
    match place.listed().await?.len() {
        0 => Ok(()),
        left => Err(format!("{left} sessions are left")),
    }
}
