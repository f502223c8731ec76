//! One screen, sent whole again and again.

use std::time::Instant;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Daemon, client::Client, find::Find, terminal::program};
use crate::{
    programs::{OVER, READY, flood::Kind},
    stats::Times,
};

/// How often output is waited for until the program has ended.
const TRIES: u32 = 2000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Resync {
    pub(crate) daemon: Daemon,
    pub(crate) kind: Kind,
    pub(crate) times: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) screen: usize,
    /// Bytes of the message that it comes in.
    pub(crate) message: usize,
    /// From asking for it until it was read.
    pub(crate) times: Times,
    /// The same of a message that costs nothing.
    pub(crate) trips: Times,
}

pub(super) fn run(plan: &Resync) -> Result<Outcome> {
    let mut client = Client::open(&plan.daemon)?;
    let program = program()?.display().to_string();
    let session = client.run(&program, &["flood", plan.kind.name(), "1"])?;
    fill(&mut client, &session)?;
    let screen = client.attach(&session)?.len();
    let (mut times, mut trips, mut message) = (Times::default(), Times::default(), 0);
    for _ in 0..plan.times {
        let begun = Instant::now();
        client.say(&json!({"type": "keepalive"}))?;
        client.hear_raw("keepalive_ack")?;
        trips.add(begun.elapsed());
        let begun = Instant::now();
        client.say(&json!({"type": "attach", "session_id": session}))?;
        message = client.hear_raw("session_history")?;
        times.add(begun.elapsed());
    }
    client.kill(&session)?;
    Ok(Outcome { screen, message, times, trips })
}

fn fill(client: &mut Client, session: &str) -> Result<()> {
    wait(client, session, READY)?;
    client.enter(session, b"\r")?;
    wait(client, session, OVER)
}

/// Looks at the screen until it shows this word.
fn wait(client: &mut Client, session: &str, word: &'static str) -> Result<()> {
    for _ in 0..TRIES {
        if Find::new(word).feed(client.attach(session)?.as_bytes()) {
            return Ok(());
        }
        super::pause(std::time::Duration::from_millis(5));
    }
    bail!("{word} is never on the screen")
}
