//! A model from one machine to another, beside a plain copy of its file: both from and to the same file
//! system, in memory where there is one with room.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::{LISTENS, Part};
use crate::{
    lab::Lab,
    load::Failures,
    proc,
    report::{Column, Line, Section, mib},
    targets::mesh::Node,
};

const RATE: Column = Column::new("MiB/s", 0);
const FIRST: Column = Column::new("first MiB/s", 0);
const PEAK: Column = Column::new("peak MiB", 0);

const COPY: &str = "copy";
const PULL: &str = "pull";
const SERVE: &str = "serve";

const MODEL: &str = "bench/model";
const FILE: &str = "model.gguf";

const MEMORY: &str = "/dev/shm";

const LIMIT: Duration = Duration::from_secs(300);

const MIB: usize = 1 << 20;

pub(super) async fn sealed(lab: &Lab, program: &Path) -> Result<Section> {
    let models = ModelDir::new(lab)?;
    let gives = Node::start(program, models.path(), Some(&models.offered()), None).await?;
    let takes = Node::start(program, models.path(), None, Some(gives.lan)).await?;
    let mut rates = [Rates::default(), Rates::default()];
    let pids = [gives.pid(), takes.pid()];
    for _ in 0..=lab.options.rounds() {
        rates[0].add(models.copy(lab).await?);
        rates[1].add(takes.pull(MODEL).await?);
    }
    let peak = proc::peak(&pids).ok();
    takes.stop().await;
    gives.stop().await;
    let [copy, pull] = rates;
    let lines = vec![copy.line(COPY, &models, None), pull.line(PULL, &models, peak)];
    Ok(models.section(Part::Sealed, "from a Warren to a Warren, sealed and verified", lines, 0.5))
}

/// From a stock peer to a Warren, and from a Warren to a stock peer.
pub(super) async fn stock(lab: &Lab, program: &Path) -> Result<Section> {
    let models = ModelDir::new(lab)?;
    let from = models.file().display().to_string();
    let mut stock = lab.process(&["give", &from, MODEL], "stock")?;
    let lan = stock.listening(LISTENS).await?;
    let takes = Node::start(program, models.path(), None, Some(lan)).await?;
    let gives = Node::start(program, models.path(), Some(&models.offered()), None).await?;
    let mut rates = [Rates::default(), Rates::default(), Rates::default()];
    for _ in 0..=lab.options.rounds() {
        rates[0].add(models.copy(lab).await?);
        rates[1].add(takes.pull(MODEL).await?);
        rates[2].add(models.fetch(lab, &gives).await?);
    }
    let peaks = [proc::peak(&[takes.pid()]).ok(), proc::peak(&[gives.pid()]).ok()];
    takes.stop().await;
    gives.stop().await;
    stock.stop().await;
    let [copy, pull, serve] = rates;
    let lines = vec![
        copy.line(COPY, &models, None),
        pull.line(PULL, &models, peaks[0]),
        serve.line(SERVE, &models, peaks[1]),
    ];
    Ok(models.section(Part::Stock, "in the stock form, from and to a stock peer", lines, 0.25))
}

struct ModelDir {
    dir: TempDir,
    mib: usize,
    memory: bool,
}

impl ModelDir {
    fn new(lab: &Lab) -> Result<Self> {
        let mib = if lab.options.quick { 256 } else { 1024 };
        let made = |at: &Path| tempfile::Builder::new().prefix("benches-model-").tempdir_in(at);
        let (dir, memory) = match made(Path::new(MEMORY)) {
            Ok(dir) => (dir, true),
            Err(_) => (made(&std::env::temp_dir())?, false),
        };
        let models = Self { dir, mib, memory };
        models.fill().context("write the file of the model")?;
        Ok(models)
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn offered(&self) -> PathBuf {
        self.path().join("offered")
    }

    fn file(&self) -> PathBuf {
        self.offered().join(MODEL).join(FILE)
    }

    fn fill(&self) -> std::io::Result<()> {
        std::fs::create_dir_all(self.offered().join(MODEL))?;
        let mut file = File::create(self.file())?;
        let (mut state, mut piece) = (1_u64, vec![0; MIB]);
        for _ in 0..self.mib {
            for word in piece.as_chunks_mut::<8>().0 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *word = state.to_le_bytes();
            }
            file.write_all(&piece)?;
        }
        Ok(())
    }

    async fn copy(&self, lab: &Lab) -> Result<Duration> {
        let to = self.path().join("copy");
        let (from, at) = (self.file().display().to_string(), to.display().to_string());
        let mut receives = lab.process(&["receive", &at], "receive")?;
        let addr = receives.listening(LISTENS).await?.to_string();
        let mut sends = lab.process(&["send", &from, &addr], "send")?;
        let took = sends.line(LIMIT).await?.parse()?;
        sends.stop().await;
        receives.stop().await;
        std::fs::remove_file(to)?;
        Ok(Duration::from_secs_f64(took))
    }

    async fn fetch(&self, lab: &Lab, gives: &Node) -> Result<Duration> {
        let to = self.path().join("fetched");
        let (lan, at) = (gives.lan.to_string(), to.display().to_string());
        let mut fetches = lab.process(&["fetch", &lan, MODEL, &at], "fetch")?;
        let took = fetches.line(LIMIT).await?.parse()?;
        fetches.stop().await;
        std::fs::remove_file(to)?;
        Ok(Duration::from_secs_f64(took))
    }

    fn section(&self, part: Part, what: &str, lines: Vec<Line>, least: f64) -> Section {
        let models = if self.memory { "a file system in memory" } else { "a disk" };
        let goal = |line| RATE.at_least(line, least).beside(COPY);
        let goals = lines.iter().skip(1).map(|line| goal(line.target)).collect();
        Section {
            name: part.name().into(),
            title: format!("{} MiB on {models}, {what}; a plain copy over TCP", self.mib),
            columns: vec![RATE, FIRST, PEAK],
            lines,
            bases: &[COPY],
            goals,
        }
    }
}

#[derive(Default)]
struct Rates(Vec<Duration>);

impl Rates {
    fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// The first round, which may include hashing the file, is reported separately.
    fn line(&self, target: &'static str, models: &ModelDir, peak: Option<u64>) -> Line {
        let size = models.mib as f64;
        let rate = |rounds: &[Duration]| {
            let all: f64 = rounds.iter().map(Duration::as_secs_f64).sum();
            (all > 0.0).then(|| size * rounds.len() as f64 / all)
        };
        let (first, others) = self.0.split_at(1.min(self.0.len()));
        let values = vec![rate(others), rate(first), peak.map(mib)];
        Line::new(target, values, Failures::default())
    }
}
