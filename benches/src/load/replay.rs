//! All conversations of a [`Talk`], each over a connection of its own: its next request comes when the answer before
//! is whole and its pause is over.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{Failures, closed::LIMIT};
use crate::{http1::Link, replay::talk::Talk, stats::Times};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Replay {
    pub(crate) addr: SocketAddr,
    pub(crate) seed: u64,
    pub(crate) conversations: usize,
    /// Within how many seconds of the load they begin.
    pub(crate) within: f64,
    /// How many seconds of the load pass in a second.
    pub(crate) pace: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// From the request to the first token, in the time of the load.
    pub(crate) first: Times,
    pub(crate) answered: usize,
    pub(crate) failures: Failures,
}

impl Replay {
    pub(crate) fn talk(&self) -> Talk {
        Talk::new(self.seed, self.conversations, self.within)
    }
}

/// Says everything, and waits for all answers.
pub(crate) async fn run(plan: &Replay) -> Result<Outcome> {
    let talk = Arc::new(plan.talk());
    let begun = Instant::now();
    let mut speakers = JoinSet::new();
    for number in 0..talk.conversations.len() {
        speakers.spawn(speak(talk.clone(), number, plan.clone(), begun));
    }
    let mut outcome = Outcome::default();
    while let Some(spoken) = speakers.join_next().await {
        let (times, problem) = spoken?;
        outcome.answered += times.len();
        times.into_iter().for_each(|time| outcome.first.add(time));
        problem.iter().for_each(|why| outcome.failures.add(why));
    }
    Ok(outcome)
}

/// A conversation ends with its first failure. Returns the times of its answers, and that.
async fn speak(
    talk: Arc<Talk>,
    number: usize,
    plan: Replay,
    begun: Instant,
) -> (Vec<Duration>, Option<String>) {
    let conversation = &talk.conversations[number];
    let of_load = |seconds: f64| Duration::from_secs_f64(seconds / plan.pace);
    sleep_until(begun + of_load(conversation.begins)).await;
    let mut times = Vec::new();
    for (number, turn) in conversation.turns.iter().enumerate() {
        sleep(of_load(turn.pause)).await;
        let asked = timeout(LIMIT, ask(plan.addr, conversation.body(number))).await;
        match asked.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {LIMIT:?}"))) {
            Ok(time) => times.push(time.mul_f64(plan.pace)),
            Err(why) => return (times, Some(format!("{why:#}"))),
        }
    }
    (times, None)
}

/// Returns how long the first token took.
async fn ask(addr: SocketAddr, body: bytes::Bytes) -> Result<Duration> {
    let mut link = Link::open(addr).await?;
    let asked = Instant::now();
    let response = link.chat(body).await?;
    ensure!(response.status() == 200, "status {}", response.status());
    let (mut body, mut first, mut end) = (response.into_body(), None, Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        // A comment only says that the answer has to wait.
        if first.is_none() && data.starts_with(b"data:") {
            first = Some(asked.elapsed());
        }
        end = data.to_vec();
    }
    ensure!(end.ends_with(b"data: [DONE]\n\n"), "the answer broke off");
    first.ok_or_else(|| anyhow::anyhow!("an empty answer"))
}
