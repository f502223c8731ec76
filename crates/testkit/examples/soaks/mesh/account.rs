//! The tally of a run.

use std::{collections::BTreeMap, fmt, time::Duration};

use testkit::lab;

use crate::mesh::judge::{RequestEnd, SentRequest};

#[derive(Debug, Default)]
struct RequestCounts {
    all: u64,
    /// By the machine that was asked, and by others.
    here: u64,
    elsewhere: u64,
    hung_up: u64,
    ended_by_event: u64,
    cut: u64,
    gone: u64,
    refused: BTreeMap<u16, u64>,
    longest: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct ChurnCounts {
    pub(crate) started: u64,
    pub(crate) killed: u64,
    pub(crate) stopped: u64,
    pub(crate) frozen: u64,
    pub(crate) relays: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Pulls {
    pub(crate) done: u64,
    /// Of these, the pulls during which the machine had ended.
    pub(crate) resumed: u64,
    /// By why they failed.
    pub(crate) failed: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    fates: RequestCounts,
    pub(crate) lives: ChurnCounts,
    pub(crate) pulls: Pulls,
}

pub(crate) type Report = lab::Report<Tally>;

impl Tally {
    /// Counts a request. Returns what is wrong with its end.
    pub(crate) fn request(
        &mut self,
        ask: SentRequest,
        fate: RequestEnd,
        took: Duration,
    ) -> Option<String> {
        self.fates.add(ask, fate, took)
    }

    /// A run in which hardly anything was answered, or hardly anything by others, or in which no machine was killed, has
    /// tested nothing.
    pub(crate) fn too_few(&self, clients: usize) -> Option<String> {
        let Self { fates, lives, .. } = self;
        let clients = clients as u64;
        let few = fates.here < clients || fates.elsewhere < clients || lives.killed == 0;
        few.then(|| format!("too little has happened to tell anything: {fates}; {lives:?}"))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fates, lives, pulls } = self;
        let ChurnCounts { started, killed, stopped, frozen, relays } = lives;
        let Pulls { done, resumed, failed } = pulls;
        write!(
            f,
            "requests {fates}; machines were killed {killed} times, stopped {stopped} times, started again {started} \
             times, frozen {frozen} times; the relay was killed {relays} times; models fetched {done} times, {resumed} of \
             them after an interruption, and failed {failed:?}"
        )
    }
}

impl RequestCounts {
    /// Counts one. Returns what is wrong with it.
    fn add(&mut self, ask: SentRequest, fate: RequestEnd, took: Duration) -> Option<String> {
        self.all += 1;
        self.longest = self.longest.max(took);
        match fate {
            RequestEnd::Answered(by) if by == ask.nonce.at => self.here += 1,
            RequestEnd::Answered(_) => self.elsewhere += 1,
            RequestEnd::HungUp => self.hung_up += 1,
            RequestEnd::EndedByEvent => self.ended_by_event += 1,
            RequestEnd::Cut => self.cut += 1,
            RequestEnd::Gone => self.gone += 1,
            RequestEnd::Refused(status, _) => *self.refused.entry(status).or_default() += 1,
            RequestEnd::Wrong(what) => return Some(what),
        }
        None
    }
}

impl fmt::Display for RequestCounts {
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
