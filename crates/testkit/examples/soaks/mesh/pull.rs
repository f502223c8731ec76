//! A model that is fetched again and again, by machines that come and go, from machines that do.

use std::{sync::Arc, time::Duration};

use protocol::admin::mesh::MeshTransfer;
use serde_json::json;
use testkit::{
    Random,
    lab::{
        Crew,
        http::{self, Answer},
    },
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::mesh::{
    account::Report,
    file::{self, MODEL},
    machine::Machine,
    peers::Mesh,
    plan,
};

/// The machines that fetch it: one that can be dialled, one that is at the relay only, and one that has a link to one
/// of the sources.
const PULLERS: [usize; 3] = [3, 5, 8];

/// The longest that a machine does nothing before it fetches the model again, in milliseconds.
const RESTS: u64 = 4_000;

/// How long it is waited for a machine that is away, at each look.
const LOOK: Duration = Duration::from_millis(100);

/// A pull that is silent this long hangs: whom it comes from may be frozen, and it may be frozen
/// itself.
const SILENT: Duration = plan::FROZEN.saturating_mul(2).saturating_add(plan::BUSY);

/// How a pull may fail while its sources come and go.
const FAILS: [&str; 2] = ["not_found", "lost"];

#[derive(Debug)]
enum Attempt {
    Done,
    /// A reason, for programs.
    Failed(String),
    Gone,
}

/// A machine that fetches it again and again.
struct Puller {
    mesh: Arc<Mesh>,
    number: usize,
    random: Random,
    report: Report,
    stop: CancellationToken,
}

/// From now on it is fetched. When that is stopped, every puller fetches it once more: no machine comes or goes any more.
pub(crate) fn start(mesh: &Arc<Mesh>, random: &mut Random, report: &Report) -> Crew {
    let mut crew = Crew::of("what fetches a model");
    for number in PULLERS {
        let (random, report, stop) = (random.fork(), report.clone(), crew.stop_token());
        let puller = Puller { mesh: Arc::clone(mesh), number, random, report, stop };
        crew.spawn(puller.run());
    }
    crew
}

impl Puller {
    async fn run(mut self) {
        while !self.stop.is_cancelled() {
            self.fetch().await;
            let rest = Duration::from_millis(self.random.below(RESTS));
            self.stop.run_until_cancelled(sleep(rest)).await;
        }
        self.fetch().await;
    }

    async fn fetch(&self) {
        let machine = &self.mesh.machines[self.number];
        if let Err(error) = file::remove(&machine.data_dir()).await {
            return self.report.wrong(format!("the model cannot be taken away: {error}"));
        }
        let mut interrupted = false;
        loop {
            let calm = self.stop.is_cancelled();
            match self.attempt(machine).await {
                Ok(Attempt::Done) => break,
                Ok(Attempt::Gone) => interrupted = true,
                Ok(Attempt::Failed(code)) => {
                    if calm || !FAILS.contains(&code.as_str()) {
                        return self.wrong(&format!("failed: {code}"));
                    }
                    self.report.tally(|tally| *tally.pulls.failed.entry(code).or_default() += 1);
                }
                Err(wrong) => return self.wrong(&wrong),
            }
            sleep(LOOK).await;
        }
        if let Err(differs) = self.mesh.offered.compare(&machine.data_dir()).await {
            return self.wrong(&differs);
        }
        self.report.tally(|tally| {
            tally.pulls.done += 1;
            tally.pulls.resumed += u64::from(interrupted);
        });
    }

    fn wrong(&self, what: &str) {
        self.report.wrong(format!("the pull of machine {}: {what}", self.number));
    }

    async fn attempt(&self, machine: &Machine) -> Result<Attempt, String> {
        let before = machine.state();
        if !before.up {
            return Ok(Attempt::Gone);
        }
        let followed = follow(machine).await;
        let after = machine.state();
        let ended = (before.killed, before.stopped) != (after.killed, after.stopped);
        match followed {
            // A pull also ends when its machine does.
            Ok(_) | Err(_) if ended => Ok(Attempt::Gone),
            followed => followed,
        }
    }
}

/// Reads what a machine says of a pull, to its end.
async fn follow(machine: &Machine) -> Result<Attempt, String> {
    let silent = |_| format!("it says nothing for {SILENT:?}");
    let mut lines = timeout(SILENT, Lines::of(machine)).await.map_err(silent)??;
    let mut last = None;
    while let Some(step) = timeout(SILENT, lines.next()).await.map_err(silent)?? {
        last = Some(step);
    }
    let last = last.unwrap_or_default();
    match (last.state.as_str(), &last.code) {
        ("done", _) => Ok(Attempt::Done),
        ("failed", Some(code)) => Ok(Attempt::Failed(code.clone())),
        _ => Err(format!("its last step is {last:?}")),
    }
}

/// The reports of a machine on a pull, line by line.
pub(crate) struct Lines {
    answer: Answer,
    buffer: Vec<u8>,
}

impl Lines {
    /// Has a machine fetch the model.
    pub(crate) async fn of(machine: &Machine) -> Result<Self, String> {
        let request = machine.admin().post("/admin/mesh/pull", &json!({"model": MODEL}));
        let answer = http::send(machine.state().address, &request).await;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status {
            200 => Ok(Self { answer, buffer: Vec::new() }),
            status => Err(format!("{status} {}", answer.text().await.0)),
        }
    }

    /// The next step; nothing after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<MeshTransfer>, String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let nonsense = || format!("no step: {:?}", String::from_utf8_lossy(&line));
                return serde_json::from_slice(&line).map(Some).map_err(|_| nonsense());
            }
            match self.answer.piece().await.map_err(|error| error.to_string())? {
                Some(piece) => self.buffer.extend_from_slice(&piece),
                None => return Ok(None),
            }
        }
    }
}
