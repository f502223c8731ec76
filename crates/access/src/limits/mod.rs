//! The limits of a key: requests and tokens a minute, requests at the same time, and budgets of
//! tokens and of money.
//!
//! A job reserves its estimate before it begins, and is settled when it has ended, for all
//! limits of a key in one step.
//!
//! - `rate`: requests a minute
//! - `allowance`: tokens a minute, a day or a month
//! - `shared`: the same limits, for several servers together

pub(crate) mod allowance;
mod rate;
mod shared;

use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{IdMap, JobId, KeyId, KeyLimits, Money};

pub use self::shared::{Desk, UnsentUse};
use self::{
    allowance::{Bucket, Calendar},
    rate::Rate,
    shared::SharedLimits,
};
use crate::{moment::Moment, prices::Charge};

/// The advised wait for the end of another request of the same key.
const NEXT_FREE: Duration = Duration::from_secs(1);

/// The state of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauge {
    /// The limit.
    pub limit: u64,
    /// The remaining amount.
    pub remaining: u64,
    /// The time until all of it is available again.
    pub reset: Duration,
}

/// The state of a key's limits, which clients get with every answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Requests a minute, if they are limited.
    pub requests: Option<Gauge>,
    /// Tokens a minute, or else the budget's tokens, if limited.
    pub tokens: Option<Gauge>,
}

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Requests a minute.
    Requests(u32),
    /// Tokens a minute.
    Tokens(u64),
    /// Requests at the same time.
    Concurrent(u32),
    /// The budget of tokens.
    Budget(base::Budget),
    /// The budget in money.
    Money(base::MoneyBudget),
}

impl std::fmt::Display for Limited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Requests(limit) => write!(f, "{limit} requests a minute"),
            Self::Tokens(limit) => write!(f, "{limit} tokens a minute"),
            Self::Concurrent(limit) => write!(f, "{limit} requests at the same time"),
            Self::Budget(budget) => {
                write!(f, "{} tokens a {}", budget.tokens, budget.per.as_str())
            }
            Self::Money(budget) => {
                write!(f, "{} {} a {}", budget.amount, budget.currency, budget.per.as_str())
            }
        }
    }
}

/// Why a request is refused now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this API key is limited to {limited}")]
pub struct OverLimit {
    /// The limit that was reached.
    pub limited: Limited,
    /// When it is worth trying again.
    pub retry_after: Duration,
    /// The state of all limits of the key.
    pub standing: Standing,
}

/// The limits of one key, and their state.
pub(crate) struct Limits {
    limits: KeyLimits,
    count: Count,
}

/// Where use is counted.
#[expect(clippy::large_enum_variant, reason = "a server that counts alone has it without a detour")]
enum Count {
    /// By this server alone.
    Own(Mutex<Meters>),
    /// By all servers together.
    Shared(Arc<SharedLimits>),
}

struct Meters {
    /// The reservation of each job in flight. The scheduler bounds their number.
    open: IdMap<JobId, Charge>,
    rate: Option<Rate>,
    bucket: Option<Bucket>,
    budget: Option<Calendar>,
    money: Option<Calendar>,
}

impl Limits {
    pub(crate) fn new(limits: KeyLimits, now: Moment) -> Self {
        Self { limits, count: Count::Own(Mutex::new(Meters::new(&limits, now))) }
    }

    /// The limits of a key that other servers know, too.
    pub(crate) fn shared(key: &KeyId, limits: KeyLimits, desk: &Desk) -> Self {
        let shared = Arc::new(SharedLimits::new(key.clone(), limits, desk));
        Self { limits, count: Count::Shared(shared) }
    }

    /// Other limits of the same key. If they are shared, what was used goes on to count; otherwise counting begins
    /// again.
    pub(crate) fn changed(&self, limits: KeyLimits, now: Moment) -> Self {
        match &self.count {
            Count::Own(_) => Self::new(limits, now),
            Count::Shared(shared) => {
                shared.change(limits);
                Self { limits, count: Count::Shared(Arc::clone(shared)) }
            }
        }
    }

    /// Admits a job with an estimate of its charge. If other servers hold what it needs, the call waits, a second at
    /// most.
    pub(crate) async fn admit(
        &self,
        job: JobId,
        estimate: Charge,
        now: Moment,
    ) -> Result<Standing, OverLimit> {
        match &self.count {
            Count::Shared(shared) if !self.limits.is_unlimited() => {
                shared.admit(job, estimate, now).await
            }
            Count::Own(_) | Count::Shared(_) => self.reserve(job, estimate, now),
        }
    }

    /// Admits a job as `admit` does, but without a wait.
    pub(crate) fn reserve(
        &self,
        job: JobId,
        estimate: Charge,
        now: Moment,
    ) -> Result<Standing, OverLimit> {
        if self.limits.is_unlimited() {
            return Ok(Standing::default());
        }
        match &self.count {
            Count::Own(meters) => lock(meters).reserve(&self.limits, job, estimate, now),
            Count::Shared(shared) => shared.at_once(job, estimate, now),
        }
    }

    /// Settles a job with what it used. An unknown job is skipped.
    pub(crate) fn settle(&self, job: JobId, used: Charge, now: Moment) {
        match &self.count {
            Count::Own(_) if self.limits.is_unlimited() => {}
            Count::Own(meters) => lock(meters).settle(job, used, now),
            // It may have had limits when the job began.
            Count::Shared(shared) => shared.settle(job, used, now),
        }
    }

    /// Adds the budgets' usage from before the server started. Servers that share their limits ask the database.
    pub(crate) fn restore(&self, used: Charge, now: Moment) {
        if let Count::Own(meters) = &self.count {
            lock(meters).restore(used, now);
        }
    }

