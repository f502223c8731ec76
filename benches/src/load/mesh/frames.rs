//! Messages to a relay and on to another node, or to an echo and back: a fixed number is in flight.
//! Either way the other end reads each message once and writes it once, and so does this one.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::node::{ANSWERS, Socket, connect, hear, id, register, say};
use crate::stats::Times;

/// The most messages on their way at once, for each pair.
const MOST: usize = 4096;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frames {
    pub(crate) addr: SocketAddr,
    pub(crate) relay: bool,
    /// Pairs of a sending and a receiving connection; at an echo both are the same.
    pub(crate) pairs: u32,
    /// Messages on their way at once, of each.
    pub(crate) window: usize,
    pub(crate) size: usize,
    pub(crate) warmup: f64,
    pub(crate) seconds: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) arrived: u64,
    pub(crate) seconds: f64,
    /// From sending to arrival, of these.
    pub(crate) times: Times,
}

pub(crate) async fn run(plan: &Frames) -> Result<Outcome> {
    let mut pairs = JoinSet::new();
    let from = Instant::now() + Duration::from_secs_f64(plan.warmup);
    let until = from + Duration::from_secs_f64(plan.seconds);
    for number in 0..plan.pairs {
        pairs.spawn(pair(plan.clone(), number, from, until));
    }
    let (mut times, mut arrived) = (Times::default(), 0);
    while let Some(done) = pairs.join_next().await {
        let (count, took) = done??;
        times.merge(&took);
        arrived += count;
    }
    Ok(Outcome { arrived, seconds: plan.seconds, times })
}

async fn pair(plan: Frames, number: u32, from: Instant, until: Instant) -> Result<(u64, Times)> {
    ensure!((1..=MOST).contains(&plan.window), "a window of 1 to {MOST}");
    let (out, into, text) = match plan.relay {
        true => session(&plan, number).await?,
        false => {
            let (out, into) = connect(plan.addr, &id(number)).await?.split();
            (out, into, message(plan.size, "a", "b", "s"))
        }
    };
    let room = Arc::new(Semaphore::new(plan.window));
    let (told, sent) = mpsc::channel(plan.window);
    let sending = send(out, text.into(), Arc::clone(&room), told, until);
    let receiving = receive(into, sent, room, from, until);
    // Without the receiver the sender would wait for room for ever, so both end together.
    let ((), received) = tokio::try_join!(sending, receiving)?;
    Ok(received)
}

type Out = SplitSink<Socket, Message>;
type In = SplitStream<Socket>;

/// Two nodes with a relay session between them.
async fn session(plan: &Frames, number: u32) -> Result<(Out, In, String)> {
    let (a, b) = (2 * number + 1, 2 * number + 2);
    let (mut one, mut other) = (register(plan.addr, a).await?, register(plan.addr, b).await?);
    let (a, b, session) = (id(a), id(b), format!("6fa1c2d3-0000-4abc-8def-{number:012x}"));
    let open = json!({"fromNodeID": a, "toNodeID": b, "sessionID": session});
    say(&mut one, &json!({ "relayOpen": open })).await?;
    hear(&mut other, "relayOpen").await?;
    let ready = json!({"fromNodeID": b, "toNodeID": a, "sessionID": session});
    say(&mut other, &json!({ "relayReady": ready })).await?;
    hear(&mut one, "relayReady").await?;
    let text = message(plan.size, &a, &b, &session);
    // The sender must read too, or it would never answer a ping.
    let (out, mut heard) = one.split();
    tokio::spawn(async move { while let Some(Ok(_)) = heard.next().await {} });
    let (_, into) = other.split();
    Ok((out, into, text))
}

fn message(size: usize, from: &str, to: &str, session: &str) -> String {
    let of = |data: &str| {
        json!({"relayData": {
            "data": data, "fromNodeID": from, "sessionID": session, "toNodeID": to,
        }})
        .to_string()
    };
    let left = size.saturating_sub(of("").len());
    of(&BASE64_STANDARD.encode(vec![7; left / 4 * 3]))
}

/// Writes as many messages as the window allows, then flushes.
async fn send(
    mut out: Out,
    text: Utf8Bytes,
    room: Arc<Semaphore>,
    told: mpsc::Sender<Instant>,
    until: Instant,
) -> Result<()> {
    while Instant::now() < until {
        room.acquire().await?.forget();
        told.try_send(Instant::now())?;
        out.feed(Message::Text(text.clone())).await?;
        while let Ok(permit) = room.try_acquire() {
            permit.forget();
            told.try_send(Instant::now())?;
            out.feed(Message::Text(text.clone())).await?;
        }
        out.flush().await?;
    }
    drop(told);
    Ok(())
}

/// Reads what arrives, until nothing more was sent.
async fn receive(
    mut into: In,
    mut sent: mpsc::Receiver<Instant>,
    room: Arc<Semaphore>,
    from: Instant,
    until: Instant,
) -> Result<(u64, Times)> {
    let (mut count, mut times) = (0, Times::default());
    while let Some(sent_at) = sent.recv().await {
        let message =
            timeout(ANSWERS, message_of(&mut into)).await.context("a message was lost")??;
        ensure!(message.is_text() && message.len() > 20, "an odd message: {message}");
        let now = Instant::now();
        room.add_permits(1);
        if sent_at >= from && now <= until {
            count += 1;
            times.add(now - sent_at);
        }
    }
    Ok((count, times))
}

/// The next message. The other end may ping at any time.
async fn message_of(into: &mut In) -> Result<Message> {
    loop {
        let message = into.next().await.context("the other end closed")??;
        if !message.is_ping() && !message.is_pong() {
            return Ok(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn messages_to_an_echo_come_back() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(crate::echo::serve(listener));
        let plan = Frames {
            addr,
            relay: false,
            pairs: 2,
            window: 8,
            size: 600,
            warmup: 0.0,
            seconds: 0.1,
        };
        assert!(run(&plan).await.unwrap().arrived > 0);
    }

    #[test]
    fn messages_are_of_about_the_size_that_is_asked_for() {
        let length = message(600, &id(1), &id(2), "s").len();
        assert!((590..=600).contains(&length), "{length}");
    }
}
