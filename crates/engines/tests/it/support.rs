//! Model engines in a directory of their own.

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use backend::{Answer, Backend, BackendError, BackendRequest, ModelEngines};
use base::{LoadState, ModelFacts};
use bytes::Bytes;
use engines::{EngineModel, Engines, EnginesConfig, Memory, Program};
pub(crate) use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// The memory that each model takes; the budget is three times that.
pub(crate) const SIZE: u64 = 1 << 30;

/// The program that the tests start: a supervisor, a model server with faults, or a worker that is killed.
pub(crate) fn host() -> String {
    testkit::processes::example("engines_host", "engines").display().to_string()
}

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) engines: Engines,
    pub(crate) part: Arc<dyn ModelEngines>,
    pub(crate) backend: Backend,
    program: Arc<Program>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {}, |_| {})
    }

    pub(crate) fn with(
        config: impl FnOnce(&mut EnginesConfig),
        program: impl FnOnce(&mut Program),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory { vram: 0, ram: 3 * SIZE };
        let mut settings = EnginesConfig {
            budget: memory,
            grace: Duration::from_millis(500),
            supervisor: Some((host().into(), vec!["supervisor".to_owned()])),
            ..EnginesConfig::new(dir.path().join("data"), memory)
        };
        config(&mut settings);
        let mut served = Program {
            name: "fake".to_owned(),
            command: vec![host(), "serve".into(), "{model}".into(), "{port}".into()],
            env: Vec::new(),
            health: None,
            endpoints: None,
        };
        program(&mut served);
        let engines = Engines::new(settings);
        let part = engines.part("fake");
        let backend = Backend::Engines(Arc::clone(&part));
        Self { dir, engines, part, backend, program: Arc::new(served) }
    }

    /// A model file with these words in it.
    pub(crate) fn model(&self, name: &str, words: &str) -> EngineModel {
        let file = self.path(&format!("{name}.gguf"));
        std::fs::write(&file, format!("MODEL\n{words}\n")).unwrap();
        EngineModel {
            name: name.to_owned(),
            file,
            mmproj: None,
            facts: ModelFacts { file_bytes: Some(8), ..ModelFacts::default() },
            memory_bytes: SIZE,
            context: None,
            parallel: None,
            threads: None,
            program: Arc::clone(&self.program),
            flags: Vec::new(),
            keep: false,
            ttl: None,
            group: None,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// These are the models, each with the words of its file.
    pub(crate) fn set(&self, models: &[(&str, &str)]) {
        let models = models.iter().map(|(name, words)| self.model(name, words));
        self.engines.set_models(models.collect());
    }

    /// Asks for an answer that takes this long.
    pub(crate) async fn ask(&self, model: &str, ms: u64) -> Result<Answer, BackendError> {
        let body = json!({"model": model, "messages": [], "stream": true, "ms": ms}).to_string();
        let request = BackendRequest {
            path_and_query: "/v1/chat/completions".to_owned(),
            body: vec![Bytes::from(body)],
            ..BackendRequest::default()
        };
        within(self.backend.send(request)).await
    }

    /// Asks, and reads the answer to its end. Returns the process that has answered.
    pub(crate) async fn pid(&self, model: &str) -> Result<u32, BackendError> {
        let mut answer = self.ask(model, 0).await?;
        let first = first(&mut answer).await;
        rest(answer).await?;
        Ok(first)
    }

    /// Why a model gives no answer.
    pub(crate) async fn refusal(&self, model: &str) -> String {
        match self.pid(model).await {
            Err(error @ BackendError::Engine { .. }) => error.without_address(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn load(&self, model: &str) -> Option<LoadState> {
        self.part.facts()[model].load
    }

    /// How often a server of a model was started.
    pub(crate) fn starts(&self, model: &str) -> usize {
        let log = self.path("data/logs").join(format!("{model}.log"));
        std::fs::read_to_string(log)
            .unwrap_or_default()
            .lines()
            .filter(|it| it.starts_with("$ "))
            .count()
    }
}

/// The process that answers, by the first event.
pub(crate) async fn first(answer: &mut Answer) -> u32 {
    assert_eq!(answer.status, 200);
    let bytes = within(answer.body.next()).await.unwrap().unwrap();
    let event = std::str::from_utf8(&bytes).unwrap().strip_prefix("data: ").unwrap();
    let event: Value = serde_json::from_str(event.lines().next().unwrap()).unwrap();
    event["pid"].as_u64().unwrap().try_into().unwrap()
}

/// Reads the rest of an answer.
pub(crate) async fn rest(mut answer: Answer) -> Result<String, BackendError> {
    let mut text = String::new();
    while let Some(bytes) = within(answer.body.next()).await {
        text.push_str(std::str::from_utf8(&bytes?).unwrap());
    }
    Ok(text)
}

pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("in time")
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, waiting).await.is_ok(), "not in time: {what}");
}

pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::SIGKILL);
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = nix::unistd::Pid::from_raw(pid.try_into().unwrap());
    nix::sys::signal::kill(pid, signal).unwrap();
}

/// Whether a process lives; a zombie does not.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Whether each thread of a process is stopped.
pub(crate) fn stands_still(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks.into_iter().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T"))
    })
}

/// The processes whose command line holds this text.
pub(crate) fn processes(text: &str) -> Vec<u32> {
    testkit::processes::with(text, "").iter().map(|process| process.pid).collect()
}
