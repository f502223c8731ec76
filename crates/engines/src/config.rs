//! The settings of model engines, beside their models.

use std::{path::PathBuf, time::Duration};

use backend::Timeouts;

use crate::{
    memory::Memory,
    planner::{FailureRules, Rules},
};

/// The settings of model engines.
#[derive(Debug, Clone)]
pub struct EnginesConfig {
    /// A directory of their own: for the logs of the servers, and for what is learnt of loading. It is made when it
    /// is needed.
    pub dir: PathBuf,
    /// How much memory loaded models may take together.
    pub budget: Memory,
    /// The largest memory need of a model that is loaded at all; a model over `budget` is loaded
    /// alone.
    pub limit: Memory,
    /// How many models may be loading at the same time; 0 counts as 1.
    pub loads_at_once: usize,
    /// How many requests may wait for one model.
    pub most_waiting: usize,
    /// How long a load waits for models in use, before these get no new requests.
    pub patience: Duration,
    /// The treatment of models that fail.
    pub failures: FailureRules,
    /// How long a server may take to end after SIGTERM, before it is killed.
    pub grace: Duration,
    /// How long a server may take until it answers, in addition to the time that reading its file
    /// may take.
    pub start_deadline: Duration,
    /// How long to wait for answers.
    pub timeouts: Timeouts,
    /// The program that holds the servers, and its arguments; `None`: this binary, with its hidden command.
    pub supervisor: Option<(PathBuf, Vec<String>)>,
}

impl EnginesConfig {
    /// The default bounds for a machine, or for an amount of memory. Models may take a part of that
    /// memory, see [`Memory::for_models`].
    pub fn new(dir: impl Into<PathBuf>, machine: impl Into<Memory>) -> Self {
        let limit = machine.into();
        Self {
            dir: dir.into(),
            budget: limit.for_models(),
            limit,
            loads_at_once: 1,
            most_waiting: 256,
            patience: Duration::from_secs(5),
            failures: FailureRules::default(),
            grace: Duration::from_secs(5),
            start_deadline: Duration::from_secs(60),
            timeouts: Timeouts::default(),
            supervisor: None,
        }
    }

    /// Sets how many bytes models may take together, whichever kind of memory they are in.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        let budget = Memory { vram: 0, ram: bytes };
        let limit = Memory { vram: 0, ram: self.limit.total().max(bytes) };
        Self { budget, limit, ..self }
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules {
            budget: self.budget,
            limit: self.limit,
            loads_at_once: self.loads_at_once,
            most_waiting: self.most_waiting,
            patience: self.patience,
            failures: self.failures,
        }
    }
}
