//! The dispatcher alone, in this process: what one event costs it while 20,000 jobs of 10,000 keys wait, and
//! how that grows with the number of workers. Time is simulated, so no deadline comes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use base::{Endpoint, Endpoints, JobId, KeyId, ModelName, ProviderId, Scope};
use dispatch::{
    Affinity, Config, Dispatcher, Distance, Input, JobSpec, Offer, Output, PrefixAffinity, Route,
    Unloaded, Verdict,
};

use super::{KEYS, MODELS, SLOTS, fleet::Fleet, spread::Spread};
use crate::{
    lab::Lab,
    load::Failures,
    proc,
    report::{Column, Goal, Line, Report, Section},
};

/// How much processor time one event may take, in microseconds.
const MOST: f64 = 20.0;

const JOIN: Column = Column::new("join µs", 1);
const ASSIGN: Column = Column::new("assign µs", 2);
const ASSIGN_P99: Column = Column::new("assign p99", 2);
const WAIT: Column = Column::new("submit µs", 2);
const WAIT_P99: Column = Column::new("submit p99", 2);
const REFUSE: Column = Column::new("refuse µs", 2);
const END: Column = Column::new("end µs", 2);
const END_P99: Column = Column::new("end p99", 2);
const GONE: Column = Column::new("gone µs", 2);
const REPORT: Column = Column::new("report µs", 2);
const MEMORY: Column = Column::new("KiB/waiting", 2);

const COLUMNS: [Column; 11] =
    [JOIN, ASSIGN, ASSIGN_P99, WAIT, WAIT_P99, REFUSE, END, END_P99, GONE, REPORT, MEMORY];

pub(crate) fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let mut costs = Fleet::ALL.map(|_| Costs::default());
    let events = if lab.options.quick { 2_000 } else { 20_000 };
    for at in lab.turns(Fleet::ALL.len()) {
        Simulation::new(Fleet::ALL[at]).run(events, &mut costs[at])?;
    }
    let lines = Fleet::ALL.into_iter().zip(costs);
    report.add(Section {
        name: "scale/dispatch".into(),
        title: format!("the dispatcher alone: {KEYS} keys, {MODELS} models, all queues full"),
        columns: COLUMNS.to_vec(),
        lines: lines.map(|(fleet, costs)| costs.line(fleet)).collect(),
        bases: const { &[Fleet::ALL[0].name] },
        goals: goals(),
    })
}

fn goals() -> Vec<Goal> {
    let short = [ASSIGN, WAIT, REFUSE, END, GONE, REPORT];
    let of = |fleet: Fleet| short.map(|column| column.at_most(fleet.name, MOST));
    Fleet::ALL.map(of).concat()
}

/// The time that the events of each kind took.
#[derive(Default)]
struct Costs {
    join: Spread,
    assign: Spread,
    wait: Spread,
    refuse: Spread,
    end: Spread,
    gone: Spread,
    report: Spread,
    /// KiB for each waiting job: the most of all rounds.
    memory: Option<f64>,
}

impl Costs {
    fn line(self, fleet: Fleet) -> Line {
        let values = vec![
            self.join.micros(0.5),
            self.assign.micros(0.5),
            self.assign.micros(0.99),
            self.wait.micros(0.5),
            self.wait.micros(0.99),
            self.refuse.micros(0.5),
            self.end.micros(0.5),
            self.end.micros(0.99),
            self.gone.micros(0.5),
            self.report.micros(0.5),
            self.memory,
        ];
        Line::new(fleet.name, values, Failures::default())
    }
}

/// A dispatcher with a fleet, and the jobs that its workers have.
struct Simulation {
    dispatcher: Dispatcher,
    now: Instant,
    fleet: Fleet,
    jobs: u128,
    running: Vec<(JobId, ProviderId, usize)>,
    outputs: Vec<Output>,
    models: Vec<ModelName>,
    keys: Vec<KeyId>,
    random: u64,
}

