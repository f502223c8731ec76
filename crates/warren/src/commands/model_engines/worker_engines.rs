//! All model engines of a worker: lent as backends, with folders that are scanned again and again.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use anyhow::bail;
use base::ModelFacts;
use daemon::{
    data::MODELS,
    options::{EngineOptions, WorkerOptions},
};
use engines::{EngineModel, Engines, EnginesConfig, Memory};
use hardware::Machine;
use models::shelf::PassedOver;
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};
use worker::{Lend, LendEngines};

use super::{
    find::Places,
    memory,
    part::{Part, Stock},
    wanted::{WantedEngines, wanted},
};

/// The time between two scans of the folders.
const EVERY: Duration = Duration::from_secs(2);

/// The most jobs of all models of one program at once, those that wait for their model included.
pub(crate) const MAX_CONCURRENT: u32 = 32;

/// The most models that are loaded at the same time, unless the settings say otherwise.
pub(crate) const LOADS_AT_ONCE: u32 = 1;

/// The most files whose reason is given in one message.
const MOST_NAMED: usize = 8;

/// All model engines of a worker.
#[derive(Debug)]
pub(crate) struct WorkerEngines {
    engines: Engines,
    parts: Arc<Mutex<Vec<Part>>>,
    /// The memory for all models together, in bytes.
    memory: u64,
    is_named: bool,
    lent: Vec<LendEngines>,
    last_look: Mutex<LastLook>,
}

/// The results of the last scan.
#[derive(Debug, Default)]
struct LastLook {
    models: Vec<EngineModel>,
    /// The files that were reported to be no models, and whether they may still become some.
    reported: BTreeSet<(PathBuf, bool)>,
}

/// A model, as it is shown to people.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfferedModel {
    /// The name of the program that serves it.
    pub(crate) program: String,
    pub(crate) name: String,
    pub(crate) facts: ModelFacts,
}

impl WorkerEngines {
    /// Finds the programs and the models. Takes the folders among `--models` out of the options. `None` if
    /// there is nothing to lend: other backends are named, or no engine is named and a program is missing.
    ///
    /// # Errors
    /// When a named program or file is not there, or no named file is a model.
    pub(crate) async fn start(
        options: &mut WorkerOptions,
        data_dir: &Path,
        logs: &str,
    ) -> anyhow::Result<Option<Self>> {
        let Some(wanted) = wanted(options)? else { return Ok(None) };
        let (named, is_named) = (memory::named(&wanted.engines)?, wanted.is_named);
        let Some(parts) = parts(wanted, &data_dir.join(MODELS))? else { return Ok(None) };
        let whole = spawn_blocking(|| Memory::of(&Machine::detect())).await?;
        let memory = named.unwrap_or_else(|| memory::usual(whole));
        let mut config = memory::bounds(EnginesConfig::new(data_dir.join(logs), whole), named);
        let at_once = parts.iter().filter_map(|part| part.options().loads_at_once).max();
        config.loads_at_once = at_once.unwrap_or(LOADS_AT_ONCE) as usize;
        let engines = Engines::new(config);
        let lent = lent(&engines, &parts);
        let parts = Arc::new(Mutex::new(parts));
        let last_look = Mutex::default();
        let worker_engines = Self { engines, parts, memory, is_named, lent, last_look };
        let stock = worker_engines.look().await?;
        worker_engines.refuse_what_is_no_model(&stock)?;
        worker_engines.take(stock);
        Ok(Some(worker_engines))
    }

    /// Whether people named engines: then model servers that run here are not looked for.
    pub(crate) fn is_named(&self) -> bool {
        self.is_named
    }

    /// The backends to lend.
    pub(crate) fn lent(&self) -> Vec<Lend> {
        self.lent.iter().cloned().map(Lend::Engines).collect()
    }

    /// The engines, by programs.
    pub(crate) fn programs(&self) -> Vec<Arc<dyn worker::ModelEngines>> {
        self.lent.iter().map(|lent| Arc::clone(&lent.engines)).collect()
    }

