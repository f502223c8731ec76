//! Warren's dispatcher, four model servers and all conversations, in simulated time.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use base::{Endpoint, Endpoints, JobId, KeyId, ModelName, ProviderId, Scope};
use dispatch::{
    Affinity, Config, Dispatcher, Distance, Input, JobSpec, LeastLoaded, Offer, Output, Policy,
    PrefixAffinity, Route, Verdict,
};

use super::{
    SLOTS, WORKERS,
    engine::{Ask, Counts, Engine, Event},
    oracle::{Oracle, Shared, worker},
    talk::Talk,
};
use crate::{payload::MODEL, stats::Times};

/// How a worker is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chooser {
    Oracle,
    LeastLoaded,
    PrefixAffinity,
}

/// The result of a simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Of each worker.
    pub(crate) counts: Vec<Counts>,
    /// From the request to the first token.
    pub(crate) first: Times,
}

/// Plays all conversations with this policy.
pub(crate) fn play(talk: &Talk, chooser: Chooser) -> Result<Outcome> {
    let mut simulation = Simulation::new(talk, chooser);
    while let Some(next) = simulation.next() {
        simulation.advance(next);
        ensure!(simulation.at < 1e6, "the conversations do not end");
    }
    ensure!(simulation.done == talk.requests(), "requests were lost");
    let counts = simulation.shared.lock().engines.iter().map(Engine::counts).collect();
    Ok(Outcome { counts, first: simulation.first })
}

struct Simulation<'a> {
    talk: &'a Talk,
    dispatcher: Dispatcher,
    shared: Shared,
    begun: Instant,
    at: f64,
    /// Of each conversation the next turn, and when it is asked for; `None` while an answer is under way.
    speakers: Vec<Speaker>,
    first: Times,
    done: usize,
}

#[derive(Clone, Copy, Debug)]
struct Speaker {
    turn: usize,
    due: Option<f64>,
    asked: f64,
    worker: usize,
}

impl<'a> Simulation<'a> {
    fn new(talk: &'a Talk, chooser: Chooser) -> Self {
        let shared = Shared::default();
        shared.lock().engines = (0..WORKERS).map(|_| Engine::new()).collect();
        let policy: Box<dyn Policy> = match chooser {
            Chooser::Oracle => Box::new(Oracle(shared.clone())),
            Chooser::LeastLoaded => Box::new(LeastLoaded),
            Chooser::PrefixAffinity => Box::<PrefixAffinity>::default(),
        };
        let speaker = |begins| Speaker { turn: 0, due: Some(begins), asked: 0.0, worker: 0 };
        let speakers = talk.conversations.iter().map(|talk| speaker(talk.begins)).collect();
        let (begun, first) = (Instant::now(), Times::default());
        let dispatcher = Dispatcher::new(config(), policy);
        let mut made = Self { talk, dispatcher, shared, begun, at: 0.0, speakers, first, done: 0 };
        for worker in 0..WORKERS as u64 {
            let provider = ProviderId::from_random(worker);
            made.handle(Input::Join { provider, offer: offer() });
        }
        made
    }

    fn next(&self) -> Option<f64> {
        let servers = self.shared.lock();
        let answers = servers.engines.iter().filter_map(Engine::next);
        let asks = self.speakers.iter().filter_map(|speaker| speaker.due);
        let deadline = self.dispatcher.poll_timeout().filter(|_| !servers.prompts.is_empty());
        let deadline = deadline.map(|(at, _)| (at - self.begun).as_secs_f64().max(self.at));
        answers.chain(asks).chain(deadline).min_by(f64::total_cmp)
    }

    fn advance(&mut self, to: f64) {
        self.at = to;
        let mut events = Vec::new();
        for engine in &mut self.shared.lock().engines {
            events.extend(engine.advance(to));
        }
        events.into_iter().for_each(|event| self.happen(event));
        self.timeout();
        for speaker in 0..self.speakers.len() {
            if self.speakers[speaker].due.is_some_and(|due| due <= to) {
                self.speak(speaker);
            }
        }
    }

    fn speak(&mut self, speaker: usize) {
        let now = &mut self.speakers[speaker];
        (now.due, now.asked) = (None, self.at);
        let prompt = self.talk.conversations[speaker].prompt(now.turn);
        let (id, spec) = (job(speaker), spec(speaker, prompt));
        self.shared.lock().prompts.insert(id, prompt.to_vec());
        self.handle(Input::Submit(spec));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::First(id) => {
                let waited = self.at - self.speakers[id as usize].asked;
                self.first.add(Duration::from_secs_f64(waited));
                self.handle(Input::Begun { job: job(id as usize), resumable: None });
            }
            Event::Done(id) => self.end(id as usize),
        }
    }

    fn end(&mut self, speaker: usize) {
        self.done += 1;
        let now = &mut self.speakers[speaker];
        now.turn += 1;
        let next = self.talk.conversations[speaker].turns.get(now.turn);
        now.due = next.map(|turn| self.at + turn.pause);
        let provider = ProviderId::from_random(now.worker as u64);
        let verdict = Verdict::Answered;
        self.handle(Input::Finished { job: job(speaker), provider, verdict, tokens: None });
    }

    fn handle(&mut self, input: Input) {
        self.dispatcher.handle(self.now(), input);
        self.follow();
    }

    fn timeout(&mut self) {
        self.dispatcher.handle_timeout(self.now());
        self.follow();
    }

    /// A little late, so that no deadline is missed for a rounding.
    fn now(&self) -> Instant {
        self.begun + Duration::from_secs_f64(self.at) + Duration::from_micros(1)
    }

    /// Does what the dispatcher says.
    fn follow(&mut self) {
        while let Some(output) = self.dispatcher.poll_output() {
            if let Output::Assign { job, provider, .. } = output {
                self.assign(job, worker(provider));
            }
        }
    }

    fn assign(&mut self, job: JobId, worker: usize) {
        let speaker = job.bits() as usize;
        self.speakers[speaker].worker = worker;
        let turn = self.talk.conversations[speaker].turns[self.speakers[speaker].turn];
        let mut servers = self.shared.lock();
        let prompt = servers.prompts.remove(&job).unwrap_or_default();
        let ask = Ask { id: speaker as u64, prompt, answer: turn.answer };
        servers.engines[worker].ask(ask);
    }
}

