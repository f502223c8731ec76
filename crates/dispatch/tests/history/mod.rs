//! Histories: a dispatcher and a plain, slow model of it live through the same events in simulated
//! time, and every rule is checked after each of them.

mod asleep;
mod choice;
mod known;
mod lent;
mod memory;
mod models;
mod oracle;
mod resuming;
mod rules;

use std::time::{Duration, Instant};

use base::{Endpoint, Endpoints, JobId, KeyId, ModelName, PageSessionId, ProviderId, Scope};
use dispatch::{
    Affinity, BlockedOn, Config, Dispatcher, Distance, Input, JobSpec, LeastLoaded, LeaveReason,
    Offer, Output, Resumable, Route, Unloaded, Verdict,
};

use known::JobState;
use oracle::Oracle;

/// One event, as bytes that are read against the state it meets.
pub(crate) type Step = [u8; 4];

/// The events of a history that broke no rule.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Account {
    pub(crate) steps: u64,
    pub(crate) jobs: u64,
    pub(crate) assigned: u64,
    pub(crate) requeued: u64,
    pub(crate) fell_back: u64,
    /// Jobs that went on to another model while they waited.
    pub(crate) moved: u64,
    pub(crate) unserved: u64,
    /// Jobs that went from an overloaded provider to a free one.
    pub(crate) overloaded: u64,
    pub(crate) revoked: u64,
    /// Jobs for which speed left somebody out, and those that were given to such a one.
    pub(crate) narrowed: u64,
    pub(crate) tried: u64,
    /// Cancelled jobs that providers said they had ended.
    pub(crate) ceased: u64,
    /// Waiting jobs that lost their last provider or found their first.
    pub(crate) flipped: u64,
    /// Looks at the fallbacks of jobs whose providers were busy.
    pub(crate) looked: u64,
    /// Jobs that waited for busy providers for too long.
    pub(crate) gave_up_busy: u64,
    /// Jobs whose provider's backend took no requests.
    pub(crate) unready: u64,
    /// Jobs that moved for want of an acknowledgement, and those that had nowhere to go.
    pub(crate) woken: u64,
    pub(crate) kept: u64,
    /// Assignments to clouds.
    pub(crate) clouded: u64,
    /// Jobs that waited for a provider although another was free, and jobs that were given to one that
    /// loads their model after a wait.
    pub(crate) patient: u64,
    pub(crate) impatient: u64,
    /// Fellows' jobs that had a lent slot, and those that had none.
    pub(crate) lent: u64,
    pub(crate) not_lent: u64,
    /// Answers that broke off and waited for another provider, and those that one went on with.
    pub(crate) broken_off: u64,
    pub(crate) resumed: u64,
}

/// Lives through the steps, then lets everything end. An error says which rule was broken, where.
pub(crate) fn run(steps: &[Step]) -> Result<Account, String> {
    let mut history = History::new(crowd(steps));
    for (number, step) in steps.iter().enumerate() {
        history.step(*step).map_err(|rule| format!("step {number} {step:?}: {rule}"))?;
    }
    history.finish().map_err(|rule| format!("at the end: {rule}"))?;
    Ok(Account { steps: steps.len() as u64, ..history.account })
}

/// The same steps for the same seed.
pub(crate) fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut state = seed;
    let mut next = || {
        // SplitMix64, by Sebastiano Vigna, in the public domain.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [a, b, c, d, ..] = (bits ^ (bits >> 31)).to_le_bytes();
        [a, b, c, d]
    };
    (0..count).map(|_| next()).collect()
}

/// How many providers there may be at once. With few, models often lose their last one.
fn crowd(steps: &[Step]) -> usize {
    let first = steps.first().map_or(0, |step| step[1]);
    [2, 3, usize::MAX][usize::from(first % 3)]
}

struct History {
    crowd: usize,
    dispatcher: Dispatcher,
    oracle: Oracle,
    now: Instant,
    account: Account,
    providers: u64,
    jobs: u128,
}

