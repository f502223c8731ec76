//! Events for a planner, and what it tells its driver to do.

use std::{sync::Arc, time::Duration};

use crate::{
    memory::{Bytes, Memory},
    model::Group,
};

/// The facts that a planner needs about a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The memory that it takes while it is loaded.
    pub need: Memory,
    /// Whether it stays loaded even if another model needs the memory.
    pub keep: bool,
    /// After how long without a request it is unloaded.
    pub ttl: Option<Duration>,
    /// Which models it may run beside.
    pub group: Option<Group>,
    /// A new number means another file or command: a loaded model is started again.
    pub revision: u64,
}

/// Something happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// The list of models has been replaced.
    Models(Vec<(Arc<str>, Spec)>),
    /// A request wants a model. It is granted or refused, once, unless it is cancelled before.
    Claim {
        /// A new number.
        claim: u64,
        /// The model.
        model: Arc<str>,
    },
    /// A request no longer waits.
    Cancel {
        /// Its number.
        claim: u64,
        /// Its model.
        model: Arc<str>,
    },
    /// A request to which a model was granted has ended.
    Release {
        /// Its model.
        model: Arc<str>,
        /// The start of the model that it was granted.
        generation: u64,
        /// Whether it was answered to its end.
        answered: bool,
    },
    /// Somebody wants a model unloaded.
    Unload {
        /// A new number.
        ask: u64,
        /// The model.
        model: Arc<str>,
    },
    /// A model's server answers.
    Started {
        /// The model.
        model: Arc<str>,
        /// Which start of it.
        generation: u64,
    },
    /// The memory that a model's server was seen to take.
    Measured {
        /// The model.
        model: Arc<str>,
        /// Which start of it.
        generation: u64,
        /// How much memory. A higher estimate stays, since the server may read more into memory
        /// later.
        memory: Memory,
    },
    /// A model's server could not be started, or has ended by itself.
    Failed {
        /// The model.
        model: Arc<str>,
        /// Which start of it.
        generation: u64,
        /// The failure in words.
        reason: Arc<str>,
    },
    /// A model's server has ended as asked.
    Stopped {
        /// The model.
        model: Arc<str>,
        /// Which start of it.
        generation: u64,
    },
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Start a model's server.
    Start {
        /// The model.
        model: Arc<str>,
        /// The number of this start.
        generation: u64,
    },
    /// End a model's server.
    Stop {
        /// The model.
        model: Arc<str>,
        /// Which start of it.
        generation: u64,
    },
    /// A request has its model.
    Grant {
        /// Its number.
        claim: u64,
        /// Its model.
        model: Arc<str>,
        /// Which start of it.
        generation: u64,
    },
    /// A request does not get its model.
    Refuse {
        /// Its number.
        claim: u64,
        /// Why.
        refusal: Refusal,
    },
    /// The answer to an [`Input::Unload`].
    Unloaded {
        /// The number of that input.
        ask: u64,
        /// Whether the model is unloaded now.
        result: Result<(), Refusal>,
    },
}

/// Why a model could not be loaded or unloaded, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such model.
    #[error("this machine has no such model")]
    Unknown,
    /// It is no longer in the list of models.
    #[error("its file is no longer there")]
    Gone,
    /// It does not fit into the machine.
    #[error(
        "it takes about {}, and this machine has {} for models; try a smaller quantisation, or a shorter context",
        Bytes(need.total()), Bytes(limit.total())
    )]
    TooLarge {
        /// The memory that it takes.
        need: Memory,
        /// The memory that there is.
        limit: Memory,
    },
    /// Models that are kept leave no room.
    #[error(
        "it takes about {}, and beside the models that are kept loaded ({kept}) there is no room for it",
        Bytes(need.total())
    )]
    Kept {
        /// The memory that it takes.
        need: Memory,
        /// The kept models that are in the way.
        kept: String,
    },
    /// Too many requests wait for it already.
    #[error("{0} requests wait for it already, as many as may")]
    Full(usize),
    /// Its server failed.
    #[error("{0}")]
    Failed(Arc<str>),
    /// It has failed again and again.
    #[error("it failed {times} times in a row and is tried again in {} s: {reason}", again_in.as_secs().max(1))]
    Resting {
        /// How often.
        times: u32,
        /// When it is tried again.
        again_in: Duration,
        /// The last failure.
        reason: Arc<str>,
    },
    /// It is being loaded.
    #[error("it is being loaded")]
    Loading,
    /// It is in use.
    #[error("it is in use by {0} requests")]
    InUse(u32),
}

impl Refusal {
    /// Whether the same request may succeed in a moment.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Full(_) | Self::Loading | Self::InUse(_))
    }
}