/// Nothing is refused, and no deadline comes.
fn config() -> Config {
    let long = Duration::from_secs(1_000_000);
    Config {
        max_queue_len: 100_000,
        queue_timeout: long,
        busy_timeout: long,
        request_timeout: long,
        idle_timeout: long,
        ..Config::default()
    }
}

/// A conversation has one job at a time.
fn job(speaker: usize) -> JobId {
    JobId::from_random(speaker as u128)
}

fn spec(speaker: usize, prompt: &[u8]) -> JobSpec {
    let prompt = [prompt, b"]"].concat();
    JobSpec {
        id: job(speaker),
        scope: Scope::server(),
        model: ModelName::from(MODEL),
        fallbacks: Vec::new(),
        endpoint: Endpoint::ChatCompletions,
        serve_as: Endpoints::only(Endpoint::ChatCompletions),
        key: KeyId::from(format!("k{speaker}")),
        page_session: None,
        size: prompt.len() as u64,
        affinity: Affinity::of(&[], &prompt),
        pinned: None,
        lent: false,
        route: Route::default(),
        clouds: false,
        known: true,
    }
}

fn offer() -> Offer {
    Offer {
        scope: Scope::server(),
        models: vec![ModelName::from(MODEL)],
        unloaded: Vec::new(),
        max_concurrent: SLOTS as u32,
        load: 0,
        max_size: u64::MAX,
        endpoints: Endpoints::only(Endpoint::ChatCompletions),
        distance: Distance::Here,
        lingers: false,
        acknowledges: false,
        borrowed: false,
    }
}

impl Outcome {
    /// The share of all prompts that need not be computed.
    pub(crate) fn hits(&self) -> f64 {
        let sum = |of: fn(&Counts) -> u64| self.counts.iter().map(of).sum::<u64>() as f64;
        sum(|counts| counts.known) / sum(|counts| counts.prompt).max(1.0)
    }

    /// The load of the worker that had most, over the mean.
    pub(crate) fn load(&self) -> f64 {
        over_mean(self.counts.iter().map(|counts| counts.busy))
    }

    /// The same of the number of requests.
    pub(crate) fn requests(&self) -> f64 {
        over_mean(self.counts.iter().map(|counts| counts.requests as f64))
    }
}

fn over_mean(of: impl Iterator<Item = f64> + Clone) -> f64 {
    let (count, sum) = (of.clone().count().max(1) as f64, of.clone().sum::<f64>());
    of.fold(0.0, f64::max) * count / sum.max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_affinity_finds_nearly_what_the_oracle_finds_and_spreads_the_load() {
        for (seed, within) in [(1, 3_000.0), (2, 2_000.0), (3, 1_700.0)] {
            let talk = Talk::new(seed, 200, within);
            let played = |chooser| play(&talk, chooser).unwrap();
            let [oracle, least, affinity] =
                [Chooser::Oracle, Chooser::LeastLoaded, Chooser::PrefixAffinity].map(played);
            assert!(
                affinity.hits() >= 0.85 * oracle.hits(),
                "{} {}",
                affinity.hits(),
                oracle.hits()
            );
            assert!(affinity.load() <= 1.25 && affinity.requests() <= 1.25, "{affinity:?}");
            let p50 = |outcome: &Outcome| outcome.first.millis(0.5).unwrap();
            assert!(p50(&affinity) <= p50(&least));
            assert!(affinity.hits() > least.hits());
        }
    }

    /// Prompts that share nothing go where they would go without a memory.
    #[test]
    fn nobody_loses_who_shares_nothing() {
        let mut talk = Talk::new(1, 400, 300.0);
        for conversation in &mut talk.conversations {
            conversation.turns.truncate(1);
        }
        let instructs = |prompt: &[u8]| memchr::memmem::find(prompt, b"system").is_some();
        talk.conversations.retain(|conversation| !instructs(conversation.prompt(0)));
        assert!(talk.conversations.len() > 20);
        let played =
            [Chooser::LeastLoaded, Chooser::PrefixAffinity].map(|it| play(&talk, it).unwrap());
        let [least, affinity] =
            played.map(|outcome| (outcome.requests(), outcome.load(), outcome.first.millis(0.99)));
        assert_eq!(least, affinity);
    }
}
