//! Several servers, each with its slices, and a database that uses the same step as the true one.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, SystemTime},
};

use base::{Budget, JobId, KeyId, KeyLimits, MoneyBudget, Period};
use store::pools::{Answer, Answers, Level, Measure, Pool, PoolId, Report, SILENT_S, Slice, Stock};

use super::super::{
    slice::Mode,
    slices::{PoolView, Refusal, Slices},
};
use crate::{moment::Moment, prices::Charge};

/// A rule that a test can switch off, to see that it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Reports come in their order, or not at all.
    Order,
    /// The amount in flight or idle at other servers is not given again.
    Held,
    /// A server that was silent for long uses nothing that may have been given away.
    Silence,
}

pub(super) struct World {
    pub(super) limits: KeyLimits,
    pub(super) now: Moment,
    pub(super) servers: Vec<Server>,
    pub(super) database: Database,
    without: Option<Rule>,
    jobs: u128,
    runs: usize,
    /// The amount in flight when servers that are dead now last admitted a job.
    in_flight_of_others: u64,
    /// The amount that may have been used beside the budget because servers were not heard of.
    pub(super) unheard: u64,
}

pub(super) struct Server {
    /// The number of its run.
    run: usize,
    slices: Slices,
    /// The use that is known without the database.
    count: Count,
    /// Jobs in flight: id, estimate, and what it will use.
    pub(super) open: VecDeque<(JobId, u64, u64)>,
    /// The expected use of jobs in flight when it last admitted one.
    pub(super) in_flight_at_last: u64,
    /// The use of all its runs.
    pub(super) used: u64,
    /// Rows that the database has not taken: the run, and what was used.
    rows: VecDeque<(usize, u64)>,
    /// Reports on their way to the database, with their number.
    sent: Option<(u64, Vec<Report>)>,
    /// Reports that were given up, and still may come.
    late: Option<(usize, u64, Vec<Report>)>,
    number: u64,
    sent_ms: u64,
    /// Whether its last try failed.
    pub(super) away: bool,
    /// When that was sent which was answered last.
    heard_ms: u64,
    /// The amount that it may use beyond its slice if the database is away now.
    share: u64,
    /// Whether it has begun to use that.
    shares: bool,
}

#[derive(Default)]
pub(super) struct Database {
    used: u64,
    level: Option<(Level, u64)>,
    slices: BTreeMap<usize, Slice>,
    /// By run: what jobs that ended have used in truth.
    settled: BTreeMap<usize, u64>,
    /// The use of slices that were taken back, and not reported.
    lost: u64,
    /// By run: the number of its last report, and when it came.
    runs: BTreeMap<usize, (u64, u64)>,
    pub(super) recalled: bool,
    pub(super) free: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Count(pub(super) u64);

impl PoolView for Count {
    fn servers(&self) -> u64 {
        self.0
    }

    fn unsent(&self, _: &KeyId, _: Measure, _: (u64, u64)) -> u64 {
        0
    }
}

pub(super) fn limits(measure: Measure, most: u64) -> KeyLimits {
    let per = Period::Month;
    let small = u32::try_from(most).unwrap();
    let none = KeyLimits::default();
    match measure {
        Measure::Concurrent => KeyLimits { concurrent: Some(small), ..none },
        Measure::Requests => KeyLimits { rpm: Some(small), ..none },
        Measure::Tokens => KeyLimits { tpm: Some(most), ..none },
        Measure::Budget => KeyLimits { budget: Some(Budget { tokens: most, per }), ..none },
        Measure::Money => {
            let money: MoneyBudget = "1USD/month".parse().unwrap();
            KeyLimits {
                budget_money: Some(MoneyBudget { amount: base::Money(most), ..money }),
                ..none
            }
        }
    }
}

impl World {
    pub(super) fn new(limits: KeyLimits, servers: usize, without: Option<Rule>) -> Self {
        // The middle of a month: no period ends.
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_800_000);
        let now = Moment::of(std::time::Instant::now(), wall);
        let mut world = Self {
            limits,
            now,
            servers: Vec::new(),
            database: Database::default(),
            without,
            jobs: 0,
            runs: servers,
            in_flight_of_others: 0,
            unheard: 0,
        };
        for run in 0..servers {
            world.servers.push(Server::new(run, limits, servers, now.wall_ms));
        }
        // All have been heard of: so each knows how many there are.
        for at in 0..servers {
            world.speak(at);
        }
        world
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }

