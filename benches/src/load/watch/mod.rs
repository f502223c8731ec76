//! Watchers of rooms, many at once, and how long an event takes to reach all of them.
//!
//! One thread reads all the sockets, and takes longer for it than the server for writing. So each
//! event has two times: when it arrived at the socket, by the kernel's clock, and when it was read.
//!
//! - [`board`]: which events are on their way, and to how many
//! - [`marks`]: events found in what is read
//! - [`silent`]: watchers that do not read
//! - [`socket`]: when bytes arrived
//! - [`stream`]: one stream of events

mod board;
mod marks;
mod silent;
mod socket;
mod stream;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, sleep},
};

use self::{board::Board, silent::Silent, stream::Stream};
use super::{Failures, slow::Opened};
use crate::{
    backend,
    http1::Link,
    rooms::{self, ENDPOINT, Participant},
    stats::Times,
};

const AT_ONCE: usize = 64;

/// Between the arrival of an event and the next one.
const PAUSE: Duration = Duration::from_millis(5);

/// How long an event may take to all of its watchers.
const LIMIT: Duration = Duration::from_secs(20);

/// Events that silent watchers are made to miss: more than the server keeps, and the sockets hold.
const MISSED: u32 = 1000;

/// How many of these events are sent at once.
const BURST: u32 = 8;

/// Watchers, and the events that they get.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Watch {
    pub(crate) addr: SocketAddr,
    /// The codes of the rooms; each has one participant, the subject of the events.
    pub(crate) rooms: Vec<String>,
    pub(crate) watchers: u32,
    /// Watchers of the first room that do not read, beside those.
    pub(crate) silent: u32,
    /// Events to make, in one room after the other.
    pub(crate) events: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EventTimes {
    /// Events that were read, each by each watcher.
    pub(crate) events: u64,
    /// From before the request that makes an event to its arrival at each watcher's socket.
    pub(crate) arrived: Times,
    /// The same, to when it was read there.
    pub(crate) read: Times,
    /// From just before that request to its answer.
    pub(crate) made: Times,
    /// Events read without a time from the kernel; their time is when they were read.
    pub(crate) unstamped: u64,
    /// Silent watchers that found in the end that they had been dropped, and why.
    pub(crate) dropped: u64,
    /// Silent watchers that came back with the id of their last event, and went on from there.
    pub(crate) resumed: u64,
    /// Events that did not arrive, or not once and in order, and watchers that were lost.
    pub(crate) failures: Failures,
}

impl EventTimes {
    pub(crate) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.arrived.merge(&other.arrived);
        self.read.merge(&other.read);
        self.made.merge(&other.made);
        self.unstamped += other.unstamped;
        self.dropped += other.dropped;
        self.resumed += other.resumed;
        self.failures.merge(&other.failures);
    }
}

pub(crate) struct Watchers {
    pub(crate) opened: Opened,
    plan: Watch,
    board: Arc<Board>,
    _watchers: JoinSet<()>,
    silent: Vec<Silent>,
    link: Link,
    next: u32,
    made: Times,
}

pub(crate) async fn open(plan: &Watch) -> Result<Watchers> {
    let begun = Instant::now();
    let (gate, board) = (Arc::new(Semaphore::new(AT_ONCE)), Arc::new(Board::new()));
    let (told, mut outcomes) = mpsc::channel(AT_ONCE);
    let mut watchers = JoinSet::new();
    for room in plan.rooms.iter().flat_map(|room| (0..plan.watchers).map(move |_| room)) {
        let opening = opening(gate.clone(), plan.addr, room.clone());
        watchers.spawn(watcher(opening, told.clone(), board.clone()));
    }
    let mut opened = Opened::default();
    for _ in 0..watchers.len() {
        match outcomes.recv().await.context("a watcher was lost")? {
            Ok(()) => opened.open += 1,
            Err(why) => opened.failures.add(&why),
        }
    }
    let silent = open_silent(plan, &mut opened).await?;
    opened.seconds = begun.elapsed().as_secs_f64();
    let (link, plan) = (Link::open(plan.addr).await?, plan.clone());
    Ok(Watchers {
        opened,
        plan,
        board,
        _watchers: watchers,
        silent,
        link,
        next: 0,
        made: Times::default(),
    })
}

