//! Models that the server has the worker load and unload.

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{Arc, Mutex},
};

use backend::{BackendError, Claim, ModelEngines};
use base::{Endpoints, FactsByModel, LoadState, ModelFacts};
use protocol::relay::{
    ModelDone, ServerMessage, WorkerMessage,
    message::{ModelMessage, ModelsUpdate},
};
use tokio::sync::watch;
use worker::{Lend, LendEngines};

use crate::support::{Pipes, RunningWorker, ServerEnd, config, demo};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Two models, which are loaded at once.
#[derive(Debug)]
struct Engines {
    loaded: Mutex<BTreeSet<String>>,
    changes: watch::Sender<u64>,
}

impl Engines {
    fn set(&self, model: &str, loads: bool) -> Result<(), BackendError> {
        if !self.models().contains(&model.to_owned()) {
            let reason = "there is no such file".into();
            return Err(BackendError::Engine { model: model.into(), reason, busy: false });
        }
        let mut loaded = self.loaded.lock().unwrap();
        if loads {
            loaded.insert(model.to_owned())
        } else {
            loaded.remove(model)
        };
        drop(loaded);
        self.changes.send_modify(|number| *number += 1);
        Ok(())
    }
}

impl ModelEngines for Engines {
    fn label(&self) -> &str {
        "engines"
    }

    fn models(&self) -> Vec<String> {
        vec!["a".to_owned(), "org/b".to_owned()]
    }

    fn facts(&self) -> FactsByModel {
        let loaded = self.loaded.lock().unwrap();
        let state = |model: &str| match loaded.contains(model) {
            true => LoadState::Loaded,
            false => LoadState::Unloaded,
        };
        let facts = |model: &str| ModelFacts { load: Some(state(model)), ..ModelFacts::default() };
        self.models().into_iter().map(|model| (model.clone(), facts(&model))).collect()
    }

    fn endpoints(&self) -> Option<Endpoints> {
        None
    }

    fn claim<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<Claim, BackendError>> {
        let reason = "nobody asks here".into();
        let error = BackendError::Engine { model: model.into(), reason, busy: false };
        Box::pin(async { Err(error) })
    }

    fn load<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async { self.set(model, true) })
    }

    fn unload<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), BackendError>> {
        Box::pin(async { self.set(model, false) })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

fn engines() -> Lend {
    let engines = Engines { loaded: Mutex::default(), changes: watch::Sender::default() };
    Lend::Engines(LendEngines { engines: Arc::new(engines), max_concurrent: 2 })
}

async fn registered(lend: Lend, binary: bool) -> (RunningWorker, ServerEnd, bool) {
    let (pipes, mut servers) = Pipes::new(binary);
    let worker = RunningWorker::start(config(vec![lend]), pipes);
    let mut server = servers.recv().await.unwrap();
    let loads = server.register().await.loads_models;
    (worker, server, loads)
}

fn message(number: u32, model: &str) -> ModelMessage {
    ModelMessage { number, model: model.to_owned() }
}

/// How the load or unload went, and whether the model is loaded by the last report.
async fn done(server: &mut ServerEnd, model: &str) -> (ModelDone, Option<LoadState>) {
    let (mut done, mut state) = (None, None);
    while done.is_none() || state.is_none() {
        match server.message().await {
            WorkerMessage::ModelDone(report) => done = Some(report),
            WorkerMessage::ModelsUpdate(ModelsUpdate { facts, .. }) => {
                state = Some(facts.get(model).and_then(|facts| facts.load));
            }
            other => panic!("{other:?}"),
        }
    }
    (done.unwrap(), state.unwrap())
}

#[tokio::test]
async fn a_model_is_loaded_and_unloaded_when_the_server_says_so() {
    let (_worker, mut server, loads) = registered(engines(), true).await;
    assert!(loads, "it said that it does that");
    server.say(&ServerMessage::LoadModel(message(7, "org/b")));
    let went_well = |number| ModelDone { number, error: None };
    let loaded = (went_well(7), Some(LoadState::Loaded));
    assert_eq!(done(&mut server, "org/b").await, loaded);
    server.say(&ServerMessage::UnloadModel(message(8, "org/b")));
    let unloaded = (went_well(8), Some(LoadState::Unloaded));
    assert_eq!(done(&mut server, "org/b").await, unloaded);
}

#[tokio::test]
async fn a_load_that_fails_is_reported_with_its_reason() {
    let (_worker, mut server, _) = registered(engines(), true).await;
    server.say(&ServerMessage::LoadModel(message(1, "x")));
    let WorkerMessage::ModelDone(ModelDone { number: 1, error: Some(why) }) =
        server.message().await
    else {
        panic!()
    };
    assert!(why.contains("there is no such file"), "{why}");
}

#[tokio::test]
async fn a_backend_that_loads_no_models_says_so_to_a_warren_only() {
    let (_worker, mut server, loads) = registered(demo(), true).await;
    assert!(!loads);
    server.say(&ServerMessage::LoadModel(message(1, "warren-demo")));
    let WorkerMessage::ModelDone(refused) = server.message().await else { panic!() };
    assert!(refused.error.is_some_and(|why| why.contains("does not load models")));
    let (_worker, server, loads) = registered(engines(), false).await;
    server.say(&ServerMessage::LoadModel(message(1, "a")));
    assert!(!loads && server.is_silent());
}