    /// A request of this estimate comes, which will use `uses`. Returns what becomes of it.
    pub(super) fn request(&mut self, at: usize, estimate: u64, uses: u64, late: bool) -> Outcome {
        self.jobs += 1;
        let (job, now) = (JobId::from_random(self.jobs), self.now);
        let server = &mut self.servers[at];
        let mode = match (server.away, late) {
            (true, _) => Mode::Away { servers: server.count.0 },
            (false, true) => Mode::Late,
            (false, false) => Mode::Usual,
        };
        let is_silent = now.wall_ms - server.heard_ms >= u64::from(SILENT_S) * 1_000;
        if is_silent && self.without != Some(Rule::Silence) {
            server.slices.let_go();
        }
        let charge = Charge { tokens: estimate, money: base::Money(estimate) };
        match server.slices.reserve(job, charge, mode, now, &server.count) {
            Ok(_) => {
                if matches!(mode, Mode::Away { .. }) && !server.shares {
                    server.shares = true;
                    self.unheard += server.share;
                }
                server.open.push_back((job, estimate, uses));
                server.in_flight_at_last = server.open.iter().map(|(_, _, uses)| uses).sum();
                Outcome::Admitted
            }
            Err(Refusal::Short) => Outcome::Waits,
            Err(Refusal::Over(_)) => Outcome::Refused,
        }
    }

    /// A request that waits for more as a server has it do: it asks again until it has waited for a second.
    pub(super) fn patient_request(&mut self, at: usize, estimate: u64, uses: u64) -> Outcome {
        for _ in 0..50 {
            match self.request(at, estimate, uses, false) {
                Outcome::Waits => {}
                answer => return answer,
            }
            self.speak(at);
            if std::mem::take(&mut self.database.recalled) {
                (0..self.servers.len()).filter(|other| *other != at).for_each(|other| {
                    self.servers[other].slices.recall();
                    self.speak(other);
                });
            }
            self.pass(20);
        }
        self.request(at, estimate, uses, true)
    }

    /// Jobs of ten tokens, one after the other, with all that they need.
    pub(super) fn work(&mut self, at: usize, jobs: usize) {
        for _ in 0..jobs {
            assert_eq!(self.patient_request(at, 10, 10), Outcome::Admitted);
            self.end_job(at);
        }
    }

    /// Jobs of ten tokens, until the database gives no more. Other servers are not asked for what they hold.
    pub(super) fn drain(&mut self, at: usize) {
        let mut tries = 0;
        while tries < 3 {
            match self.request(at, 10, 10, false) {
                Outcome::Admitted => self.end_job(at),
                _ => tries += 1,
            }
            self.pass(50);
            self.speak(at);
        }
    }

    /// Jobs of ten tokens from what is held.
    pub(super) fn use_up(&mut self, at: usize) {
        while self.request(at, 10, 10, false) == Outcome::Admitted {
            self.end_job(at);
        }
    }

    /// The oldest job of a server ends.
    pub(super) fn end_job(&mut self, at: usize) {
        let oldest = self.servers[at].open.pop_front();
        self.end(at, oldest);
    }

    /// The newest job of a server ends.
    pub(super) fn end_newest(&mut self, at: usize) {
        let newest = self.servers[at].open.pop_back();
        self.end(at, newest);
    }

    fn end(&mut self, at: usize, job: Option<(JobId, u64, u64)>) {
        let now = self.now;
        let server = &mut self.servers[at];
        let Some((job, _, uses)) = job else { return };
        let used = Charge { tokens: uses, money: base::Money(uses) };
        server.slices.settle(job, used, now, &server.count);
        server.used += uses;
        *self.database.settled.entry(server.run).or_default() += uses;
        server.rows.push_back((server.run, uses));
    }

    /// A server tells the database what there is to tell, and hears its answer, unless it is cut off.
    pub(super) fn speak(&mut self, at: usize) {
        if !self.servers[at].away {
            self.send(at);
            self.deliver(at, true);
        }
    }