fn config() -> Config {
    let seconds = Duration::from_secs;
    Config {
        max_queue_len: 7,
        max_queues: 4,
        max_queued_bytes: 120,
        queue_timeout: seconds(30),
        busy_timeout: seconds(70),
        request_timeout: seconds(40),
        acknowledge_timeout: seconds(7),
        idle_timeout: seconds(50),
        end_timeout: seconds(2),
        max_requeue_count: 3,
        resume_timeout: seconds(25),
        max_resumes: 2,
        faults_to_rest: 2,
        rest_first: seconds(5),
        rest_last: seconds(20),
        try_slow_every: 2,
    }
}

impl History {
    fn new(crowd: usize) -> Self {
        let now = Instant::now();
        Self {
            crowd,
            dispatcher: Dispatcher::new(config(), Box::new(LeastLoaded)),
            oracle: Oracle::new(config(), now),
            now,
            account: Account::default(),
            providers: 0,
            jobs: 0,
        }
    }

    fn step(&mut self, [kind, a, b, c]: Step) -> Result<(), String> {
        let input = match kind {
            0..=11 => match self.oracle.peers.first().map(|peer| peer.id) {
                Some(provider) if self.oracle.peers.len() >= self.crowd => {
                    Input::Leave { provider, why: LeaveReason::Closed }
                }
                _ => return self.joins(a, b, c),
            },
            12..=13 => Input::Moved { provider: self.provider(a), distance: distance(b) },
            14..=15 => self.condition(a, b),
            16..=20 => Input::Models { provider: self.provider(a), models: models(b), load: 0 },
            21..=23 => Input::Endpoints { provider: self.provider(a), endpoints: endpoints(b) },
            24..=25 => Input::Unloaded { provider: self.provider(a), models: unloaded(b) },
            30..=31 => Input::Continues { provider: self.provider(a), models: models(b) },
            26..=29 => Input::Load { provider: self.provider(a), load: u32::from(b % 4) },
            32..=35 => self.drain(a, b),
            36..=45 => Input::Leave { provider: self.provider(a), why: LeaveReason::Closed },
            46..=53 if self.somebody_lends() || a < 8 => self.lent(a, b),
            46..=135 => match self.submit(a, b, c) {
                Input::Submit(spec) if self.oracle.cannot_tell(&spec) => return Ok(()),
                submit => submit,
            },
            136..=151 => self.begun(a, b),
            152..=155 => self.acknowledged(a, b),
            156..=195 => self.finished(a, b)?,
            196..=207 => Input::ClientGone { job: self.any_job(a) },
            208..=209 => self.progress(a, b),
            210 => Input::Revoked { key: key(a) },
            211 => Input::SignedOut { page_session: page_session(a) },
            212 if a < 16 => Input::Shutdown,
            213 if a < 8 => Input::Abort,
            214..=229 => return self.wait(Duration::from_millis(u64::from(a) * 10)),
            230..=243 => return self.wait(Duration::from_millis(u64::from(a) * 100)),
            248 => {
                let max_concurrent = u32::from(b % 8);
                Input::Capacity { provider: self.provider(a), max_concurrent }
            }
            250..=252 => self.ceased(a),
            244..=249 | 253 if !self.oracle.is_unsure() && b >= 64 => {
                Input::Lend { provider: self.provider(a), slots: u32::from(b % 4 + b / 128) }
            }
            249 if b < 64 => Input::Closed { scope: scope(a) },
            _ => return self.wait_for_deadline(),
        };
        self.input(input)
    }

