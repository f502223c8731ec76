//! Which models are loaded, and when (pure).
//!
//! Models get their places in memory one after another, in the order in which they were first asked for.
//! The rules:
//!
//! - A model is loaded once; all requests that wait for it are granted it together.
//! - Loaded models together never take more than the budget. A model that is estimated to need more than
//!   the budget, but not more than the machine has, is loaded alone.
//! - Only a model that nobody uses is unloaded. The one that was used longest ago goes first.
//! - A load that waits too long for models in use makes them drain: they get no new requests, and are
//!   unloaded when they have answered those that they have. Loads behind it in the queue get none of the
//!   memory that is promised to it.
//! - A model that fails is loaded again after a growing delay. Requests for one that keeps failing are refused
//!   for a while.
//!
//! The driver calls [`Planner::handle`] or [`Planner::handle_timeout`], then [`Planner::poll_output`] until it
//! returns `None`. Then it waits, until [`Planner::poll_timeout`] at the latest.

mod failures;
mod input;
mod model;
mod room;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

pub use failures::FailureRules;
pub use input::{Input, Output, Refusal, Spec};
pub use model::View;

use crate::memory::Memory;
use model::{Model, State};
use room::{Plan, Present};

/// The rules for all models together.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// How much memory loaded models may take together.
    pub budget: Memory,
    /// The largest need of a model that is loaded at all. A model over the budget is loaded alone.
    pub limit: Memory,
    /// How many models may be loading at the same time; 0 counts as 1.
    pub loads_at_once: usize,
    /// How many requests may wait for one model.
    pub most_waiting: usize,
    /// How long a load waits for models in use, before these drain.
    pub patience: Duration,
    /// The treatment of models that fail.
    pub failures: FailureRules,
}

/// Decides which models are loaded.
#[derive(Debug)]
pub struct Planner {
    rules: Rules,
    models: BTreeMap<Arc<str>, Model>,
    /// When deadlines were last looked at; earlier ones are done.
    scheduled: Option<Instant>,
    /// Whether a request waits for any model.
    is_awaited: bool,
    outputs: VecDeque<Output>,
    /// Counts starts. An input about an earlier start of a model is ignored.
    generations: u64,
    /// Counts changes of what [`Self::view`] shows, see [`Self::changes`].
    changes: u64,
}

