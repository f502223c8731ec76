//! One model's server: a process from its start to its end.
//!
//! - `launch`: starts it, and waits until it answers
//! - `command`: its command, from a template; `health`: whether it answers
//! - `log`: what it writes, kept within bounds; `flow`: reads it
//! - `failure`: what goes wrong, in words; `measure`: the memory that it takes

mod command;
mod failure;
mod flow;
mod health;
mod launch;
mod log;
mod measure;

use std::{sync::Arc, time::Duration};

use backend::HttpBackend;
use process::{Child, Signal};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{model::EngineModel, shared::Shared};
use failure::Failure;
pub(crate) use log::ServerLog;

/// How soon after its start, and how often, the memory of a server is measured.
const MEASURE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// How often a server that may be dead is asked whether it answers.
const LOOKS: u32 = 3;

/// All that the start of a server needs.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    /// The name of the model, as the planner has it.
    pub(crate) name: Arc<str>,
    pub(crate) model: Arc<EngineModel>,
    /// The number of this start.
    pub(crate) generation: u64,
    pub(crate) log: Arc<ServerLog>,
    /// How long it took to load before.
    pub(crate) expected: Option<Duration>,
    pub(crate) stop: CancellationToken,
    /// Tells the server's requests why the server ended.
    pub(crate) ending: watch::Sender<Option<Arc<str>>>,
    /// A request had no answer: does the server still live?
    pub(crate) doubt: Arc<Notify>,
}

/// A server that answers.
#[derive(Debug)]
struct Server {
    child: Child,
    /// Reads its output.
    flow: Option<JoinHandle<()>>,
    backend: Arc<HttpBackend>,
}

/// Starts a server, and stays with it to its end. The planner hears each step.
pub(crate) async fn run(start: Start) {
    let begun = Instant::now();
    match launch::launch(&start).await {
        Ok(server) => {
            let (model, load_ms) = (&*start.name, base::millis(begun.elapsed()));
            tracing::info!(model, load_ms, server = server.backend.label(), "a model is loaded");
            start.shared.learn(&start.model, begun.elapsed());
            start.shared.started(&start.name, start.generation, Arc::clone(&server.backend));
            let reason = start.serve(server).await;
            start.over(reason);
        }
        Err(Failure::Stopped) => start.over(None),
        Err(failure) => start.over(Some(start.words(&failure))),
    }
}

impl Start {
    /// Waits until the server ends, or is told to end. Returns the reason if it ended by itself.
    async fn serve(&self, mut server: Server) -> Option<Arc<str>> {
        let handle = server.child.handle();
        self.learn_endpoints(&server.backend);
        self.learn_continuation(&server.backend);
        let mut looks = interval_at(Instant::now() + MEASURE.0, MEASURE.1);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                exit = server.child.wait() => {
                    launch::end(&handle, server.flow.take()).await;
                    let what = "while it ran";
                    return Some(self.words(&Failure::Ended { exit, what }));
                }
                () = self.stop.cancelled() => break,
                () = self.doubt.notified() => {
                    if !self.still_answers(&server.backend).await {
                        launch::end(&handle, server.flow.take()).await;
                        return Some(self.words(&Failure::Silent));
                    }
                }
                _ = looks.tick() => {
                    if let Some(bytes) = measure::resident(&handle).await {
                        self.shared.measured(&self.name, self.generation, bytes);
                    }
                }
            }
        }
        stop(server, self.shared.config.grace).await;
        tracing::info!(model = &*self.name, "a model is unloaded");
        None
    }

    /// Whether the server answers one of a few checks. True as well if it is told to end meanwhile.
    async fn still_answers(&self, backend: &HttpBackend) -> bool {
        let path = self.model.program.health.as_deref();
        let looks = async {
            for _ in 0..LOOKS {
                if health::answers(backend, path).await {
                    return true;
                }
            }
            false
        };
        self.stop.run_until_cancelled(looks).await.unwrap_or(true)
    }

    /// Asks the first server of a program which endpoints it has. Runs beside the server's
    /// requests.
    fn learn_endpoints(&self, backend: &Arc<HttpBackend>) {
        let program = self.model.program.name.clone();
        if self.shared.endpoints(&program).is_some() {
            return;
        }
        let (shared, backend, stop) =
            (Arc::downgrade(&self.shared), Arc::clone(backend), self.stop.clone());
        self.shared.tasks.spawn(stop.run_until_cancelled_owned(async move {
            let endpoints = backend.endpoints().await.ok().flatten();
            if let (Some(endpoints), Some(shared)) = (endpoints, shared.upgrade()) {
                shared.learn_endpoints(&program, endpoints);
            }
        }));
    }

    /// Asks the server how it continues answers that have begun. Runs beside the server's requests.
    fn learn_continuation(&self, backend: &Arc<HttpBackend>) {
        let (shared, model) = (Arc::downgrade(&self.shared), Arc::clone(&self.name));
        let (backend, stop) = (Arc::clone(backend), self.stop.clone());
        self.shared.tasks.spawn(stop.run_until_cancelled_owned(async move {
            if backend.models().await.is_err() {
                return;
            }
            backend.look_closer().await;
            let how = backend.facts().into_values().find_map(|facts| facts.continuation);
            if let Some(shared) = shared.upgrade() {
                shared.learn_continuation(&model, how);
            }
        }));
    }

    /// Reports that the server has ended. The planner hears it first, so that no request is given a
    /// server that is gone.
    fn over(&self, reason: Option<Arc<str>>) {
        if let Some(reason) = &reason {
            let (model, log) = (&*self.name, self.log.path());
            tracing::warn!(model, ?log, "{reason}");
        }
        self.shared.ended(&self.name, self.generation, reason.clone());
        let told = reason.unwrap_or_else(|| "its server was stopped".into());
        self.ending.send_replace(Some(told));
    }

    /// A failure in words, with what the server wrote last.
    fn words(&self, failure: &Failure) -> Arc<str> {
        failure.words(&self.model, &self.log.last_lines()).into()
    }
}

/// Ends a server and all that it has started: politely, then by force.
async fn stop(mut server: Server, grace: Duration) {
    let handle = server.child.handle();
    // A supervisor that is gone has taken the server along.
    let _ = handle.signal_group(Signal::Terminate).await;
    let _ = timeout(grace, server.child.wait()).await;
    launch::end(&handle, server.flow.take()).await;
}