    /// Everything leaves or is waited for, in one way or the other; nothing may be left.
    fn finish(&mut self) -> Result<(), String> {
        if self.jobs.is_multiple_of(2) {
            self.input(Input::Abort)?;
        }
        for number in 0..=self.providers {
            let provider = ProviderId::from_random(number);
            self.input(Input::Leave { provider, why: LeaveReason::Closed })?;
        }
        self.wait(Duration::from_secs(1_000))?;
        let jobs = (self.oracle.ended, self.oracle.accepted);
        let empty = self.dispatcher.is_idle()
            && self.dispatcher.providers().next().is_none()
            && self.dispatcher.queues().next().is_none()
            && self.dispatcher.poll_timeout().is_none();
        if !empty || jobs.0 != jobs.1 {
            return Err(format!("something is left; {} of {} jobs ended", jobs.0, jobs.1));
        }
        self.account.jobs = self.oracle.accepted;
        self.account.fell_back = self.oracle.fell_back;
        self.account.moved = self.oracle.moved;
        self.account.unserved = self.oracle.unserved;
        self.account.overloaded = self.oracle.overloaded;
        self.account.revoked = self.oracle.revoked;
        self.account.narrowed = self.oracle.narrowed;
        self.account.tried = self.oracle.tried;
        self.account.ceased = self.oracle.ceased;
        self.account.flipped = self.oracle.flipped;
        self.account.looked = self.oracle.looked;
        self.account.gave_up_busy = self.oracle.gave_up_busy;
        self.account.unready = self.oracle.unready;
        self.account.woken = self.oracle.woken;
        self.account.kept = self.oracle.kept;
        self.account.clouded = self.oracle.clouded;
        self.account.patient = self.oracle.patient;
        self.account.impatient = self.oracle.impatient;
        self.account.lent = self.oracle.lent;
        self.account.not_lent = self.oracle.not_lent;
        self.account.broken_off = self.oracle.broken_off;
        self.account.resumed = self.oracle.resumed;
        Ok(())
    }

    fn input(&mut self, input: Input) -> Result<(), String> {
        self.oracle.now = self.now;
        self.check_promise(&input)?;
        self.oracle.input(&input);
        let told = format!("{input:?}");
        self.dispatcher.handle(self.now, input);
        self.follow(false).map_err(|rule| format!("{told}: {rule}"))
    }

    /// The dispatcher and the model agree on whether a job would go elsewhere now.
    fn check_promise(&self, input: &Input) -> Result<(), String> {
        let Input::Finished { job, provider, .. } = input else { return Ok(()) };
        let held = self.oracle.jobs.get(job).filter(
            |known| matches!(known.place, JobState::Held(held) if held.by == *provider && !held.begun),
        );
        let told = self.dispatcher.has_alternative(*job);
        let own = held.is_some_and(|known| self.oracle.has_alternative(known, *provider));
        if held.is_some() && told != own {
            return Err(format!("{job:?} has an alternative: {told}, not {own}"));
        }
        Ok(())
    }

    /// Moves the clock on, stopping at each deadline.
    fn wait(&mut self, time: Duration) -> Result<(), String> {
        let end = self.now + time;
        while let Some((at, why)) = self.dispatcher.poll_timeout().filter(|(at, _)| *at <= end) {
            self.now = at;
            self.oracle.now = at;
            self.oracle.lingering_ends();
            self.oracle.backends_are_tried();
            self.oracle.some_doze();
            self.dispatcher.handle_timeout(at);
            self.follow(true).map_err(|rule| format!("{why}: {rule}"))?;
        }
        self.now = end;
        Ok(())
    }

    fn wait_for_deadline(&mut self) -> Result<(), String> {
        match self.dispatcher.poll_timeout() {
            Some((at, _)) => self.wait(at - self.now),
            None => Ok(()),
        }
    }

    /// Takes the outputs of a call, and answers the questions among them.
    fn follow(&mut self, deadline: bool) -> Result<(), String> {
        let mut questions = Vec::new();
        while let Some(output) = self.dispatcher.poll_output() {
            self.oracle.output(&output)?;
            match output {
                Output::AskProgress { job } => questions.push(job),
                Output::Assign { attempt, .. } => {
                    self.account.assigned += 1;
                    self.account.requeued += u64::from(attempt > 0);
                }
                _ => {}
            }
        }
        self.oracle.note_providers();
        if deadline {
            self.oracle.rests_end();
            self.oracle.dozing_ends()?;
            self.oracle.looks_are_over();
            self.oracle.due_together = false;
        }
        self.oracle.check(&self.dispatcher, deadline)?;
        questions.into_iter().try_for_each(|job| self.answer(job))
    }