impl Planner {
    /// A planner without models.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            models: BTreeMap::new(),
            scheduled: None,
            is_awaited: false,
            outputs: VecDeque::new(),
            generations: 0,
            changes: 0,
        }
    }

    /// Something happened.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Models(list) => self.set_models(list),
            Input::Claim { claim, model } => self.claim(now, claim, &model),
            Input::Cancel { claim, model } => self.cancel(claim, &model),
            Input::Release { model, generation, answered } => {
                self.release(now, &model, generation, answered);
            }
            Input::Unload { ask, model } => self.unload(ask, &model),
            Input::Started { model, generation } => self.started(now, &model, generation),
            Input::Measured { model, generation, memory } => {
                self.measured(&model, generation, memory);
            }
            Input::Failed { model, generation, reason } => {
                self.failed(now, &model, generation, &reason);
            }
            Input::Stopped { model, generation } => self.stopped(&model, generation),
        }
        self.schedule(now);
    }

    /// A deadline has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.schedule(now);
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The latest time for the next call.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let unused = self.models.values().filter_map(Model::ttl_ends);
        let queued = self.models.values().filter(|model| model.is_waited_for());
        let queued = queued.flat_map(|model| model.waits_until(self.rules.patience));
        unused.chain(queued).filter(|at| self.scheduled.is_none_or(|until| *at > until)).min()
    }

    /// Gives a model to a request at once, if it is loaded and may have one more. Returns the
    /// generation of its server. The request must give it back by [`Input::Release`] or
    /// [`Self::release_quietly`].
    pub fn claim_loaded(&mut self, model: &str) -> Option<u64> {
        self.models.get_mut(model)?.take()
    }

    /// Gives a model back, as [`Input::Release`] does, if that cannot cause any output: no request waits for any
    /// model, and this model is not to go. Otherwise does nothing and returns false.
    pub fn release_quietly(
        &mut self,
        now: Instant,
        model: &str,
        generation: u64,
        answered: bool,
    ) -> bool {
        let quiet = self.models.get_mut(model).filter(|it| !self.is_awaited && !it.leaves());
        let is_quiet = quiet.is_some();
        quiet.into_iter().for_each(|model| model.give_back(now, generation, answered));
        is_quiet
    }

    /// When a model will be unloaded if nobody uses it before.
    pub fn unused_until(&self, model: &str) -> Option<Instant> {
        self.models.get(model)?.ttl_ends()
    }

    /// The view that people have of a model; `None` for an unknown one.
    pub fn view(&self, model: &str) -> Option<View> {
        self.models.get(model).map(Model::view)
    }

    /// A number that grows whenever a model's state or the list of models changes.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn set_models(&mut self, list: Vec<(Arc<str>, Spec)>) {
        let list: BTreeMap<Arc<str>, Spec> = list.into_iter().collect();
        self.changes += 1;
        for (name, model) in &mut self.models {
            if !list.contains_key(name) {
                model.doomed = true;
                refuse_all(&mut self.outputs, model, &Refusal::Gone);
            }
        }
        for (name, spec) in list {
            match self.models.get_mut(&name) {
                Some(model) => model.take_spec(spec),
                None => drop(self.models.insert(name, Model::new(spec))),
            }
        }
    }

    fn claim(&mut self, now: Instant, claim: u64, name: &Arc<str>) {
        let refusal = match self.models.get_mut(name) {
            None => Refusal::Unknown,
            Some(model) if model.doomed => Refusal::Unknown,
            Some(model) => match model.take() {
                Some(generation) => {
                    let model = Arc::clone(name);
                    return self.outputs.push_back(Output::Grant { claim, model, generation });
                }
                None => match model.wait(now, claim, &self.rules) {
                    Ok(()) => return,
                    Err(refusal) => refusal,
                },
            },
        };
        self.outputs.push_back(Output::Refuse { claim, refusal });
    }

    fn cancel(&mut self, claim: u64, name: &Arc<str>) {
        if let Some(model) = self.models.get_mut(name) {
            model.waiters.retain(|waiter| *waiter != claim);
        }
    }

    fn release(&mut self, now: Instant, name: &str, generation: u64, answered: bool) {
        if let Some(model) = self.models.get_mut(name) {
            model.give_back(now, generation, answered);
        }
    }

    fn unload(&mut self, ask: u64, name: &Arc<str>) {
        let result = match self.models.get_mut(name) {
            None => Err(Refusal::Unknown),
            Some(model) => match &model.state {
                State::Unloaded => Ok(()),
                State::Starting { .. } => Err(Refusal::Loading),
                State::Loaded { busy: 1.., .. } => Err(Refusal::InUse(model.busy())),
                State::Loaded { .. } | State::Stopping { .. } => {
                    model.unloads.push(ask);
                    return self.stop(name);
                }
            },
        };
        self.outputs.push_back(Output::Unloaded { ask, result });
    }

    fn started(&mut self, now: Instant, name: &Arc<str>, generation: u64) {
        let Some(model) = self.models.get_mut(name).filter(|model| model.is_starting(generation))
        else {
            return;
        };
        self.changes += 1;
        model.loaded(now, generation);
        while let Some((claim, generation)) = model.grant_next() {
            let model = Arc::clone(name);
            self.outputs.push_back(Output::Grant { claim, model, generation });
        }
    }

    fn measured(&mut self, name: &str, generation: u64, memory: Memory) {
        if let Some(model) = self.models.get_mut(name) {
            self.changes += u64::from(model.measured(generation, memory));
        }
    }

    /// A server could not be started, or has ended by itself.
    fn failed(&mut self, now: Instant, name: &Arc<str>, generation: u64, reason: &Arc<str>) {
        let Some(model) = self.models.get_mut(name) else { return };
        match model.state {
            State::Starting { generation: of } if of == generation => {
                model.failed(now, reason, &self.rules.failures);
                let refusal = Refusal::Failed(Arc::clone(reason));
                refuse_all(&mut self.outputs, model, &refusal);
            }
            State::Loaded { generation: of, .. } if of == generation => {
                model.failed(now, reason, &self.rules.failures);
            }
            _ => return self.stopped(name, generation),
        }
        self.changes += 1;
    }

    fn stopped(&mut self, name: &Arc<str>, generation: u64) {
        let Some(model) = self.models.get_mut(name) else { return };
        if !matches!(model.state, State::Stopping { generation: of } if of == generation) {
            return;
        }
        self.changes += 1;
        model.ended();
        for ask in model.unloads.drain(..) {
            self.outputs.push_back(Output::Unloaded { ask, result: Ok(()) });
        }
    }

    /// Ends the server of a loaded or starting model.
    fn stop(&mut self, name: &Arc<str>) {
        let Some(generation) = self.models.get_mut(name).and_then(Model::stop) else { return };
        self.changes += 1;
        self.outputs.push_back(Output::Stop { model: Arc::clone(name), generation });
    }

    /// Applies the rules: unloads, starts and drains models as they demand now.
    fn schedule(&mut self, now: Instant) {
        self.scheduled = Some(now);
        self.let_go(now);
        let draining = self.start_queued(now);
        self.drain(&draining);
        self.is_awaited = self.models.values().any(|model| !model.waiters.is_empty());
    }

    /// Ends the servers of models that have left the list, have changed, or were unused for too
    /// long.
    fn let_go(&mut self, now: Instant) {
        let is_over = |model: &Model| {
            let is_late = model.ttl_ends().is_some_and(|end| end <= now);
            model.may_stop() && (model.leaves() || is_late) || model.starts_in_vain()
        };
        let over = self.models.iter().filter(|(_, model)| is_over(model));
        let over: Vec<Arc<str>> = over.map(|(name, _)| Arc::clone(name)).collect();
        over.iter().for_each(|name| self.stop(name));
        self.models.retain(|_, model| !(model.doomed && model.state == State::Unloaded));
    }

    /// Starts the models that may start, in the order of the queue, and stops idle ones that have to go for
    /// them. Returns the models in use that have to go.
    fn start_queued(&mut self, now: Instant) -> Vec<Arc<str>> {
        let mut present = Present::default();
        let mut draining = Vec::new();
        for name in self.queue() {
            let Some(model) = self.models.get(&name).filter(|model| model.may_start(now)) else {
                continue;
            };
            let is_overdue = model.is_overdue(now, self.rules.patience);
            match present.plan(&self.models, &name, &self.rules) {
                Plan::Never(refusal) => self.give_up(&name, &refusal),
                Plan::Room if self.has_load_slot() => self.start(&name),
                Plan::Room => present.promise(&name, &[]),
                Plan::Behind => {}
                Plan::After(leaving) => {
                    let (idle, busy): (Vec<_>, Vec<_>) =
                        leaving.iter().cloned().partition(|name| self.is_idle_or_gone(name));
                    if !self.has_load_slot() {
                        present.promise(&name, &leaving);
                    } else if busy.is_empty() || is_overdue {
                        idle.iter().for_each(|name| self.stop(name));
                        present.promise(&name, &leaving);
                        draining.extend(busy);
                    }
                }
            }
        }
        draining
    }

    /// The models that wait to be loaded, in the order in which they were first asked for.
    fn queue(&self) -> Vec<Arc<str>> {
        let waiting = self.models.iter().filter(|(_, model)| model.is_waited_for());
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_by_key(|(_, model)| model.waiting_since());
        waiting.into_iter().map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Makes exactly these of the loaded models drain: they get no new requests. A model that has stopped
    /// draining is granted to the requests that waited for it.
    fn drain(&mut self, draining: &[Arc<str>]) {
        for (name, model) in &mut self.models {
            model.set_draining(draining.contains(name));
            while let Some((claim, generation)) = model.grant_next() {
                let model = Arc::clone(name);
                self.outputs.push_back(Output::Grant { claim, model, generation });
            }
        }
    }

    fn start(&mut self, name: &Arc<str>) {
        let Some(model) = self.models.get_mut(name) else { return };
        self.generations += 1;
        self.changes += 1;
        model.start(self.generations);
        let (model, generation) = (Arc::clone(name), self.generations);
        self.outputs.push_back(Output::Start { model, generation });
    }

    fn give_up(&mut self, name: &Arc<str>, refusal: &Refusal) {
        if let Some(model) = self.models.get_mut(name) {
            refuse_all(&mut self.outputs, model, refusal);
        }
    }

    fn has_load_slot(&self) -> bool {
        let loads = self.models.values().filter(|model| model.is_loading()).count();
        loads < self.rules.loads_at_once.max(1)
    }

    fn is_idle_or_gone(&self, name: &str) -> bool {
        self.models.get(name).is_none_or(|model| model.may_stop() || model.is_stopping())
    }
}

fn refuse_all(outputs: &mut VecDeque<Output>, model: &mut Model, refusal: &Refusal) {
    for claim in model.waiters.drain(..) {
        outputs.push_back(Output::Refuse { claim, refusal: refusal.clone() });
    }
}