async fn open_silent(plan: &Watch, opened: &mut Opened) -> Result<Vec<Silent>> {
    let mut silent = Vec::new();
    for _ in 0..plan.silent {
        silent.push(Silent::open(plan.addr, &plan.rooms[0]).await?);
        opened.open += 1;
    }
    Ok(silent)
}

async fn opening(gate: Arc<Semaphore>, addr: SocketAddr, room: String) -> Result<Stream> {
    let _turn = gate.acquire().await?;
    Stream::open(addr, &format!("/v1/rooms/{room}/events"), None, false).await
}

/// Reads until the stream ends, which should not happen.
async fn watcher(
    opening: impl Future<Output = Result<Stream>>,
    told: mpsc::Sender<Result<(), String>>,
    board: Arc<Board>,
) {
    match opening.await {
        Err(e) => drop(told.send(Err(format!("{e:#}"))).await),
        Ok(mut stream) => {
            let _ = told.send(Ok(())).await;
            // The channel must close when the watchers have ended, so this end goes first.
            drop(told);
            let why = board.follow(&mut stream).await;
            board.lost(&why);
        }
    }
}

impl Watchers {
    /// Makes the events, waits for each to arrive everywhere, and lets the silent ones find out.
    pub(crate) async fn tell(&mut self) -> Result<EventTimes> {
        for _ in 0..self.plan.events {
            self.burst(1, ENDPOINT).await?;
            sleep(PAUSE).await;
        }
        let mut told = self.board.take();
        told.made = std::mem::take(&mut self.made);
        if !self.silent.is_empty() {
            self.overtake(&mut told).await?;
        }
        Ok(told)
    }

    /// Makes some events at once; returns when all have arrived everywhere.
    async fn burst(&mut self, events: u32, endpoint: &str) -> Result<()> {
        self.board.expect(u64::from(events) * u64::from(self.plan.watchers));
        for _ in 0..events {
            self.event(endpoint).await?;
        }
        self.board.all_arrived(LIMIT).await;
        Ok(())
    }

    async fn event(&mut self, endpoint: &str) -> Result<()> {
        let rooms = &self.plan.rooms;
        let room = &rooms[self.next as usize % rooms.len()];
        let nickname = marks::nickname(self.next);
        let id = rooms::id(0);
        let participant = Participant { id: &id, nickname: &nickname, endpoint };
        let begun = backend::now();
        self.board.sent(self.next, begun);
        rooms::put(&mut self.link, room, &participant).await?;
        self.made.add(Duration::from_nanos(backend::now().saturating_sub(begun)));
        self.next += 1;
        Ok(())
    }

    /// Makes enough events that the silent watchers miss some; then they read, and come back.
    async fn overtake(&mut self, told: &mut EventTimes) -> Result<()> {
        // As long as allowed, so that fewer events are needed.
        let long = format!("{ENDPOINT}/{}", "x".repeat(1900));
        for _ in 0..MISSED / BURST {
            self.burst(BURST, &long).await?;
        }
        let newest = self.next - 1;
        for silent in self.silent.drain(..) {
            match silent.wake().await {
                Ok(last) => {
                    told.dropped += 1;
                    let back = silent::come_back(self.plan.addr, &self.plan.rooms[0], last, newest);
                    match back.await {
                        Ok(()) => told.resumed += 1,
                        Err(e) => told.failures.add(&format!("{e:#}")),
                    }
                }
                Err(e) => told.failures.add(&format!("{e:#}")),
            }
        }
        told.failures.merge(&self.board.take().failures);
        Ok(())
    }
}
