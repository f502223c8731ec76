//! Many clients of one terminal that writes at its own pace, some of which never read.
//!
//! - [`board`]: what all that read have seen
//! - [`skim`]: what one of them reads

mod board;
mod skim;

use std::{
    io::ErrorKind,
    net::TcpStream as Blocking,
    os::fd::AsRawFd,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, ensure};
use nix::sys::socket::{MsgFlags, recv};
use serde::{Deserialize, Serialize};
use tokio::{
    io::Interest,
    net::TcpStream,
    task::JoinSet,
    time::{Duration, Instant, timeout},
};

use self::{
    board::Board,
    skim::{SKIPPED, Skim},
};
use super::{Daemon, LIMIT, client::Client, terminal::program};
use crate::{
    proc,
    programs::{READY, flood::Kind},
    stats::Times,
};

const BUFFER: usize = 256 << 10;

/// Reads that are closer together than this belong to the same delivery.
const APART: Duration = Duration::from_millis(1);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Crowd {
    pub(crate) daemon: Daemon,
    pub(crate) reading: u32,
    pub(crate) stalled: u32,
    pub(crate) megabytes: u64,
    pub(crate) pace: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) finished: u32,
    /// The fewest bytes of output that one of them was sent, and the most.
    pub(crate) least: u64,
    pub(crate) most: u64,
    pub(crate) missed: u64,
    /// Until the last of them had seen all, in seconds.
    pub(crate) seconds: f64,
    /// Between two deliveries to a client that are [`APART`] or more.
    pub(crate) gaps: Times,
    /// The daemon's memory in bytes: before, and the most meanwhile.
    pub(crate) memory: Option<[u64; 2]>,
    pub(crate) cpu: Option<f64>,
}

pub(super) async fn run(plan: Crowd) -> Result<Outcome> {
    let mut owner = Client::open(&plan.daemon)?;
    let session = begin(&mut owner, &plan)?;
    let pids = plan.daemon.pids();
    let resident = proc::resident(&pids).ok();
    let _stalled = clients(&plan, plan.stalled, &session)?;
    let board = Arc::<Mutex<Board>>::default();
    let buffer = Arc::new(Mutex::new(vec![0; BUFFER]));
    let mut reading = JoinSet::new();
    for client in clients(&plan, plan.reading, &session)? {
        reading.spawn(client.read(Arc::clone(&board), Arc::clone(&buffer)));
    }
    proc::reset_peak(&pids);
    let (before, begun) = (proc::cpu(&pids).ok(), Instant::now());
    owner.enter(&session, b"\r")?;
    let limit = LIMIT + Duration::from_secs_f64(2.0 * plan.megabytes as f64 / plan.pace);
    timeout(limit, all(&mut reading)).await.context("not all clients have seen all in time")??;
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = proc::cpu(&pids).ok().zip(before);
    let memory = resident.zip(proc::peak(&pids).ok()).map(|(before, peak)| [before, peak]);
    owner.kill(&session)?;
    let cpu = cpu.map(|(after, before)| after.saturating_sub(before).as_secs_f64());
    let mut outcome = Outcome { seconds, memory, cpu, ..Outcome::default() };
    board.lock().unwrap_or_else(PoisonError::into_inner).tell(&mut outcome);
    Ok(outcome)
}

async fn all(reading: &mut JoinSet<Result<()>>) -> Result<()> {
    while let Some(done) = reading.join_next().await {
        done??;
    }
    Ok(())
}

/// Opens the terminal. Only its owner knows of it yet.
fn begin(owner: &mut Client, plan: &Crowd) -> Result<String> {
    let program = program()?.display().to_string();
    let (megabytes, pace) = (plan.megabytes.to_string(), plan.pace.to_string());
    let flood = ["flood", Kind::Plain.name(), &megabytes, "--pace", &pace];
    let session = owner.run(&program, &flood)?;
    let begun = Instant::now();
    // The owner's connection follows nothing, so that it is not one more of the clients.
    while !owner.attach(&session)?.contains(READY) {
        ensure!(begun.elapsed() < LIMIT, "the terminal shows nothing");
        super::pause(Duration::from_millis(5));
    }
    owner.say(&serde_json::json!({"type": "detach"}))?;
    owner.hear("detached")?;
    Ok(session)
}

fn clients(plan: &Crowd, count: u32, session: &str) -> Result<Vec<Attached>> {
    (0..count).map(|_| Attached::open(&plan.daemon, session)).collect()
}

struct Attached {
    stream: Blocking,
    early: Vec<u8>,
}

impl Attached {
    fn open(daemon: &Daemon, session: &str) -> Result<Self> {
        let mut client = Client::open(daemon)?;
        client.attach(session)?;
        let (stream, early) = client.into_socket().into_parts();
        Ok(Self { stream, early })
    }

    /// Reads until the terminal's last word.
    async fn read(self, board: Arc<Mutex<Board>>, buffer: Arc<Mutex<Vec<u8>>>) -> Result<()> {
        self.stream.set_nonblocking(true)?;
        let stream = TcpStream::from_std(self.stream)?;
        let mut skim = Skim::default();
        skim.feed(&self.early)?;
        let mut last: Option<Instant> = None;
        while !skim.is_over() {
            stream.readable().await?;
            let before = skim.bytes();
            let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
            if !receive(&stream, &mut buffer, &mut skim)? || skim.bytes() == before {
                continue;
            }
            let now = Instant::now();
            if let Some(last) = last.replace(now).filter(|&last| now - last >= APART) {
                let mut board = board.lock().unwrap_or_else(PoisonError::into_inner);
                board.gap(now - last);
            }
        }
        board.lock().unwrap_or_else(PoisonError::into_inner).finished(&skim);
        Ok(())
    }
}

/// Reads what is there, if anything is. The middle of a long frame is left in the kernel: there are
/// many who read, and none of them is what is measured.
fn receive(stream: &TcpStream, buffer: &mut [u8], skim: &mut Skim) -> Result<bool> {
    let skipped = skim.middle();
    let (most, flags) = match skipped {
        0..SKIPPED => (buffer.len(), MsgFlags::empty()),
        _ => (skipped.min(buffer.len()), MsgFlags::MSG_TRUNC),
    };
    let received = stream
        .try_io(Interest::READABLE, || Ok(recv(stream.as_raw_fd(), &mut buffer[..most], flags)?));
    match received {
        Ok(0) => anyhow::bail!("the daemon closed"),
        Ok(count) if flags.is_empty() => skim.feed(&buffer[..count])?,
        Ok(count) => skim.skip(count),
        Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
        Err(e) => return Err(e.into()),
    }
    Ok(true)
}