    /// Some answers move, some hang, some are not read.
    fn answer(&mut self, job: JobId) -> Result<(), String> {
        let seq = self.oracle.jobs.get(&job).map_or(0, |job| job.seq);
        let ago = Duration::from_secs(if seq.is_multiple_of(3) { 10 } else { 50 });
        let waiting = if seq % 3 == 1 { BlockedOn::Client } else { BlockedOn::Provider };
        self.input(Input::Progress { job, at: self.now - ago, waiting })
    }

    fn join(&mut self, a: u8, b: u8, c: u8) -> Input {
        if c < 250 {
            self.providers += 1;
        }
        let offer = Offer {
            scope: scope(a),
            models: models(b),
            unloaded: unloaded(c.wrapping_mul(a)),
            max_concurrent: u32::from(c % 4),
            load: u32::from(a.is_multiple_of(32)),
            max_size: [u64::MAX, 10, 20][usize::from(c / 4 % 3)],
            endpoints: endpoints(a / 8),
            distance: distance(c / 12),
            lingers: a % 4 == 3,
            acknowledges: a / 4 % 2 == 1,
            borrowed: matches!(distance(c / 12), Distance::Fellow),
        };
        Input::Join { provider: ProviderId::from_random(self.providers), offer }
    }

    /// Most of those that join go on with answers of others.
    fn joins(&mut self, a: u8, b: u8, c: u8) -> Result<(), String> {
        let join = self.join(a, b, c);
        self.input(join)?;
        let provider = ProviderId::from_random(self.providers);
        match a % 8 {
            0..=5 => self.input(Input::Continues { provider, models: models(b | c) }),
            _ => Ok(()),
        }
    }

    /// Most answers may be gone on with, in all shapes of the job or in one.
    fn begun(&self, a: u8, b: u8) -> Input {
        let job = self.held(a);
        let spec = self.oracle.jobs.get(&job).map(|job| &job.spec);
        let (one, all) = shapes(b / 32);
        let serve_as = if b.is_multiple_of(8) { all } else { spec.map_or(all, |it| it.serve_as) };
        let endpoint = spec.map_or(one, |it| it.endpoint);
        let resumable = Resumable { endpoint, serve_as };
        Input::Begun { job, resumable: (!b.is_multiple_of(6)).then_some(resumable) }
    }

    fn submit(&mut self, a: u8, b: u8, c: u8) -> Input {
        if a < 254 {
            self.jobs += 1;
        }
        let fallbacks = [0, 0, 1, 2][usize::from(a / 8 % 4)];
        let (endpoint, serve_as) = shapes(a / 32);
        Input::Submit(JobSpec {
            id: JobId::from_random(scattered(self.jobs)),
            scope: scope(a),
            model: model(b % 4),
            fallbacks: (1..=fallbacks).map(|next| model(b.wrapping_add(next))).collect(),
            endpoint,
            serve_as,
            key: key(b / 4),
            page_session: (!c.is_multiple_of(3)).then(|| page_session(c / 3)),
            size: u64::from(c % 24),
            affinity: Affinity::default(),
            pinned: (c > 224).then(|| self.provider(c)),
            lent: c == 225,
            route: Route::ALL[usize::from(c / 24 % 3)],
            clouds: !a.is_multiple_of(3),
            known: !b.is_multiple_of(8),
        })
    }

    fn somebody_lends(&self) -> bool {
        self.oracle.peers.iter().any(|peer| peer.lent > 0)
    }