    /// Every server has rested, and has just heard of the pool.
    pub(super) fn rest(&mut self) {
        for at in 0..self.servers.len() {
            while !self.servers[at].open.is_empty() {
                self.end_job(at);
            }
        }
        for _ in 0..3 {
            self.pass(4_000);
            (0..self.servers.len()).for_each(|at| self.tell_all(at));
        }
        for at in 0..self.servers.len() {
            self.patient_request(at, 1, 0);
            self.end_newest(at);
        }
    }

    /// A server tells all that there is to tell.
    pub(super) fn tell_all(&mut self, at: usize) {
        self.reconnect(at);
        self.pass(1_000);
        self.speak(at);
    }

    /// A server that was not heard of for some seconds speaks.
    pub(super) fn keep_in_touch(&mut self, at: usize) {
        if self.now.wall_ms - self.servers[at].heard_ms > 9_000 {
            self.reconnect(at);
            self.speak(at);
        }
    }

    /// A server sends its reports.
    pub(super) fn send(&mut self, at: usize) {
        let now = self.now;
        let server = &mut self.servers[at];
        if server.sent.is_none() {
            server.number += 1;
            let reports = server.slices.reports(now, false);
            server.sent_ms = now.wall_ms;
            server.sent = Some((server.number, reports));
        }
    }

    /// Delivers the sent report to the database; `answered`: whether the answer comes back.
    pub(super) fn deliver(&mut self, at: usize, answered: bool) {
        let now = self.now;
        let Some((number, reports)) = self.servers[at].sent.take() else { return };
        let run = self.servers[at].run;
        let limits = self.limits;
        let answer = self.database.take(run, number, &reports, &limits, now, self.without);
        self.unheard += std::mem::take(&mut self.database.lost);
        let server = &mut self.servers[at];
        match answer.filter(|_| answered) {
            Some(Answers { answers, servers }) => {
                server.count = Count(servers);
                for answer in &answers {
                    server.slices.answered(answer, servers, now.steady);
                }
                server.away = false;
                server.heard_ms = server.sent_ms;
                (server.share, server.shares) = (self.database.free / servers, false);
            }
            None => self.cut_off(at),
        }
    }

    /// Gives the sent report up. It comes later, if at all.
    pub(super) fn delay(&mut self, at: usize) {
        let server = &mut self.servers[at];
        if let Some((number, reports)) = server.sent.take() {
            server.late = Some((server.run, number, reports));
        }
        self.cut_off(at);
    }

    /// Delivers a report that was given up.
    pub(super) fn come_late(&mut self, at: usize) {
        let (now, limits) = (self.now, self.limits);
        if let Some((run, number, reports)) = self.servers[at].late.take() {
            self.database.take(run, number, &reports, &limits, now, self.without);
        }
    }

    /// A server hears that others need what it does not use.
    pub(super) fn recall(&mut self, at: usize) {
        self.servers[at].slices.recall();
    }

    /// A server does not reach the database.
    pub(super) fn cut_off(&mut self, at: usize) {
        self.servers[at].sent = None;
        self.servers[at].slices.unanswered();
        self.servers[at].away = true;
    }

    pub(super) fn reconnect(&mut self, at: usize) {
        self.servers[at].away = false;
    }

    /// The database takes a row of a server.
    pub(super) fn send_row(&mut self, at: usize) {
        if let Some((run, used)) = self.servers[at].rows.pop_front() {
            self.database.used += used;
            let is_budget = self.limits.budget.is_some() || self.limits.budget_money.is_some();
            if !is_budget {
                return;
            }
            if let Some(slice) = self.database.slices.get_mut(&run) {
                slice.taken += used;
            }
        }
    }

    /// A server is killed and starts again. Its jobs in flight have used nothing; its rows are on its disk.
    pub(super) fn crash(&mut self, at: usize) {
        self.runs += 1;
        let servers = self.servers.len();
        let new = Server::new(self.runs, self.limits, servers, self.now.wall_ms);
        let old = std::mem::replace(&mut self.servers[at], new);
        self.in_flight_of_others += old.in_flight_at_last;
        let new = &mut self.servers[at];
        (new.used, new.rows, new.late) = (old.used, old.rows, old.late);
    }

    /// Until nothing is held and all is reported.
    pub(super) fn settle_down(&mut self) {
        for at in 0..self.servers.len() {
            self.reconnect(at);
            while !self.servers[at].open.is_empty() {
                self.end_job(at);
            }
            while !self.servers[at].rows.is_empty() {
                self.send_row(at);
            }
        }
        for _ in 0..8 {
            self.pass(5_000);
            (0..self.servers.len()).for_each(|at| self.speak(at));
        }
    }

