//! This server's slice of one limit. It is a pure machine: the time and the database's answers are passed in.

use std::time::{Duration, Instant};

use store::pools::{Answer, Measure, PoolId, Report};

use super::{
    super::Gauge,
    demand::Demand,
    share::{Contact, Share},
};

/// How long a slice that nobody uses is kept.
pub(super) const REST: Duration = Duration::from_secs(3);

/// How soon use is reported, and for how long a pool that is used up is not asked again.
const TELL: Duration = Duration::from_secs(1);

/// The same for the limit of requests at the same time, whose places become free all the time.
const TELL_PLACES: Duration = Duration::from_millis(200);

/// How soon after a report a slice that is nearly used up is reported again, to get more.
const TOP_UP: Duration = Duration::from_millis(50);

/// The first and the longest pause between two requests for more, while other servers give back.
const RECALL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(320));

const MINUTE_MS: u128 = 60_000;

/// The limit that a slice is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) measure: Measure,
    pub(super) most: u64,
    /// The begin and the end of its day or month, in milliseconds since 1970; 0 without one.
    pub(super) period: (u64, u64),
}

/// The slice's answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// There is enough.
    Enough,
    /// More has to be asked for first.
    Ask,
    /// It is used up. The time until it is worth trying again, if that is known.
    UsedUp(Option<Duration>),
}

/// How a request may be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// From the slice; if that has too little, more is asked for.
    Usual,
    /// It has waited for more, and takes what there is.
    Late,
    /// From the slice and this server's share: the database is away.
    Away {
        /// The number of servers that the database last named.
        servers: u64,
    },
}

pub(super) struct Slice {
    pub(super) limit: Limit,
    /// The settled use that the database knew at its first answer to this run; `None` until then.
    base: Option<u64>,
    /// Counted from `base`, as `settled` is.
    granted: u64,
    settled: u64,
    reserved: u64,
    /// The amount that requests wait for.
    need: u64,
    demand: Demand,
    /// Whether other servers need what is idle here.
    recalled: bool,
    /// Whether its day or month is over.
    closed: bool,
    /// Whether something was used that is not reported.
    changed: bool,
    /// The idle amount that the database knows of.
    told_idle: u64,
    /// Whether the last report was not answered yet.
    is_asked: bool,
    /// When the last report was made.
    asked_at: Instant,
    /// Until when requests take what is left or are refused, without asking for more.
    used_up_until: Option<Instant>,
    /// Until when other servers have time to give back, and how often they were asked.
    recall: Option<(Instant, u32)>,
    contact: Contact,
    share: Option<Share>,
    /// The amount that all servers together had left, and the amount that this server had used by then.
    left: (u64, u64),
    /// The time from the last answer until the pool has more, if that is known.
    next: Option<Duration>,
}

impl Slice {
    /// An empty slice. `contact` stands for the database's answer until there is one.
    pub(super) const fn new(limit: Limit, contact: Contact) -> Self {
        Self {
            limit,
            base: None,
            granted: 0,
            settled: 0,
            reserved: 0,
            need: 0,
            demand: Demand::new(contact.at),
            recalled: false,
            closed: false,
            changed: false,
            told_idle: 0,
            is_asked: false,
            asked_at: contact.at,
            used_up_until: None,
            recall: None,
            contact,
            share: None,
            left: (contact.free, 0),
            next: None,
        }
    }

    /// Whether a request of this amount may be served.
    pub(super) fn offer(&mut self, amount: u64, mode: Mode, now: Instant) -> Offer {
        let left = self.available();
        // What costs nothing is admitted even if all is used.
        if amount == 0 || left >= i128::from(amount) {
            return Offer::Enough;
        }
        match mode {
            Mode::Away { servers } => self.of_share(servers, now),
            Mode::Late => self.what_is_left(now),
            Mode::Usual if self.used_up_until.is_some_and(|until| now < until) => {
                self.what_is_left(now)
            }
            Mode::Usual => Offer::Ask,
        }
    }

    /// Gives up what is granted and not in use: after the long silence of this server, the database may have
    /// given it to others.
    pub(super) fn let_go(&mut self) {
        self.changed |= self.granted > self.busy();
        self.granted = self.granted.min(self.busy());
    }

    /// Notes that a request waits for this amount.
    pub(super) fn ask_for(&mut self, amount: u64) {
        self.need = self.need.saturating_add(amount).min(self.limit.most);
    }

    /// Notes that a request has waited in vain: for a while, the next ones are not made to wait.
    pub(super) fn gave_up(&mut self, now: Instant) {
        (self.used_up_until, self.recall) = (Some(now + self.pace() / 2), None);
    }

