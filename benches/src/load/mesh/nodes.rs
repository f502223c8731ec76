//! Nodes at a relay that ask for nothing: they register, then register again and ask who is there, then some
//! leave and come back. Every message that the relay sends is counted.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_tungstenite::tungstenite::Message;

use super::node::{ANSWERS, Socket, id, register, registration};

/// After this much silence nothing more will come.
const QUIET: Duration = Duration::from_millis(400);

/// One of this many nodes leaves and comes back.
const LEAVES: usize = 10;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Nodes {
    pub(crate) addr: SocketAddr,
    pub(crate) nodes: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
}

pub(crate) struct IdleNodes {
    plan: Nodes,
    nodes: Vec<Node>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    frames: AtomicU64,
    bytes: AtomicU64,
}

struct Node {
    out: SplitSink<Socket, Message>,
    reading: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

pub(crate) async fn open(plan: &Nodes) -> Result<IdleNodes> {
    let mut held = IdleNodes { plan: plan.clone(), nodes: Vec::new(), counts: Arc::default() };
    for number in 1..=plan.nodes {
        held.nodes.push(held.one(number).await?);
    }
    Ok(held)
}

impl IdleNodes {
    /// The relay's traffic since the last call, once it sends nothing more.
    pub(crate) async fn quiet(&self) -> Outcome {
        let Counts { frames, bytes } = &*self.counts;
        let mut before = None;
        while before.replace(frames.load(Ordering::Relaxed)) != Some(frames.load(Ordering::Relaxed))
        {
            sleep(QUIET).await;
        }
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Outcome { frames: take(frames), bytes: take(bytes) }
    }

    pub(crate) async fn again(&mut self) -> Result<()> {
        for (number, node) in (1..).zip(&mut self.nodes) {
            let id = id(number);
            node.say(&registration(&id)).await?;
            node.say(&json!({"discover": {"requestingNodeID": id}})).await?;
        }
        Ok(())
    }

    pub(crate) async fn come_and_go(&mut self) -> Result<()> {
        for at in (0..self.nodes.len()).step_by(LEAVES) {
            let number = u32::try_from(at)? + 1;
            let _left = self.nodes[at].out.close().await;
            self.nodes[at] = self.one(number).await?;
        }
        Ok(())
    }

    async fn one(&self, number: u32) -> Result<Node> {
        let (out, into) = register(self.plan.addr, number).await?.split();
        // Its acknowledgement.
        self.counts.frames.fetch_add(1, Ordering::Relaxed);
        Ok(Node { out, reading: tokio::spawn(count(into, Arc::clone(&self.counts))) })
    }
}

impl Node {
    async fn say(&mut self, message: &serde_json::Value) -> Result<()> {
        let sending = self.out.send(Message::text(message.to_string()));
        Ok(timeout(ANSWERS, sending).await.context("the relay does not read")??)
    }
}

async fn count(mut into: SplitStream<Socket>, counts: Arc<Counts>) {
    while let Some(Ok(message)) = into.next().await {
        if message.is_text() {
            counts.frames.fetch_add(1, Ordering::Relaxed);
            counts.bytes.fetch_add(message.len() as u64, Ordering::Relaxed);
        }
    }
}