    pub(crate) fn limits(&self) -> &KeyLimits {
        &self.limits
    }
}

fn lock(meters: &Mutex<Meters>) -> MutexGuard<'_, Meters> {
    meters.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Caps an estimate at the whole limit: a client that asks for a million tokens is admitted,
/// but only when nothing else is.
fn capped(limits: &KeyLimits, estimate: Charge) -> Charge {
    let tpm = limits.tpm.unwrap_or(u64::MAX);
    let budget = limits.budget.map_or(u64::MAX, |budget| budget.tokens);
    let most = limits.budget_money.map_or(estimate.money, |budget| budget.amount);
    let tokens = estimate.tokens.max(1).min(tpm).min(budget);
    Charge { tokens, money: Money(estimate.money.0.min(most.0)) }
}

impl Meters {
    fn new(limits: &KeyLimits, now: Moment) -> Self {
        let rate = limits.rpm.and_then(NonZeroU32::new);
        Self {
            open: IdMap::default(),
            rate: rate.map(|rpm| Rate::new(rpm, now.steady)),
            bucket: limits.tpm.map(|tpm| Bucket::full(tpm, now.steady)),
            budget: limits.budget.map(|it| Calendar::new(it.tokens, it.per, now.wall_ms)),
            money: limits.budget_money.map(|it| Calendar::new(it.amount.0, it.per, now.wall_ms)),
        }
    }

    fn reserve(
        &mut self,
        limits: &KeyLimits,
        job: JobId,
        estimate: Charge,
        now: Moment,
    ) -> Result<Standing, OverLimit> {
        let limited = self.full(limits, estimate, now).map_or_else(|| self.take(limits, now), Err);
        if let Err((limited, retry_after)) = limited {
            let standing = self.standing(limits, now);
            return Err(OverLimit { limited, retry_after, standing });
        }
        self.open(job, capped(limits, estimate));
        Ok(self.standing(limits, now))
    }

    fn settle(&mut self, job: JobId, used: Charge, now: Moment) {
        let Some(reserved) = self.open.remove(&job) else { return };
        if let Some(bucket) = &mut self.bucket {
            bucket.correct(reserved.tokens, used.tokens);
        }
        if let Some(budget) = &mut self.budget {
            budget.settle(reserved.tokens, used.tokens, now.wall_ms);
        }
        if let Some(money) = &mut self.money {
            money.settle(reserved.money.0, used.money.0, now.wall_ms);
        }
    }

    fn restore(&mut self, used: Charge, now: Moment) {
        if let Some(budget) = &mut self.budget {
            budget.settle(0, used.tokens, now.wall_ms);
        }
        if let Some(money) = &mut self.money {
            money.settle(0, used.money.0, now.wall_ms);
        }
    }

    /// A limit that is used up, other than requests a minute, and the time until something is left of it.
    fn full(
        &mut self,
        limits: &KeyLimits,
        estimate: Charge,
        now: Moment,
    ) -> Option<(Limited, Duration)> {
        let open = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        if let Some(most) = limits.concurrent.filter(|most| open >= *most) {
            return Some((Limited::Concurrent(most), NEXT_FREE));
        }
        if let (Some(calendar), Some(budget)) = (&mut self.budget, limits.budget)
            && calendar.left(now.wall_ms) == 0
        {
            return Some((Limited::Budget(budget), calendar.until_new(now.wall_ms)));
        }
        // What costs nothing is admitted even if all the money is used.
        if let (Some(calendar), Some(budget)) = (&mut self.money, limits.budget_money)
            && estimate.money > Money::default()
            && calendar.left(now.wall_ms) == 0
        {
            return Some((Limited::Money(budget), calendar.until_new(now.wall_ms)));
        }
        let wait = self.bucket.as_mut().and_then(|bucket| bucket.wait(now.steady))?;
        Some((Limited::Tokens(limits.tpm?), wait))
    }

    /// Counts a request, or returns the limit that was reached and the time to wait.
    fn take(&mut self, limits: &KeyLimits, now: Moment) -> Result<(), (Limited, Duration)> {
        let (Some(rate), Some(rpm)) = (&mut self.rate, limits.rpm) else { return Ok(()) };
        rate.take(now.steady).map_err(|wait| (Limited::Requests(rpm), wait))
    }

    fn open(&mut self, job: JobId, charge: Charge) {
        self.open.insert(job, charge);
        if let Some(bucket) = &mut self.bucket {
            bucket.take(charge.tokens);
        }
        if let Some(budget) = &mut self.budget {
            budget.reserve(charge.tokens);
        }
        if let Some(money) = &mut self.money {
            money.reserve(charge.money.0);
        }
    }

    fn standing(&mut self, limits: &KeyLimits, now: Moment) -> Standing {
        let requests = self.rate.as_ref().map(|rate| rate.gauge(now.steady));
        Standing { requests, tokens: self.tokens(limits, now) }
    }

    fn tokens(&mut self, limits: &KeyLimits, now: Moment) -> Option<Gauge> {
        if let (Some(bucket), Some(limit)) = (&mut self.bucket, limits.tpm) {
            let remaining = bucket.left(now.steady);
            return Some(Gauge { limit, remaining, reset: bucket.until_full(now.steady) });
        }
        let limit = limits.budget?.tokens;
        let calendar = self.budget.as_mut()?;
        let remaining = calendar.left(now.wall_ms);
        Some(Gauge { limit, remaining, reset: calendar.until_new(now.wall_ms) })
    }
}

#[cfg(test)]
mod tests;