    /// A fellow's job, most often for a provider of which a slot is lent.
    fn lent(&mut self, a: u8, b: u8) -> Input {
        self.jobs += 1;
        // Some have none left, sleep or are paused.
        let slots = |peer: &&known::Peer| {
            let lends = peer.lent > 0 && !peer.offer.models.is_empty();
            lends && (b.is_multiple_of(4) || self.oracle.has_free_lent_slot(peer))
        };
        let lent: Vec<_> = self.oracle.peers.iter().filter(slots).collect();
        let peer = lent.get(usize::from(a) % lent.len().max(1));
        let served = peer.map(|peer| peer.offer.endpoints).filter(|_| !a.is_multiple_of(4));
        let shape = served.and_then(|all| Some((all.iter().next()?, all)));
        let (endpoint, serve_as) = shape.unwrap_or_else(|| shapes(a / 32));
        Input::Submit(JobSpec {
            id: JobId::from_random(scattered(self.jobs)),
            scope: peer.map_or_else(|| scope(a), |peer| peer.offer.scope.clone()),
            model: peer.map_or_else(|| model(b), |peer| peer.offer.models[0].clone()),
            fallbacks: vec![model(b)],
            endpoint,
            serve_as,
            key: key(b / 4),
            page_session: None,
            size: u64::from(b % 11),
            affinity: Affinity::default(),
            pinned: Some(peer.map_or_else(|| self.provider(a), |peer| peer.id)),
            lent: true,
            route: Route::ALL[usize::from(b % 3)],
            clouds: b.is_multiple_of(2),
            known: false,
        })
    }

    /// Some say how fast they are; some are paused.
    fn condition(&self, a: u8, b: u8) -> Input {
        let speed = [None, Some(1_000), Some(20_000)][usize::from(b % 3)];
        let throttle = [100, 0, 50, 255, 100, 80, 10, 100][usize::from(b / 3 % 8)];
        Input::Condition { provider: self.provider(a), speed, throttle }
    }

    fn drain(&mut self, a: u8, b: u8) -> Input {
        Input::Drain { provider: self.provider(a), grace: Duration::from_secs(u64::from(b % 40)) }
    }

    fn finished(&mut self, a: u8, b: u8) -> Result<Input, String> {
        use Verdict::{
            Answered, AnsweredWithFault, Declined, Failed, Loading, ModelFailed, Overloaded,
            Unreachable, Unserved,
        };
        // It must be known which provider takes over from an overloaded one.
        let overloaded = if self.oracle.is_unsure() { Failed } else { Overloaded };
        let verdicts = [
            Answered,
            Answered,
            AnsweredWithFault,
            Failed,
            ModelFailed,
            overloaded,
            Declined,
            Unserved,
            Unreachable,
            Loading,
        ];
        let job = if b == 255 { self.any_job(a) } else { self.held(a) };
        let holder = match self.oracle.jobs.get(&job).map(|job| job.place) {
            Some(JobState::Held(held)) if b < 250 => held.by,
            _ => self.provider(a),
        };
        let verdict = verdicts[usize::from(b) % verdicts.len()];
        if verdict == Unserved && !b.is_multiple_of(4) {
            self.learn(job, holder)?;
        }
        let tokens = [None, Some(3), Some(60), Some(900)][usize::from(a % 4)];
        Ok(Input::Finished { job, provider: holder, verdict, tokens })
    }

    /// A provider has a job, or says so of another's.
    fn acknowledged(&self, a: u8, b: u8) -> Input {
        let job = self.held(a);
        let holder = self.oracle.jobs.get(&job).map(|job| job.place);
        let provider = match holder {
            Some(JobState::Held(held)) if b < 240 => held.by,
            _ => self.provider(a),
        };
        Input::Acknowledged { job, provider }
    }

    /// The provider does not serve what it was asked for.
    fn learn(&mut self, job: JobId, provider: ProviderId) -> Result<(), String> {
        let (Some(job), Some(peer)) = (self.oracle.jobs.get(&job), self.oracle.peer(provider))
        else {
            return Ok(());
        };
        let (own, served) = (job.spec.endpoint, peer.offer.endpoints);
        let endpoint = if served.contains(own) { own } else { Endpoint::ChatCompletions };
        self.input(Input::Endpoints { provider, endpoints: served.without(endpoint) })
    }

    /// A provider that goes on with a cancelled job, if any, ends it.
    fn ceased(&self, choice: u8) -> Input {
        let going_on = |peer: &known::Peer| peer.lingering.keys().next().map(|job| (*job, peer.id));
        let (job, provider) = match self.oracle.peers.iter().find_map(going_on) {
            Some(found) if choice < 200 => found,
            _ => (self.any_job(choice), self.provider(choice)),
        };
        Input::Ceased { job, provider }
    }