    /// The present models.
    pub(crate) fn offered(&self) -> Vec<OfferedModel> {
        let last = self.last_look.lock().unwrap_or_else(PoisonError::into_inner);
        let offered = |model: &EngineModel| OfferedModel {
            program: model.program.name.clone(),
            name: model.name.clone(),
            facts: model.facts.clone(),
        };
        last.models.iter().map(offered).collect()
    }

    /// Follows the folders for ever.
    pub(crate) async fn follow(&self) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            match self.look().await {
                Ok(stock) => self.take(stock),
                Err(error) => tracing::warn!(%error, "the model files cannot be looked at"),
            }
        }
    }

    /// Ends all servers, and returns when they have ended.
    pub(crate) async fn stop(&self) {
        self.engines.shut_down().await;
    }

    async fn look(&self) -> anyhow::Result<Stock> {
        let (parts, memory) = (Arc::clone(&self.parts), self.memory);
        let look = move || {
            let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            let now = SystemTime::now();
            let mut all = Stock::default();
            for part in parts.iter_mut() {
                let stock = part.look(now, memory);
                all.models.extend(stock.models);
                all.passed_over.extend(stock.passed_over);
            }
            all
        };
        Ok(spawn_blocking(look).await?)
    }

    /// Refuses named files of which none is a model or can become one.
    fn refuse_what_is_no_model(&self, stock: &Stock) -> anyhow::Result<()> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut paths = parts.iter().flat_map(|part| part.paths());
        let is_over = stock.passed_over.iter().all(|it| !it.is_arriving);
        let only_files = paths.all(|path| path.is_file());
        if self.is_named
            && only_files
            && is_over
            && stock.models.is_empty()
            && let Some(reasons) = reasons(&stock.passed_over)
        {
            bail!("there is no model to serve: {reasons}");
        }
        Ok(())
    }

    /// Serves the present models, and reports each file that is no model once.
    fn take(&self, stock: Stock) {
        let mut last = self.last_look.lock().unwrap_or_else(PoisonError::into_inner);
        let over: BTreeSet<_> =
            stock.passed_over.iter().map(|it| (it.path.clone(), it.is_arriving)).collect();
        for passed_over in &stock.passed_over {
            if !last.reported.contains(&(passed_over.path.clone(), passed_over.is_arriving)) {
                tell(passed_over);
            }
        }
        last.reported = over;
        if last.models != stock.models {
            last.models.clone_from(&stock.models);
            self.engines.set_models(stock.models);
        }
    }
}

fn parts(wanted: WantedEngines, store: &Path) -> anyhow::Result<Option<Vec<Part>>> {
    let places = Places::here();
    let all = wanted.engines.into_iter().map(|options| Part::new(options, &places, store));
    match all.collect::<Result<Vec<_>, _>>() {
        Ok(parts) => Ok(Some(parts)),
        Err(missing) if wanted.is_named => Err(missing.into()),
        Err(missing) => {
            tracing::debug!(%missing, "pulled models are not served");
            Ok(None)
        }
    }
}

/// The programs by name, each with the largest of its bounds.
fn lent(engines: &Engines, parts: &[Part]) -> Vec<LendEngines> {
    let names: BTreeSet<&str> = parts.iter().map(Part::name).collect();
    let bound = |options: &EngineOptions| options.max_concurrent.unwrap_or(MAX_CONCURRENT);
    let lend = |name: &str| {
        let own = parts.iter().filter(|part| part.name() == name).map(Part::options);
        let max_concurrent = own.map(bound).max().unwrap_or(MAX_CONCURRENT);
        LendEngines { engines: engines.part(name), max_concurrent }
    };
    names.into_iter().map(lend).collect()
}

fn tell(passed_over: &PassedOver) {
    let (path, reason) = (passed_over.path.display(), &passed_over.reason);
    match passed_over.is_arriving {
        true => tracing::warn!(%path, reason, "not served yet"),
        false => tracing::warn!(%path, reason, "not served"),
    }
}

fn reasons(passed_over: &[PassedOver]) -> Option<String> {
    let first = passed_over.iter().take(MOST_NAMED);
    let list: Vec<_> = first.map(|it| format!("{}: {}", file_name(&it.path), it.reason)).collect();
    Some(list.join("; ")).filter(|list| !list.is_empty())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().map_or_else(|| PathBuf::from(path), PathBuf::from);
    name.display().to_string()
}
