//! The slices of one key, and its jobs in flight: a pure machine.

use std::time::{Duration, Instant};

use base::{IdMap, JobId, KeyId, KeyLimits, Money};
use store::pools::{Answer, Measure, PoolId, Report};

use super::{
    super::{Gauge, Limited, NEXT_FREE, OverLimit, Standing, allowance::bounds, capped},
    share::Contact,
    slice::{Limit, Mode, Offer, Slice},
};
use crate::{moment::Moment, prices::Charge};

/// The most slices of days and months that are over and not reported.
const MOST_CLOSED: usize = 8;

/// Why a request is not admitted at once.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A limit is used up.
    Over(OverLimit),
    /// The slices hold too little. More was asked for.
    Short,
}

/// This server's view of the pools, before it asks the database.
pub(super) trait PoolView {
    /// The number of servers.
    fn servers(&self) -> u64;

    /// This server's own use of a pool, by rows that the database has not taken.
    fn unsent(&self, key: &KeyId, measure: Measure, period: (u64, u64)) -> u64;
}

/// The slices of one key.
pub(super) struct Slices {
    key: KeyId,
    limits: KeyLimits,
    /// The reservation of each job in flight. The scheduler bounds their number.
    open: IdMap<JobId, Charge>,
    slices: Vec<Slice>,
    /// Slices of days and months that are over, and of limits that the key no longer has, until their last report is
    /// answered.
    closed: Vec<Slice>,
}

impl Slices {
    pub(super) fn new(key: KeyId, limits: KeyLimits) -> Self {
        let (open, slices, closed) = (IdMap::default(), Vec::new(), Vec::new());
        Self { key, limits, open, slices, closed }
    }

    /// Changes the limits. What is in flight goes on to count.
    pub(super) fn change(&mut self, limits: KeyLimits) {
        self.limits = limits;
    }

    /// Admits a job with an estimate of its charge. Returns whether more should be asked for soon.
    pub(super) fn reserve(
        &mut self,
        job: JobId,
        estimate: Charge,
        mode: Mode,
        now: Moment,
        pools: &impl PoolView,
    ) -> Result<(Standing, bool), Refusal> {
        self.turn(now, pools);
        let charge = capped(&self.limits, estimate);
        let mut asks = false;
        for slice in &mut self.slices {
            match slice.offer(amount(slice.limit.measure, charge), mode, now.steady) {
                Offer::Enough => {}
                Offer::Ask => asks = true,
                Offer::UsedUp(wait) => {
                    if mode == Mode::Late {
                        slice.gave_up(now.steady);
                    }
                    let limit = slice.limit;
                    return Err(Refusal::Over(self.over(&limit, wait, now)));
                }
            }
        }
        if asks {
            self.ask_for(charge, now.steady);
            return Err(Refusal::Short);
        }
        let is_low = self.take(job, charge, now.steady);
        Ok((self.standing(now), is_low))
    }

    /// Gives up what is granted and not in use: after the long silence of this server, the database may have
    /// given it to others.
    pub(super) fn let_go(&mut self) {
        self.slices.iter_mut().for_each(Slice::let_go);
    }

    /// Settles a job with what it used. Returns whether it is known: another one is skipped.
    pub(super) fn settle(
        &mut self,
        job: JobId,
        used: Charge,
        now: Moment,
        pools: &impl PoolView,
    ) -> bool {
        let Some(charge) = self.open.remove(&job) else { return false };
        self.turn(now, pools);
        for slice in &mut self.slices {
            let measure = slice.limit.measure;
            match measure {
                Measure::Requests => {}
                Measure::Concurrent => slice.settle(1, 0),
                _ => slice.settle(amount(measure, charge), amount(measure, used)),
            }
        }
        true
    }

    /// Notes that other servers need what is not used here.
    pub(super) fn recall(&mut self) {
        self.slices.iter_mut().for_each(Slice::recall);
    }

