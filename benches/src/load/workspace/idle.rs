//! Many terminals in which nothing happens: shells that wait for their first command.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Daemon, LIMIT, client::Client, pause};
use crate::proc;

/// The program of each terminal: it prints its prompt and waits.
const SHELL: (&str, &[&str]) = ("/bin/sh", &["-i"]);

/// After this much silence the daemon counts as idle.
const QUIET: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Idle {
    pub(crate) daemon: Daemon,
    pub(crate) sessions: u32,
}

/// The daemon's memory in bytes, with a part of what it shares with other processes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) before: u64,
    /// With all terminals, none of which was viewed.
    pub(crate) opened: u64,
    /// When each terminal was viewed once.
    pub(crate) seen: u64,
    pub(crate) opening: f64,
    /// The daemon's processor seconds in a second when nothing happens.
    pub(crate) idle_cpu: f64,
}

pub(super) fn run(plan: &Idle) -> Result<Outcome> {
    let mut client = Client::open(&plan.daemon)?;
    // The first also starts what all share.
    let first = client.run(SHELL.0, SHELL.1)?;
    settle(&plan.daemon)?;
    let before = proc::proportional(&plan.daemon.pids())?;
    let begun = Instant::now();
    let mut sessions = Vec::new();
    for _ in 0..plan.sessions {
        sessions.push(client.run(SHELL.0, SHELL.1)?);
    }
    let opening = begun.elapsed().as_secs_f64();
    settle(&plan.daemon)?;
    let opened = proc::proportional(&plan.daemon.pids())?;
    look_at(&mut client, &sessions)?;
    let idle_cpu = settle(&plan.daemon)?;
    let seen = proc::proportional(&plan.daemon.pids())?;
    sessions.push(first);
    client.kill_all(&sessions)?;
    Ok(Outcome { before, opened, seen, opening, idle_cpu })
}

fn look_at(client: &mut Client, sessions: &[String]) -> Result<()> {
    for session in sessions {
        let screen = client.attach(session)?;
        ensure!(!screen.is_empty(), "a shell that shows nothing");
    }
    client.say(&json!({"type": "detach"}))?;
    client.hear("detached").map(drop)
}

/// Waits until the daemon does next to nothing; what it still does, in processor seconds a second.
fn settle(daemon: &Daemon) -> Result<f64> {
    /// Ticks of the kernel's clock are hundredths.
    const LITTLE: f64 = 0.02;
    let begun = Instant::now();
    loop {
        let before = proc::cpu(&daemon.pids())?;
        pause(QUIET);
        let used = proc::cpu(&daemon.pids())?.saturating_sub(before);
        let rate = used.as_secs_f64() / QUIET.as_secs_f64();
        if rate <= LITTLE || begun.elapsed() > LIMIT {
            return Ok(rate);
        }
    }
}
