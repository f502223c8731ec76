//! The models of one program, as a backend to lend.

use std::sync::Arc;

use backend::{BackendError, Claim, ModelEngines};
use base::{Endpoints, FactsByModel};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::watch;

use crate::{planner::Refusal, shared::Shared};

/// The models of one program.
#[derive(Debug)]
pub(crate) struct Part {
    shared: Arc<Shared>,
    program: String,
}

impl Part {
    pub(crate) fn new(shared: Arc<Shared>, program: &str) -> Self {
        Self { shared, program: program.to_owned() }
    }

    fn unknown(&self, model: &str) -> Option<BackendError> {
        let reason = || Refusal::Unknown.to_string().into();
        let is_ours = self.shared.has(&self.program, model);
        (!is_ours).then(|| BackendError::Engine {
            model: model.into(),
            reason: reason(),
            busy: false,
        })
    }
}

impl ModelEngines for Part {
    fn label(&self) -> &str {
        &self.program
    }

    fn models(&self) -> Vec<String> {
        self.shared.models(&self.program)
    }

    fn facts(&self) -> FactsByModel {
        self.shared.facts(&self.program)
    }

    fn endpoints(&self) -> Option<Endpoints> {
        self.shared.endpoints(&self.program)
    }

    fn claim<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<Claim, BackendError>> {
        self.shared.claim(model).boxed()
    }

    fn load<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            match self.unknown(model) {
                Some(error) => Err(error),
                None => self.shared.claim(model).await.map(drop),
            }
        }
        .boxed()
    }

    fn unload<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), BackendError>> {
        async move {
            match self.unknown(model) {
                Some(error) => Err(error),
                None => self.shared.unload(model).await,
            }
        }
        .boxed()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes()
    }
}