    /// When the next report is due; `None`: there is nothing to report.
    pub(super) fn due(&mut self, now: Instant) -> Option<Instant> {
        let all = self.slices.iter_mut().chain(&mut self.closed);
        all.filter_map(|slice| slice.due(now)).min()
    }

    /// The reports that are due; `all`: also those that are due later.
    pub(super) fn reports(&mut self, now: Moment, all: bool) -> Vec<Report> {
        let key = &self.key;
        let slices = self.slices.iter_mut().chain(&mut self.closed);
        let due = slices.filter_map(|slice| {
            let at = slice.due(now.steady)?;
            (all || at <= now.steady).then_some(slice)
        });
        due.map(|slice| slice.report(pool(key, &slice.limit), now.steady)).collect()
    }

    /// Takes over an answer.
    pub(super) fn answered(&mut self, answer: &Answer, servers: u64, now: Instant) {
        let key = &self.key;
        let mut all = self.slices.iter_mut().chain(&mut self.closed);
        if let Some(slice) = all.find(|slice| pool(key, &slice.limit) == answer.pool) {
            slice.answered(answer, servers, now);
        }
        self.closed.retain(|slice| !slice.is_empty());
    }

    /// The database has not answered.
    pub(super) fn unanswered(&mut self) {
        self.slices.iter_mut().chain(&mut self.closed).for_each(Slice::unanswered);
    }

    /// Whether nothing is held, in flight or to be reported.
    pub(super) fn are_empty(&self) -> bool {
        self.open.is_empty() && self.slices.iter().chain(&self.closed).all(Slice::is_empty)
    }

    /// Gives everything back, since this server ends. Jobs in flight no longer count.
    pub(super) fn end(&mut self) {
        let ended = std::mem::take(&mut self.slices);
        for mut slice in ended {
            slice.close();
            self.closed.push(slice);
        }
        self.open.clear();
    }

    /// Sees to it that each limit has a slice, that of this day or month.
    fn turn(&mut self, now: Moment, pools: &impl PoolView) {
        let wanted = wanted(&self.limits, now.wall_ms);
        if self.slices.iter().map(|slice| slice.limit).eq(wanted.iter().flatten().copied()) {
            return;
        }
        let mut before = std::mem::take(&mut self.slices);
        for limit in wanted.into_iter().flatten() {
            self.open_slice(limit, &mut before, now.steady, pools);
        }
        for mut slice in before {
            slice.close();
            self.closed.push(slice);
        }
        let most = self.closed.len().saturating_sub(MOST_CLOSED);
        self.closed.drain(..most);
    }

    /// Begins a slice, or goes on with the one of that day or month. A slice that replaces another takes over what is
    /// in flight.
    fn open_slice(
        &mut self,
        limit: Limit,
        before: &mut Vec<Slice>,
        now: Instant,
        pools: &impl PoolView,
    ) {
        let is_it = |slice: &Slice| pool_of(&slice.limit) == pool_of(&limit);
        if let Some(at) = before.iter().position(is_it) {
            let mut slice = before.remove(at);
            slice.limit = limit;
            return self.slices.push(slice);
        }
        let known = self.closed.iter().position(is_it).map(|at| self.closed.remove(at));
        let mut slice = known.unwrap_or_else(|| {
            let used = pools.unsent(&self.key, limit.measure, limit.period);
            let free = limit.most.saturating_sub(used);
            Slice::new(limit, Contact { free, servers: pools.servers(), at: now })
        });
        slice.reopen();
        slice.limit = limit;
        let same = |old: &&mut Slice| old.limit.measure == limit.measure;
        let in_flight = match before.iter_mut().find(same) {
            Some(old) => old.close(),
            None => self.in_flight(limit.measure),
        };
        slice.reserve(in_flight);
        self.slices.push(slice);
    }