    /// Takes an amount. Returns whether little is left, and more should be asked for.
    pub(super) fn take(&mut self, amount: u64, now: Instant) -> bool {
        match self.limit.measure {
            Measure::Requests => self.settled = self.settled.saturating_add(amount),
            _ => self.reserve(amount),
        }
        self.demand.add(amount, now);
        self.changed = true;
        self.runs_low(now)
    }

    /// Adds an amount that is in flight.
    pub(super) fn reserve(&mut self, amount: u64) {
        self.reserved = self.reserved.saturating_add(amount);
    }

    /// Replaces a reservation by what was used.
    pub(super) fn settle(&mut self, reserved: u64, used: u64) {
        self.reserved = self.reserved.saturating_sub(reserved);
        self.settled = self.settled.saturating_add(used);
        self.changed = true;
    }

    /// Ends its use. Returns the amount in flight, which no longer counts here: the caller may add it to another
    /// slice.
    pub(super) fn close(&mut self) -> u64 {
        (self.need, self.changed, self.closed) = (0, true, true);
        std::mem::take(&mut self.reserved)
    }

    /// Begins its use again.
    pub(super) const fn reopen(&mut self) {
        self.closed = false;
    }

    /// Notes that another server needs what this one does not.
    pub(super) const fn recall(&mut self) {
        self.recalled = true;
    }

    /// When its next report is due; `None`: there is nothing to report.
    pub(super) fn due(&mut self, now: Instant) -> Option<Instant> {
        if self.is_asked {
            return None;
        }
        if self.closed {
            return self.changed.then_some(now);
        }
        let recall = self.recall.map(|(until, _)| until);
        let need = (self.need > 0).then(|| recall.unwrap_or(now));
        let recalled = (self.recalled && self.available() > 0).then_some(now);
        let is_open = self.used_up_until.is_none_or(|until| now >= until);
        let low = (is_open && self.runs_low(now)).then(|| self.asked_at + TOP_UP);
        let tell = self.changed.then(|| self.asked_at + self.tells_after(now));
        let rested = (self.available() > 0).then(|| self.demand.rested_at(REST));
        [need, recalled, low, tell, rested].into_iter().flatten().min()
    }

    /// The report for the database. An amount that is given back is not used from here on.
    pub(super) fn report(&mut self, pool: PoolId, now: Instant) -> Report {
        let keep = self.keep(now);
        let need = std::mem::take(&mut self.need);
        let rest = self.busy().saturating_add(keep);
        self.granted = self.granted.min(rest);
        (self.recalled, self.changed) = (false, false);
        self.told_idle = self.granted.saturating_sub(self.busy());
        (self.is_asked, self.asked_at) = (true, now);
        let settled = self.base.map(|base| base.saturating_add(self.settled));
        let reserved = if settled.is_some() { self.reserved } else { self.busy() };
        let Limit { most, period, .. } = self.limit;
        Report { pool, limit: most, ends_ms: period.1, settled, reserved, keep, need }
    }

    /// Takes over what the database has answered.
    pub(super) fn answered(&mut self, answer: &Answer, servers: u64, now: Instant) {
        // Until the first answer, settled use was reported as in flight. Now it has to be reported as settled.
        self.changed |= self.base.is_none() && self.settled > 0;
        let base = *self.base.get_or_insert(answer.settled);
        self.granted = answer.granted.saturating_sub(base);
        (self.is_asked, self.share) = (false, None);
        self.contact = Contact { free: answer.free, servers, at: now };
        let own = u64::try_from(self.available()).unwrap_or(0);
        self.told_idle = own;
        let left = answer.free.saturating_add(answer.idle).saturating_add(own);
        self.left = (left, self.busy());
        self.next = answer.next_ms.map(Duration::from_millis);
        match (answer.short, answer.idle) {
            (false, _) => (self.used_up_until, self.recall) = (None, None),
            (true, 0) => {
                let pace = self.pace();
                self.used_up_until = Some(now + self.next.map_or(pace, |it| it.min(pace)));
                self.recall = None;
            }
            (true, _) => self.recall = Some(self.next_recall(now)),
        }
    }

    /// The database has not answered: perhaps the report did not reach it.
    pub(super) const fn unanswered(&mut self) {
        if self.is_asked {
            (self.is_asked, self.changed) = (false, true);
        }
    }

    /// Whether it holds nothing, and has nothing to report.
    pub(super) const fn is_empty(&self) -> bool {
        let held = self.granted > self.settled || self.reserved > 0 || self.need > 0;
        !held && !self.changed && !self.is_asked
    }

