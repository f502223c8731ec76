//! One session over a connection that is cut again and again, at any byte.

use std::time::Duration;

use serde_json::json;
use testkit::{
    Random,
    workspace::{Cutter, Follow, Knock, Step, WorkspaceClient},
};
use tokio::time::timeout;

use crate::workspace::{account::Report, numbers::Lines, server::Server};

const MOST: u64 = 6_000;
/// The most time for each cut.
const EACH: Duration = Duration::from_millis(500);

/// The script's text, without a line's end, once no key is echoed any more.
const READY: &str = "ready>";
const SCRIPT: &str = "stty -echo; printf 'ready>'; read x; i=0; while :; do j=0; \
    while [ $j -lt 20 ]; do echo \"line $i of many\"; i=$((i+1)); j=$((j+1)); done; \
    sleep 0.01; done";

/// Cuts the connection this often. No line may be lost or come twice.
pub(crate) async fn run(server: &Server, cuts: u64, random: &mut Random, report: &Report) {
    let work = cut(server, cuts, random.next(), report);
    let most = Duration::from_secs(60) + EACH * u32::try_from(cuts).unwrap_or(u32::MAX);
    match timeout(most, work).await {
        Ok(Ok(())) => {}
        Ok(Err(wrong)) => report.wrong(format!("of the session that was cut: {wrong}")),
        Err(_) => report.wrong(format!("{cuts} cuts took longer than {most:?}")),
    }
}

async fn cut(server: &Server, cuts: u64, seed: u64, report: &Report) -> Result<(), String> {
    let open = json!({
        "type": "open_terminal", "working_dir": server.dir(), "command": "sh",
        "args": ["-c", SCRIPT],
    });
    let opened = server.ask(open, "terminal_opened").await?;
    let id = opened["session"]["id"].as_str().ok_or("no id")?.to_owned();
    let mut look = Look { follow: Follow::new(&id), lines: Lines::default() };
    // The first look is before any line is printed, so that every line has to come.
    let mut first = server.client(Knock::at(server.address)).await.ok_or("no connection")?;
    look.begin(&mut first).await?;
    drop(first);
    let go = json!({"type": "terminal_input", "session_id": id, "data": "\n", "input_id": "go"});
    server.ask(go, "input_ack").await?;
    let way = Cutter::to(server.address, seed, MOST).await;
    while way.cuts() < cuts {
        if let Some(mut client) = server.client(Knock::at(way.address())).await {
            look.on(&mut client).await?;
        }
    }
    report.tally(|counts| {
        counts.cuts += way.cuts();
        counts.lines += look.lines.count;
    });
    server.ask(json!({"type": "kill_session", "session_id": id}), "session_killed").await?;
    match look.follow.snapshots() {
        1 => Ok(()),
        more => Err(format!("there were {more} snapshots, although it never fell behind")),
    }
}

struct Look {
    follow: Follow,
    lines: Lines,
}

impl Look {
    /// Looks until the script is ready: an earlier key would be echoed, as a line without a number.
    async fn begin(&mut self, client: &mut WorkspaceClient) -> Result<(), String> {
        client.say(self.follow.attach()).await;
        let mut shown = String::new();
        while !shown.contains(READY) {
            let heard = client.next().await.ok_or("the connection ended")?;
            match self.follow.take(&heard)? {
                Step::Write(text) | Step::Paint(_, _, text) => shown.push_str(&text),
                Step::Nothing => {}
            }
        }
        Ok(())
    }

    async fn on(&mut self, client: &mut WorkspaceClient) -> Result<(), String> {
        client.say(self.follow.attach()).await;
        while let Some(heard) = client.next().await {
            match self.follow.take(&heard)? {
                Step::Write(text) => self.lines.take(&text)?,
                Step::Paint(..) => return Err("it was shown a snapshot".to_owned()),
                Step::Nothing => {}
            }
        }
        Ok(())
    }
}