impl Simulation {
    fn new(fleet: Fleet) -> Self {
        let named = |kind: &'static str, count: usize| {
            (0..count).map(move |number| format!("{kind}-{number:05}"))
        };
        Self {
            dispatcher: Dispatcher::new(Config::default(), Box::<PrefixAffinity>::default()),
            now: Instant::now(),
            fleet,
            jobs: 0,
            running: Vec::new(),
            outputs: Vec::new(),
            models: named("family/model", MODELS).map(|name| name.as_str().into()).collect(),
            keys: named("k", KEYS).map(|name| name.as_str().into()).collect(),
            random: 1,
        }
    }

    fn run(&mut self, events: usize, costs: &mut Costs) -> Result<()> {
        for worker in 0..self.fleet.workers {
            let join = Input::Join { provider: provider(worker), offer: self.offer(worker) };
            costs.join.add(self.handle(join));
        }
        self.half_full(events, costs);
        self.fill(costs)?;
        self.ends(events, costs);
        self.leaves(events / 4, costs);
        self.reports(events / 4, costs);
        Ok(())
    }

    /// Jobs that a free worker gets at once, while half of the slots are taken.
    fn half_full(&mut self, events: usize, costs: &mut Costs) {
        let half = self.fleet.workers as usize * SLOTS as usize / 2;
        for number in 0..events {
            if self.running.len() >= half {
                self.end();
            }
            let before = self.running.len();
            let took = self.submit(number % MODELS);
            if self.running.len() > before {
                costs.assign.add(took);
            }
        }
    }

    /// Fills all slots and all queues, and is refused then.
    fn fill(&mut self, costs: &mut Costs) -> Result<()> {
        let before = proc::resident(&[std::process::id()])?;
        for model in 0..MODELS {
            loop {
                let (depth, running) = (self.dispatcher.queue_depth(), self.running.len());
                let took = self.submit(model);
                match self.dispatcher.queue_depth() > depth {
                    true => costs.wait.add(took),
                    false if self.running.len() > running => {}
                    false => break,
                }
            }
            (0..50).for_each(|_| costs.refuse.add(self.submit(model)));
        }
        let (grown, waiting) =
            (proc::resident(&[std::process::id()])?, self.dispatcher.queue_depth());
        let each = grown.saturating_sub(before) as f64 / 1024.0 / waiting as f64;
        costs.memory = Some(costs.memory.unwrap_or(0.0).max(each));
        ensure!(waiting >= 90 * MODELS, "only {waiting} jobs wait");
        Ok(())
    }

    /// Jobs that end; the next one of a queue is assigned, and another one waits.
    fn ends(&mut self, events: usize, costs: &mut Costs) {
        for _ in 0..events {
            costs.end.add(self.end());
            self.refill(&mut costs.wait);
        }
    }

    /// Clients that leave while their job is at a worker.
    fn leaves(&mut self, events: usize, costs: &mut Costs) {
        for _ in 0..events {
            let (job, ..) = self.take();
            costs.gone.add(self.handle(Input::ClientGone { job }));
            self.refill(&mut costs.wait);
        }
    }

    /// Reports of workers that are full.
    fn reports(&mut self, events: usize, costs: &mut Costs) {
        for number in 0..events {
            let provider = provider(number as u64 % self.fleet.workers);
            costs.report.add(self.handle(Input::Load { provider, load: SLOTS }));
        }
    }

    /// Another job for the queue whose next job was just assigned.
    fn refill(&mut self, costs: &mut Spread) {
        let depth = self.dispatcher.queue_depth();
        let assigned = self.running.last().map_or(0, |(.., model)| *model);
        let took = self.submit(assigned);
        if self.dispatcher.queue_depth() > depth {
            costs.add(took);
        }
    }

    fn end(&mut self) -> Duration {
        let (job, provider, _) = self.take();
        self.handle(Input::Begun { job, resumable: None });
        let verdict = Verdict::Answered;
        self.handle(Input::Finished { job, provider, verdict, tokens: Some(200) })
    }

    /// One of the jobs at workers, at random.
    fn take(&mut self) -> (JobId, ProviderId, usize) {
        let at = self.random() as usize % self.running.len();
        self.running.swap_remove(at)
    }

    fn submit(&mut self, model: usize) -> Duration {
        self.jobs += 1;
        let key = self.random() as usize % KEYS;
        let head = self.random() % 5_000 + 1;
        self.handle(Input::Submit(JobSpec {
            id: JobId::from_random(self.jobs << 32 | u128::from(self.random)),
            scope: Scope::server(),
            model: self.models[model].clone(),
            fallbacks: Vec::new(),
            endpoint: Endpoint::ChatCompletions,
            serve_as: Endpoints::only(Endpoint::ChatCompletions),
            key: self.keys[key].clone(),
            page_session: None,
            size: 1024,
            affinity: Affinity::of(&[&head.to_le_bytes().repeat(32)], b""),
            pinned: None,
            lent: false,
            route: Route::default(),
            clouds: true,
            known: true,
        }))
    }

    /// Handles an event as the scheduler does. Returns how long that took.
    fn handle(&mut self, input: Input) -> Duration {
        self.now += Duration::from_micros(1);
        let begun = Instant::now();
        self.dispatcher.handle(self.now, input);
        self.outputs.extend(std::iter::from_fn(|| self.dispatcher.poll_output()));
        std::hint::black_box(self.dispatcher.poll_timeout());
        let took = begun.elapsed();
        for output in self.outputs.drain(..) {
            if let Output::Assign { job, provider, model, .. } = output {
                let model = self.models.binary_search(&model).unwrap_or_default();
                self.running.push((job, provider, model));
            }
        }
        took
    }

    fn offer(&self, worker: u64) -> Offer {
        let names = self.fleet.models_of(worker).map(|model| self.models[model].clone());
        let models: Vec<_> = names.collect();
        let on_disk = models.iter().skip(self.fleet.in_memory).cloned();
        let takes = Some(Duration::from_secs(8));
        let unloaded = on_disk.map(|model| Unloaded { model, is_loading: false, takes });
        Offer {
            scope: Scope::server(),
            unloaded: unloaded.collect(),
            models,
            max_concurrent: SLOTS,
            load: 0,
            max_size: u64::MAX,
            endpoints: Endpoints::ASSUMED,
            distance: Distance::Here,
            lingers: false,
            acknowledges: true,
            borrowed: false,
        }
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random >> 33
    }
}

fn provider(worker: u64) -> ProviderId {
    // As random as real ids are, so that they lie anywhere in the dispatcher's maps.
    ProviderId::from_random((worker + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_measured_in_every_fleet() {
        for fleet in Fleet::ALL {
            let mut costs = Costs::default();
            Simulation::new(Fleet { workers: fleet.workers.min(20), ..fleet })
                .run(40, &mut costs)
                .unwrap();
            let line = costs.line(fleet);
            assert!(line.values.iter().all(Option::is_some), "{}: {:?}", fleet.name, line.values);
        }
    }
}