    /// The use of all servers.
    pub(super) fn used(&self) -> u64 {
        self.servers.iter().map(|server| server.used).sum()
    }

    /// The amount in flight when each server last admitted a job.
    pub(super) fn in_flight_at_last(&self) -> u64 {
        let now = self.servers.iter().map(|server| server.in_flight_at_last).sum::<u64>();
        now + self.in_flight_of_others
    }

    /// The use of all servers, and the expected use of jobs in flight.
    pub(super) fn busy(&self) -> u64 {
        let open = self.servers.iter().flat_map(|server| &server.open);
        self.used() + open.map(|(_, estimate, _)| (*estimate).max(1)).sum::<u64>()
    }

    /// The amount that is held and not used, as the database has it.
    pub(super) fn held(&self) -> u64 {
        let slices = self.database.slices.values();
        slices.map(|it| it.granted.saturating_sub(it.settled)).sum()
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.servers.iter().all(|server| server.slices.are_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Admitted,
    Waits,
    Refused,
}

impl Server {
    fn new(run: usize, limits: KeyLimits, servers: usize, now_ms: u64) -> Self {
        Self {
            run,
            slices: Slices::new("k".into(), limits),
            count: Count(servers as u64),
            open: VecDeque::new(),
            in_flight_at_last: 0,
            used: 0,
            rows: VecDeque::new(),
            sent: None,
            late: None,
            number: 0,
            sent_ms: now_ms,
            away: false,
            heard_ms: now_ms,
            share: 0,
            shares: false,
        }
    }
}

impl Database {
    /// `None`: a later report of the same run came before.
    fn take(
        &mut self,
        run: usize,
        number: u64,
        reports: &[Report],
        limits: &KeyLimits,
        now: Moment,
        without: Option<Rule>,
    ) -> Option<Answers> {
        let last = self.runs.get(&run).map_or(0, |(number, _)| *number);
        if number <= last && without != Some(Rule::Order) {
            return None;
        }
        self.runs.insert(run, (number.max(last), now.wall_ms));
        let silent = now.wall_ms.saturating_sub(u64::from(SILENT_S) * 1_000);
        let (live, gone): (Vec<_>, Vec<_>) =
            self.runs.iter().partition(|(_, (_, at))| *at > silent);
        let servers = live.len() as u64;
        for (run, _) in gone {
            if let Some(slice) = self.slices.get_mut(run) {
                let used = self.settled.get(run).map_or(0, |used| (*used).min(slice.granted));
                self.lost += used.saturating_sub(slice.settled.max(slice.taken));
                *slice = slice.abandoned();
            }
        }
        let answers =
            reports.iter().map(|report| self.answer(run, report, servers, limits, now, without));
        Some(Answers { answers: answers.collect(), servers })
    }

    fn answer(
        &mut self,
        run: usize,
        report: &Report,
        servers: u64,
        limits: &KeyLimits,
        now: Moment,
        without: Option<Rule>,
    ) -> Answer {
        let mut others: Vec<_> =
            self.slices.iter().filter(|(of, _)| **of != run).map(|(_, slice)| *slice).collect();
        if without == Some(Rule::Held) {
            others.clear();
        }
        let own = self.slices.get(&run).copied().unwrap_or_default();
        let stock = self.stock(&report.pool, report.limit, now);
        assert!(!limits.is_unlimited());
        let mut pool = Pool { stock, own, others, servers };
        let answer = pool.take(report);
        self.slices.insert(run, pool.own);
        self.level = pool.stock.level().map(|level| (level, now.wall_ms));
        self.recalled |= answer.short && answer.idle > 0;
        self.free = answer.free;
        answer
    }

    fn stock(&self, pool: &PoolId, limit: u64, now: Moment) -> Stock {
        match pool.measure {
            Measure::Concurrent => Stock::Places { limit },
            Measure::Budget | Measure::Money => Stock::Budget { limit, used: self.used },
            Measure::Tokens | Measure::Requests => {
                let passed = self.level.map_or(0, |(_, at)| now.wall_ms - at);
                Stock::refilled(limit, self.level.map(|(level, _)| level), passed)
            }
        }
    }
}