    fn progress(&mut self, a: u8, b: u8) -> Input {
        let at = self.now - Duration::from_secs(u64::from(b));
        Input::Progress { job: self.any_job(a), at, waiting: BlockedOn::Client }
    }

    /// One of the last ten providers, connected or not.
    fn provider(&self, choice: u8) -> ProviderId {
        let back = u64::from(choice % 10).min(self.providers);
        ProviderId::from_random(self.providers - back)
    }

    /// One of the jobs at providers, if there is one.
    fn held(&self, choice: u8) -> JobId {
        let held = |place: JobState| matches!(place, JobState::Held(_));
        let jobs: Vec<_> = self.oracle.jobs.values().filter(|job| held(job.place)).collect();
        match jobs.len() {
            0 => self.any_job(choice),
            len => jobs[usize::from(choice) % len].spec.id,
        }
    }

    /// One of the last jobs, in whatever state.
    fn any_job(&self, choice: u8) -> JobId {
        JobId::from_random(scattered(self.jobs.saturating_sub(u128::from(choice % 24))))
    }
}

/// An id whose order says nothing about its age.
fn scattered(number: u128) -> u128 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

fn scope(choice: u8) -> Scope {
    if choice.is_multiple_of(8) { Scope::from("room") } else { Scope::server() }
}

fn distance(choice: u8) -> Distance {
    use Distance::{Cloud, Far, Fellow, Here, Near};
    let all = [Here, Near, Here, Far, Cloud, Here, Near, Far, Fellow, Near];
    all[usize::from(choice % 10)]
}

fn page_session(choice: u8) -> PageSessionId {
    PageSessionId::from(["s", "t", "u"][usize::from(choice % 3)])
}

fn key(choice: u8) -> KeyId {
    KeyId::from(["red", "green", "blue"][usize::from(choice % 3)])
}

/// The endpoints that a provider serves.
fn endpoints(choice: u8) -> Endpoints {
    let chat = Endpoints::only(Endpoint::ChatCompletions);
    let others = [Endpoint::Embeddings, Endpoint::Messages].map(Endpoints::only);
    [Endpoints::ASSUMED, chat, chat.union(others[0]), others[1]][usize::from(choice % 4)]
}

/// The shape of a job, and those that it can be served in.
fn shapes(choice: u8) -> (Endpoint, Endpoints) {
    let endpoint = match choice % 8 {
        0..=2 => Endpoint::ChatCompletions,
        3..=5 => Endpoint::Messages,
        6 => Endpoint::Embeddings,
        _ => Endpoint::NodeChat,
    };
    let chat = Endpoints::only(Endpoint::ChatCompletions);
    let serve_as = match endpoint {
        Endpoint::Messages => chat.with(endpoint),
        Endpoint::Embeddings => Endpoints::only(endpoint),
        _ => chat,
    };
    (endpoint, serve_as)
}

fn model(choice: u8) -> ModelName {
    ModelName::from(["a", "b", "c", "d"][usize::from(choice % 4)])
}

/// The models that a provider does not have in memory; every other one has everything.
fn unloaded(choice: u8) -> Vec<Unloaded> {
    let some = (0..4).filter(|bit| choice >> bit & 1 == 1 && choice >= 64);
    let takes = [None, Some(2), Some(12), Some(60)].map(|it| it.map(Duration::from_secs));
    let read = |bit: u8| Unloaded {
        model: model(bit),
        is_loading: choice >> 4 == bit + 8,
        takes: takes[usize::from((choice >> 5) + bit) % takes.len()],
    };
    some.map(read).collect()
}

fn models(choice: u8) -> Vec<ModelName> {
    if choice >= 240 {
        return vec![ModelName::from("*"), ModelName::from("a")];
    }
    (0..4).filter(|bit| choice >> bit & 1 == 1).map(model).collect()
}
