//! A large file whose pull is interrupted by killing the fetching machine and its sources.

use std::time::{Duration, Instant};

use testkit::Random;
use tokio::time::{sleep, timeout};

use crate::mesh::{
    Settings,
    account::Report,
    backend,
    file::Offered,
    machine::{Machine, Start},
    pull::Lines,
};

/// A pull that is silent for longer hangs.
const SILENT: Duration = Duration::from_secs(120);

/// How long a killed machine stays away.
const AWAY: Duration = Duration::from_secs(2);

/// The bytes that may be fetched again after the fetching machine was killed: those in flight.
const AGAIN: u64 = 64 << 20;

/// Two machines that have a model, and one that fetches it.
struct Three {
    offered: Offered,
    sources: Vec<Machine>,
    puller: Machine,
}

enum Step {
    Done,
    /// This many bytes have arrived: time for the next interruption.
    Reached(u64),
}

/// Fetches a file of `gib` GiB; returns one line of account.
pub(crate) async fn run(settings: &Settings, gib: f64, report: &Report) -> String {
    let bytes = (gib * f64::from(1 << 30)) as u64;
    let three = Three::start(settings, bytes, report).await;
    let begun = Instant::now();
    let pulled = three.pull(bytes, settings.interrupts).await;
    let seconds = begun.elapsed().as_secs_f64();
    let account = match pulled {
        Ok(account) => account,
        Err(wrong) => {
            report.wrong(wrong.clone());
            wrong
        }
    };
    if let Err(differs) = three.offered.compare(&three.puller.data_dir()).await {
        report.wrong(differs);
    }
    let resident = three.puller.resident_mib().await;
    for machine in three.sources.iter().chain([&three.puller]) {
        machine.keep_current_log().await;
    }
    let wrongs = report.wrongs();
    format!(
        "{gib} GiB in {seconds:.1} s: {account}; who fetched it occupies {resident} MiB; {wrongs} wrong"
    )
}

impl Three {
    async fn start(settings: &Settings, bytes: u64, report: &Report) -> Self {
        let mut random = Random::new(settings.trial.seed);
        let offered = Offered::make(bytes, random.fork()).await;
        let models = offered.directory().display().to_string();
        let mut machines: Vec<Machine> = Vec::new();
        for number in 0..3 {
            let backend = backend::start(number, random.fork(), report).await;
            let mut flags = vec!["--mesh-passcode", "three of us", "--mesh-listen", "127.0.0.1:0"];
            let others: Vec<_> = machines.iter().filter_map(|peer| peer.mesh.as_deref()).collect();
            match number {
                2 => flags.extend(others.iter().flat_map(|peer| ["--mesh-peer", *peer])),
                _ => flags.extend(["--mesh-models", models.as_str()]),
            }
            let flags = flags.into_iter().map(str::to_owned).collect();
            let (binary, logs) = (settings.trial.binary.as_path(), settings.logs.as_deref());
            machines.push(Machine::new(number, backend, Start { binary, logs, flags }).await);
        }
        let puller = machines.pop().expect("there are three");
        Self { offered, sources: machines, puller }
    }

    async fn pull(&self, bytes: u64, interrupts: u32) -> Result<String, String> {
        let mut cuts = Vec::new();
        let mut lines = begin(&self.puller).await?;
        for interrupt in 1..=interrupts {
            let until = bytes / u64::from(interrupts + 1) * u64::from(interrupt);
            match follow(&mut lines, until).await? {
                Step::Done => return Err(format!("it ended before interruption {interrupt}")),
                Step::Reached(reached) => match interrupt % 2 {
                    1 => {
                        drop(lines);
                        lines = self.interrupt_puller(reached, &mut cuts).await?;
                    }
                    _ => self.interrupt_sources(reached, &mut cuts).await,
                },
            }
        }
        match follow(&mut lines, u64::MAX).await? {
            Step::Done => Ok(cuts.join(", ")),
            Step::Reached(_) => Err("there was more than the whole".to_owned()),
        }
    }

    async fn interrupt_puller(
        &self,
        reached: u64,
        cuts: &mut Vec<String>,
    ) -> Result<Lines, String> {
        self.puller.kill().await;
        sleep(AWAY).await;
        self.puller.start().await;
        let mut lines = begin(&self.puller).await?;
        let Step::Reached(again) = follow(&mut lines, 1).await? else {
            return Err("it was done when it had been interrupted".to_owned());
        };
        cuts.push(format!("killed at {} MiB, gone on at {} MiB", reached >> 20, again >> 20));
        if again + AGAIN < reached {
            return Err(format!("of {reached} bytes that were there {again} were left"));
        }
        Ok(lines)
    }

    async fn interrupt_sources(&self, reached: u64, cuts: &mut Vec<String>) {
        for source in &self.sources {
            source.kill().await;
        }
        sleep(AWAY).await;
        for source in &self.sources {
            source.start().await;
        }
        cuts.push(format!("both sources killed at {} MiB", reached >> 20));
    }
}

async fn begin(puller: &Machine) -> Result<Lines, String> {
    Lines::of(puller).await.map_err(|why| format!("it cannot be fetched: {why}"))
}

/// Reads until `bytes` bytes have arrived, or all.
async fn follow(lines: &mut Lines, bytes: u64) -> Result<Step, String> {
    loop {
        let next = timeout(SILENT, lines.next()).await;
        let next = next.map_err(|_| format!("it says nothing for {SILENT:?}"))?;
        let step = next?.ok_or("it ended without an end")?;
        match step.state.as_str() {
            "done" => return Ok(Step::Done),
            "failed" | "cancelled" => return Err(format!("it failed: {step:?}")),
            _ if step.bytes >= bytes => return Ok(Step::Reached(step.bytes)),
            _ => {}
        }
    }
}
