//! What became of everything.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{
    judge::{Ask, Fate},
    settings::Settings,
};

/// How many wrong things are told one by one.
const MAX_TOLD: usize = 20;

/// What became of all requests.
#[derive(Debug, Default)]
struct Fates {
    all: u64,
    /// By the machine that was asked, and by others.
    here: u64,
    elsewhere: u64,
    hung_up: u64,
    ended_by_event: u64,
    cut: u64,
    gone: u64,
    refused: BTreeMap<u16, u64>,
    /// How long the longest took.
    longest: Duration,
}

/// What became of machines.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    pub(crate) started: u64,
    pub(crate) killed: u64,
    pub(crate) stopped: u64,
    pub(crate) frozen: u64,
    /// How often the relay was killed and started again.
    pub(crate) relays: u64,
}

/// What became of pulls.
#[derive(Debug, Default)]
pub(crate) struct Pulls {
    pub(crate) done: u64,
    /// Of those, the ones whose machine had ended in their middle.
    pub(crate) resumed: u64,
    /// By why they failed.
    pub(crate) failed: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Inner {
    fates: Fates,
    lives: Lives,
    pulls: Pulls,
    wrongs: u64,
    wrong: Vec<String>,
}

/// Where everybody reports.
#[derive(Clone, Default)]
pub(crate) struct Report(Arc<Mutex<Inner>>);

impl Report {
    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.0.lock().expect("nobody panics with it"))
    }

    /// Something is not as it should be.
    pub(crate) fn wrong(&self, what: String) {
        self.with(|inner| {
            inner.wrongs += 1;
            if inner.wrong.len() < MAX_TOLD {
                inner.wrong.push(what);
            }
        });
    }

    pub(crate) fn lived(&self, add: impl FnOnce(&mut Lives)) {
        self.with(|inner| add(&mut inner.lives));
    }

    pub(crate) fn pulled(&self, add: impl FnOnce(&mut Pulls)) {
        self.with(|inner| add(&mut inner.pulls));
    }

    /// What became of a request, and how long it took.
    pub(crate) fn request(&self, ask: Ask, fate: Fate, took: Duration) {
        let wrong = self.with(|inner| inner.fates.add(ask, fate, took));
        wrong.into_iter().for_each(|what| self.wrong(what));
    }

    /// What was wrong, the first of it.
    pub(crate) fn wrongs(&self) -> Vec<String> {
        self.with(|inner| inner.wrong.clone())
    }

    /// A run in which hardly anything was answered, or hardly anything by others, or in which nobody
    /// came and went, has tested nothing.
    pub(crate) fn check_that_it_counts(&self, settings: &Settings) {
        let clients = settings.clients as u64;
        let few = self.with(|inner| {
            let (fates, lives) = (&inner.fates, &inner.lives);
            let few = fates.here < clients || fates.elsewhere < clients || lives.killed == 0;
            few.then(|| format!("too little has happened to tell anything: {fates}; {lives:?}"))
        });
        few.into_iter().for_each(|few| self.wrong(few));
    }

    /// One line for people.
    pub(crate) fn line(&self, seed: u64, seconds: f64, resident_mib: u64) -> String {
        self.with(|inner| {
            let Inner { fates, lives, pulls, wrongs, .. } = inner;
            let Lives { started, killed, stopped, frozen, relays } = lives;
            let Pulls { done, resumed, failed } = pulls;
            format!(
                "seed {seed}: {seconds:.1} s; requests {fates}; machines were killed {killed} times, \
                 stopped {stopped} times, started again {started} times, frozen {frozen} times; the \
                 relay was killed {relays} times; models fetched {done} times, {resumed} of them \
                 after an interruption, and failed {failed:?}; the largest occupies {resident_mib} \
                 MiB; {wrongs} wrong"
            )
        })
    }
}

impl Fates {
    /// Counts one. What is wrong with it, if anything is.
    fn add(&mut self, ask: Ask, fate: Fate, took: Duration) -> Option<String> {
        self.all += 1;
        self.longest = self.longest.max(took);
        match fate {
            Fate::Answered(by) if by == ask.nonce.asked => self.here += 1,
            Fate::Answered(_) => self.elsewhere += 1,
            Fate::HungUp => self.hung_up += 1,
            Fate::EndedByEvent => self.ended_by_event += 1,
            Fate::Cut => self.cut += 1,
            Fate::Gone => self.gone += 1,
            Fate::Refused(status, _) => *self.refused.entry(status).or_default() += 1,
            Fate::Wrong(what) => return Some(what),
        }
        None
    }
}

impl fmt::Display for Fates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, here, elsewhere, hung_up, ended_by_event, cut, gone, refused, longest } =
            self;
        let refusals: Vec<_> =
            refused.iter().map(|(status, count)| format!("{count} with {status}")).collect();
        write!(f, "{all}: {here} answered where they were asked and {elsewhere} by others, ")?;
        write!(
            f,
            "{hung_up} hung up, {ended_by_event} ended by an error, {cut} cut, {gone} lost "
        )?;
        write!(f, "with whom they asked, {} refused ", refused.values().sum::<u64>())?;
        write!(f, "({}), the longest took {:.1} s", refusals.join(", "), longest.as_secs_f64())
    }
}