    /// The amount that jobs in flight take of a limit that was not counted until now.
    fn in_flight(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Requests => 0,
            _ => self.open.values().map(|charge| amount(measure, *charge)).sum(),
        }
    }

    fn ask_for(&mut self, charge: Charge, now: Instant) {
        for slice in &mut self.slices {
            let amount = amount(slice.limit.measure, charge);
            if slice.offer(amount, Mode::Usual, now) == Offer::Ask {
                slice.ask_for(amount);
            }
        }
    }

    fn take(&mut self, job: JobId, charge: Charge, now: Instant) -> bool {
        self.open.insert(job, charge);
        let mut is_low = false;
        for slice in &mut self.slices {
            let amount = amount(slice.limit.measure, charge);
            is_low |= amount > 0 && slice.take(amount, now);
        }
        is_low
    }

    fn over(&mut self, limit: &Limit, wait: Option<Duration>, now: Moment) -> OverLimit {
        let limited = limited(limit, &self.limits);
        let retry_after = match limit.measure {
            Measure::Budget | Measure::Money => until_new(limit, now.wall_ms),
            _ => wait.unwrap_or(NEXT_FREE),
        };
        OverLimit { limited, retry_after, standing: self.standing(now) }
    }

    fn standing(&mut self, now: Moment) -> Standing {
        let requests = self.gauge(Measure::Requests, now);
        let tokens = self.gauge(Measure::Tokens, now);
        Standing { requests, tokens: tokens.or_else(|| self.gauge(Measure::Budget, now)) }
    }

    fn gauge(&mut self, of: Measure, now: Moment) -> Option<Gauge> {
        let slice = self.slices.iter_mut().find(|slice| slice.limit.measure == of)?;
        let until_new = until_new(&slice.limit, now.wall_ms);
        Some(slice.gauge(now.steady, until_new))
    }
}

/// The amount that a job takes of a limit.
fn amount(measure: Measure, charge: Charge) -> u64 {
    match measure {
        Measure::Concurrent | Measure::Requests => 1,
        Measure::Budget | Measure::Tokens => charge.tokens,
        Measure::Money => charge.money.0,
    }
}

fn wanted(limits: &KeyLimits, now_ms: u64) -> [Option<Limit>; 5] {
    Measure::ALL.map(|measure| {
        let (most, per) = match measure {
            Measure::Concurrent => (limits.concurrent?.into(), None),
            Measure::Requests => (limits.rpm?.into(), None),
            Measure::Tokens => (limits.tpm?, None),
            Measure::Budget => limits.budget.map(|it| (it.tokens, Some(it.per)))?,
            Measure::Money => limits.budget_money.map(|it| (it.amount.0, Some(it.per)))?,
        };
        let period = per.map_or((0, 0), |per| bounds(per, now_ms));
        Some(Limit { measure, most, period })
    })
}

/// The limit in an error for clients. There are slices only of limits that the key has, so a budget is never reported
/// as tokens a minute.
fn limited(limit: &Limit, limits: &KeyLimits) -> Limited {
    let most = limit.most;
    let small = || u32::try_from(most).unwrap_or(u32::MAX);
    match (limit.measure, limits.budget, limits.budget_money) {
        (Measure::Concurrent, ..) => Limited::Concurrent(small()),
        (Measure::Requests, ..) => Limited::Requests(small()),
        (Measure::Budget, Some(budget), _) => Limited::Budget(budget),
        (Measure::Money, _, Some(budget)) => {
            Limited::Money(base::MoneyBudget { amount: Money(most), ..budget })
        }
        (Measure::Tokens | Measure::Budget | Measure::Money, ..) => Limited::Tokens(most),
    }
}

fn until_new(limit: &Limit, now_ms: u64) -> Duration {
    Duration::from_millis(limit.period.1.saturating_sub(now_ms))
}

fn pool(key: &KeyId, limit: &Limit) -> PoolId {
    PoolId { key: key.clone(), measure: limit.measure, began_ms: limit.period.0 }
}

fn pool_of(limit: &Limit) -> (Measure, u64) {
    (limit.measure, limit.period.0)
}