    pub(super) fn gauge(&mut self, now: Instant, until_new: Duration) -> Gauge {
        let limit = self.limit.most;
        let (left, busy) = self.left;
        let used = self.busy().saturating_sub(busy);
        let passed = now.saturating_duration_since(self.contact.at).as_millis();
        let back = match self.limit.measure.is_rate() {
            true => u64::try_from(passed * u128::from(limit) / MINUTE_MS).unwrap_or(u64::MAX),
            false => 0,
        };
        let remaining = match self.used_up_until.is_some_and(|until| now < until) {
            // It may hold more than the limit, if that was lowered since.
            true => u64::try_from(self.available()).unwrap_or(0).min(limit),
            false => left.saturating_add(back).min(limit).saturating_sub(used),
        };
        let reset = match self.limit.measure.is_rate() {
            true => time_for(limit - remaining, limit),
            false => until_new,
        };
        Gauge { limit, remaining, reset }
    }

    fn of_share(&mut self, servers: u64, now: Instant) -> Offer {
        let left = self.available();
        let Limit { measure, most, .. } = self.limit;
        // More servers may have joined since the last answer about this pool.
        let servers = servers.max(self.contact.servers);
        let contact = Contact { servers, ..self.contact };
        let share = self.share.get_or_insert_with(|| Share::of(measure, most, &contact));
        if measure.is_rate() {
            share.refill(most, servers, left, now);
        }
        let more = match measure {
            // Places that it holds are part of its share.
            Measure::Concurrent => share.extra.saturating_sub(self.granted),
            _ => share.extra,
        };
        let part = most.div_ceil(servers.max(1));
        match left + i128::from(more) > 0 {
            true => Offer::Enough,
            false => Offer::UsedUp(measure.is_rate().then(|| time_for(1, part))),
        }
    }

    fn what_is_left(&self, now: Instant) -> Offer {
        match self.available() > 0 {
            true => Offer::Enough,
            false => {
                Offer::UsedUp(self.next.map(|next| {
                    next.saturating_sub(now.saturating_duration_since(self.contact.at))
                }))
            }
        }
    }

    /// The amount that it wants to keep beside what is in use. If it runs low, two seconds' worth; otherwise what it
    /// has, up to four seconds' worth; nothing if it was not used lately.
    fn keep(&mut self, now: Instant) -> u64 {
        let left = u64::try_from(self.available()).unwrap_or(0);
        let target = self.target(now);
        let rests = self.closed || now >= self.demand.rested_at(REST);
        let wanted = match (rests, self.recalled) {
            (true, _) => 0,
            (false, true) => left / 2,
            (false, false) if self.runs_low(now) => target,
            (false, false) => left.min(target.saturating_mul(2)),
        };
        wanted.max(self.need).min(self.limit.most)
    }

    fn target(&mut self, now: Instant) -> u64 {
        match self.limit.measure {
            Measure::Concurrent => 1 + self.reserved / 4,
            _ => self.demand.of_a_second(now).saturating_mul(2),
        }
    }

    fn runs_low(&mut self, now: Instant) -> bool {
        let is_used = now < self.demand.rested_at(REST);
        is_used && self.available() < i128::from(self.target(now).div_ceil(2))
    }

    fn next_recall(&self, now: Instant) -> (Instant, u32) {
        let tries = self.recall.map_or(0, |(_, tries)| tries);
        let (first, longest) = RECALL;
        (now + (first * 2_u32.saturating_pow(tries.min(8))).min(longest), tries + 1)
    }

    /// How long after the last report its use is reported. If much has become free, soon: other servers may wait for
    /// it.
    fn tells_after(&mut self, now: Instant) -> Duration {
        let known = self.told_idle.saturating_add(self.target(now) / 2);
        if self.available() > i128::from(known) { self.pace() } else { TELL }
    }

    fn pace(&self) -> Duration {
        match self.limit.measure {
            Measure::Concurrent => TELL_PLACES,
            _ => TELL,
        }
    }

    fn available(&self) -> i128 {
        i128::from(self.granted) - i128::from(self.settled) - i128::from(self.reserved)
    }

    fn busy(&self) -> u64 {
        self.settled.saturating_add(self.reserved)
    }
}

/// The time in which `units` of a rate come back.
fn time_for(units: u64, a_minute: u64) -> Duration {
    let millis = (u128::from(units) * MINUTE_MS).div_ceil(u128::from(a_minute.max(1)));
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
