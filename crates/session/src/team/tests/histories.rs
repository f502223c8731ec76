//! Generated histories, checked against a plain model of the messages, turns and answers.

use std::collections::BTreeSet;

use proptest::{collection::vec, option, prelude::*};

use super::*;

const SESSIONS: u8 = 6;
const STOPPED: &str = "the daemon stopped before this was finished";
const ENDED: &str = "the session ended before it gave a result";
const NOTHING: &str = "the session ended without a result";

#[derive(Debug, Clone)]
enum Step {
    Join(u8),
    Say { from: u8, to: Option<u8> },
    Assign(u8),
    Read { who: u8, since: Option<u64> },
    Begin(u8),
    NotTaken(u8),
    End(u8, TurnOutcome),
    EndAgain(u8),
    Report { who: u8, again: bool },
    Gone(u8),
    Wait { workers: Option<BTreeSet<u8>>, seconds: u64 },
    Resume { which: usize, seconds: u64 },
    Stop(usize),
    Pass(u64),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..SESSIONS;
    let seconds = || prop_oneof![Just(0), 1..100u64];
    let outcome = prop_oneof![
        Just(TurnOutcome::Completed),
        Just(TurnOutcome::Failed),
        Just(TurnOutcome::Interrupted)
    ];
    let workers = option::of(proptest::collection::btree_set(1..SESSIONS, 0..4));
    prop_oneof![
        2 => who().prop_map(Step::Join),
        6 => (who(), option::of(who())).prop_map(|(from, to)| Step::Say { from, to }),
        4 => who().prop_map(Step::Assign),
        3 => (who(), option::of(0..40u64)).prop_map(|(who, since)| Step::Read { who, since }),
        8 => who().prop_map(Step::Begin),
        2 => who().prop_map(Step::NotTaken),
        7 => (who(), outcome).prop_map(|(who, outcome)| Step::End(who, outcome)),
        1 => who().prop_map(Step::EndAgain),
        4 => (who(), any::<bool>()).prop_map(|(who, again)| Step::Report { who, again }),
        1 => who().prop_map(Step::Gone),
        4 => (workers, seconds()).prop_map(|(workers, seconds)| Step::Wait { workers, seconds }),
        3 => (any::<usize>(), seconds()).prop_map(|(which, seconds)| Step::Resume { which, seconds }),
        1 => any::<usize>().prop_map(Step::Stop),
        3 => (0..60u64).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ]
}

/// A session in the plain model.
#[derive(Debug, Default, Clone)]
struct Plain {
    gone: bool,
    /// The messages that were delivered to the session, and those of them since the end of its last
    /// turn.
    handed: Vec<u64>,
    unsettled: Vec<u64>,
    read_below: u64,
    turn: u64,
    open: bool,
    reported: bool,
    /// The results that were announced.
    results: Vec<(bool, String)>,
}

struct Model {
    shell: Shell,
    sessions: BTreeMap<Uuid, Plain>,
    /// The acknowledged messages. The text of each is its seq.
    said: Vec<(u64, Uuid, Vec<Uuid>)>,
    given: Vec<(Uuid, bool, String)>,
    /// The callers that wait or have waited, and the team workers that they wait for.
    waiting: Vec<(Caller, BTreeSet<Uuid>)>,
    /// The waits whose ids were reported: their team workers, and their complete answers.
    waits: BTreeMap<Uuid, (BTreeSet<Uuid>, Option<Answer>)>,
    stopped: BTreeSet<Caller>,
    next: u64,
}

fn session(number: u8) -> Uuid {
    id(100 + u128::from(number))
}

impl Model {
    fn new(limits: Limits) -> Self {
        let mut shell = Shell::new(limits);
        shell.create(TEAM, LEADER).unwrap();
        let mut model = Self {
            shell,
            sessions: [(LEADER, Plain::default())].into(),
            said: Vec::new(),
            given: Vec::new(),
            waiting: Vec::new(),
            waits: BTreeMap::new(),
            stopped: BTreeSet::new(),
            next: 0,
        };
        (1..4).for_each(|number| model.join(session(number)));
        model
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Join(who) => self.join(session(who)),
            Step::Say { from, to } => self.say(session(from), to.map(session)),
            Step::Assign(who) => self.assign(session(who)),
            Step::Read { who, since } => self.read(session(who), since),
            Step::Begin(who) => self.begin(session(who)),
            Step::NotTaken(who) => self.not_taken(session(who)),
            Step::End(who, outcome) => self.end(session(who), outcome),
            Step::EndAgain(who) => self.end_again(session(who)),
            Step::Report { who, again } => self.report(session(who), again),
            Step::Gone(who) => self.gone(session(who)),
            Step::Wait { workers, seconds } => self.wait(workers, seconds),
            Step::Resume { which, seconds } => self.resume(which, seconds),
            Step::Stop(which) => self.stop(which),
            Step::Pass(seconds) => self.shell.pass(seconds),
            Step::Restart => self.restart(),
        }
        self.note_answers();
        assert_eq!(self.shell.results, self.given);
        self.shell.check();
    }

    fn lives(&self, who: Uuid) -> bool {
        self.sessions.get(&who).is_some_and(|plain| !plain.gone)
    }

    fn is_worker(&self, who: Uuid) -> bool {
        who != LEADER && self.sessions.contains_key(&who)
    }

    fn plain(&mut self, who: Uuid) -> &mut Plain {
        self.sessions.get_mut(&who).unwrap()
    }

    /// The messages to a session.
    fn to(&self, who: Uuid) -> Vec<u64> {
        let its = self.said.iter().filter(|(_, _, to)| to.contains(&who));
        its.map(|(seq, ..)| *seq).collect()
    }

    fn pending(&self, who: Uuid) -> bool {
        let plain = &self.sessions[&who];
        let works = plain.open && !plain.reported;
        !plain.gone && (works || self.still_waits(who).next().is_some())
    }

    /// The messages to a session that were not delivered. Messages that it has read may have been
    /// forgotten.
    fn still_waits(&self, who: Uuid) -> impl Iterator<Item = u64> {
        let plain = self.sessions[&who].clone();
        let is_stored = |seq: &u64| self.shell.stored.contains_key(&Key::message(TEAM, *seq));
        let waits = move |seq: &u64| {
            !plain.handed.contains(seq) && (*seq >= plain.read_below || is_stored(seq))
        };
        self.to(who).into_iter().filter(waits)
    }

    fn join(&mut self, who: Uuid) {
        let allowed = self.lives(LEADER) && !self.sessions.contains_key(&who);
        assert_eq!(self.shell.join(who).is_ok(), allowed);
        if allowed {
            self.sessions.insert(who, Plain::default());
        }
    }

    fn say(&mut self, from: Uuid, to: Option<Uuid>) {
        let others = self.sessions.keys().copied().filter(|who| *who != LEADER);
        let addressees: Vec<_> = match to {
            Some(to) => vec![to],
            None if from == LEADER => others.filter(|who| self.lives(*who)).collect(),
            None => vec![LEADER],
        };
        let allowed = self.lives(from)
            && !addressees.is_empty()
            && addressees.iter().all(|to| self.lives(*to) && *to != from);
        let text = (self.said.len() + 1).to_string();
        let said = self.shell.say(from, to, &text);
        self.was_said(from, addressees, allowed, said);
    }

    fn assign(&mut self, who: Uuid) {
        let allowed = self.is_worker(who) && self.lives(who) && self.lives(LEADER);
        let text = (self.said.len() + 1).to_string();
        let said = self.shell.ask(|teams, at| teams.assign(TEAM, who, text, at));
        self.was_said(LEADER, vec![who], allowed, said);
    }

    fn was_said(&mut self, from: Uuid, to: Vec<Uuid>, allowed: bool, said: Result<u64, TeamError>) {
        match said {
            Ok(seq) => {
                assert!(allowed);
                assert_eq!(seq, self.said.len() as u64 + 1);
                self.said.push((seq, from, to));
            }
            Err(TeamError::InboxFull { .. }) => assert!(self.shell.limits.messages < 100),
            Err(why) => assert!(!allowed, "{why}"),
        }
    }

    /// Reads on from a place, page by page. Expects exactly the messages that follow; if the inbox
    /// is small, at least those that were neither read nor delivered.
    fn read(&mut self, who: Uuid, since: Option<u64>) {
        if !self.sessions.contains_key(&who) {
            return;
        }
        let (mut read, mut next, mut more) = (Vec::new(), since, true);
        while more {
            let page = self.shell.read(who, next);
            assert!(page.messages.iter().all(|one| *one.payload == *one.seq.to_string()));
            read.extend(page.messages.iter().map(|message| message.seq));
            (next, more) = (Some(page.next_seq), page.more);
            if more {
                self.note_read(who, next);
            }
        }
        self.note_read(who, since);
        let mut follows = self.to(who);
        follows.retain(|seq| *seq >= since.unwrap_or(0));
        if self.shell.limits.messages < 100 {
            assert!(read.is_sorted() && read.iter().all(|seq| follows.contains(seq)));
            let plain = self.sessions[&who].clone();
            follows.retain(|seq| !plain.handed.contains(seq) && *seq >= plain.read_below);
            let missing = follows.iter().find(|seq| !plain.gone && !read.contains(seq));
            assert_eq!(missing, None);
        } else {
            assert_eq!(read, follows);
        }
    }

    fn note_read(&mut self, who: Uuid, since: Option<u64>) {
        let below = since.unwrap_or(0).min(self.said.len() as u64 + 1);
        let plain = self.plain(who);
        plain.read_below = plain.read_below.max(below);
    }

    /// An idle agent begins a turn, with the message that it was offered or of its own accord.
    fn begin(&mut self, who: Uuid) {
        if !self.lives(who) || self.sessions[&who].open {
            return;
        }
        self.hand_over(who);
        let plain = self.plain(who);
        (plain.turn, plain.open, plain.reported) = (plain.turn + 1, true, false);
        let turn = plain.turn;
        self.shell.start(who, turn);
    }

    fn hand_over(&mut self, who: Uuid) {
        if self.shell.offers.contains_key(&who) {
            let first = self.still_waits(who).next();
            let seq = self.shell.deliver(who);
            assert!(first.is_none_or(|first| first == seq), "{first:?} is ahead of {seq}");
            assert!(!self.sessions[&who].handed.contains(&seq));
            self.plain(who).handed.push(seq);
            self.plain(who).unsettled.push(seq);
        }
    }

    fn not_taken(&mut self, who: Uuid) {
        if let Some(offer) = self.shell.offers.remove(&who) {
            self.shell.teams.not_taken(TEAM, offer.seq, who);
        }
    }

    fn end(&mut self, who: Uuid, outcome: TurnOutcome) {
        if !self.lives(who) || !self.sessions[&who].open {
            return;
        }
        let plain = self.plain(who);
        plain.open = false;
        plain.unsettled.clear();
        let (turn, reported) = (plain.turn, plain.reported);
        let words = format!("{who} {turn}");
        if !reported {
            self.tell(who, outcome == TurnOutcome::Completed, words.clone());
        }
        self.shell.end(who, turn, outcome, &words);
    }

    fn end_again(&mut self, who: Uuid) {
        if self.sessions.get(&who).is_some_and(|plain| plain.turn > 0 && !plain.open) {
            let turn = self.sessions[&who].turn;
            self.shell.end(who, turn, TurnOutcome::Failed, "again");
        }
    }

    fn report(&mut self, who: Uuid, again: bool) {
        if !self.is_worker(who) {
            assert!(self.shell.report(who, "mine").is_err());
            return;
        }
        self.next += 1;
        let newest = self.sessions[&who].results.last().cloned();
        let fresh = format!("report {}", self.next);
        let text = newest.clone().filter(|_| again).map_or(fresh, |(_, text)| text);
        let plain = &self.sessions[&who];
        let counts = match plain.turn {
            _ if plain.gone => false,
            0 => newest != Some((true, text.clone())),
            _ => plain.open && !plain.reported,
        };
        if counts {
            self.plain(who).reported = true;
            self.tell(who, true, text.clone());
        }
        let newest = self.sessions[&who].results.last();
        assert_eq!(self.shell.report(who, &text).ok(), newest.map(|(_, text)| text.clone()));
    }

    fn gone(&mut self, who: Uuid) {
        // Other tests cover teams whose leader has ended.
        if who == LEADER || !self.lives(who) {
            return;
        }
        let pending = self.pending(who);
        self.plain(who).gone = true;
        self.plain(who).open = false;
        if pending {
            self.tell(who, false, ENDED.to_owned());
        }
        self.shell.gone(who);
    }

    fn tell(&mut self, who: Uuid, success: bool, text: String) {
        if self.is_worker(who) {
            self.plain(who).results.push((success, text.clone()));
            self.given.push((who, success, text));
        }
    }

    fn restart(&mut self) {
        let workers: Vec<_> = self.sessions.keys().copied().collect();
        for who in workers {
            let plain = self.plain(who);
            let failed = plain.open && !plain.reported;
            plain.open = false;
            let lost = std::mem::take(&mut plain.unsettled);
            if who == LEADER {
                // A worker's turn has failed, and that is announced; a leader's turn begins once
                // more.
                plain.handed.retain(|seq| !lost.contains(seq));
            }
            if failed {
                self.tell(who, false, STOPPED.to_owned());
            }
        }
        self.waiting.clear();
        self.shell.restart();
    }

    fn wait(&mut self, workers: Option<BTreeSet<u8>>, seconds: u64) {
        let named = workers.map(|workers| workers.into_iter().map(session).collect::<Vec<_>>());
        let all = self.sessions.keys().copied().filter(|who| *who != LEADER);
        let with_work = |who: &Uuid| self.pending(*who) || !self.sessions[who].results.is_empty();
        let set = named.clone().unwrap_or_else(|| all.filter(with_work).collect());
        let set: BTreeSet<_> = set.into_iter().collect();
        let pending = set.iter().filter(|who| self.is_worker(**who) && self.is_awaited(**who));
        let pending: Vec<_> = pending.copied().collect();
        match self.shell.wait_for(named.as_deref(), seconds) {
            Ok(Waiting::Answered(answer)) => {
                assert_eq!(answer.pending, pending);
                self.is_newest(&answer);
                self.look_at(&set, &answer);
            }
            Ok(Waiting::Until(caller)) => {
                assert!(!pending.is_empty());
                self.waiting.push((caller, set));
            }
            Err(TeamError::TooManyWaits { .. }) => assert!(self.shell.limits.waits < 100),
            Err(why) => assert!(set.iter().any(|who| !self.is_worker(*who)), "{why}"),
        }
    }

    fn is_awaited(&self, who: Uuid) -> bool {
        let plain = &self.sessions[&who];
        !plain.gone && (self.pending(who) || plain.results.is_empty())
    }

    fn is_newest(&self, answer: &Answer) {
        for (worker, success, text) in texts(answer) {
            let nothing = (false, NOTHING.to_owned());
            let newest = self.sessions[&worker].results.last().unwrap_or(&nothing);
            assert_eq!((success, text), (newest.0, &*newest.1));
        }
    }

    fn resume(&mut self, which: usize, seconds: u64) {
        let Some(wait) = self.waits.keys().nth(which % self.waits.len().max(1)).copied() else {
            return;
        };
        let (set, _) = self.waits[&wait].clone();
        match self.shell.resume(wait, seconds) {
            Ok(Waiting::Answered(answer)) => self.look_at(&set, &answer),
            Ok(Waiting::Until(caller)) => self.waiting.push((caller, set.clone())),
            Err(TeamError::UnknownWait(_)) => {
                assert!(self.shell.limits.waits < 100);
                self.waits.remove(&wait);
            }
            Err(TeamError::TooManyCallers { .. }) => {}
            Err(why) => panic!("{why}"),
        }
        // A wait is answered completely as soon as none of its team workers is awaited, and stays
        // so.
        let whole = self.waits.get(&wait).is_some_and(|(_, whole)| whole.is_some());
        let awaited = set.iter().any(|who| self.is_awaited(*who));
        assert!(whole || awaited || !self.waits.contains_key(&wait));
    }

    fn stop(&mut self, which: usize) {
        if self.waiting.is_empty() {
            return;
        }
        let (caller, _) = self.waiting.swap_remove(which % self.waiting.len());
        self.shell.act(|teams, _| teams.stop_waiting(caller));
        self.stopped.insert(caller);
    }

    fn note_answers(&mut self) {
        let answers = std::mem::take(&mut self.shell.answers);
        for (caller, answer) in answers {
            assert!(!self.stopped.contains(&caller));
            let at = self.waiting.iter().position(|(other, _)| *other == caller).unwrap();
            let (_, set) = self.waiting.swap_remove(at);
            self.look_at(&set, &answer.unwrap());
        }
        if self.waiting.is_empty() {
            // After a restart, the numbers of callers begin again.
            self.stopped.clear();
        }
    }

    /// Checks that an answer covers all awaited team workers, and holds only announced results.
    fn look_at(&mut self, set: &BTreeSet<Uuid>, answer: &Answer) {
        let finished = answer.finished.iter().map(|one| one.worker);
        let all: BTreeSet<_> = finished.chain(answer.pending.iter().copied()).collect();
        assert_eq!(&all, set);
        assert_eq!(answer.timed_out(), !answer.pending.is_empty());
        for (worker, success, text) in texts(answer) {
            let was_given = self.sessions[&worker].results.contains(&(success, text.to_owned()));
            assert!(was_given || (text, success) == (NOTHING, false), "{text}");
        }
        if let Some(id) = answer.wait_id {
            assert_eq!(self.waits.entry(id).or_insert((set.clone(), None)).1, None);
        }
        self.same_as_before(set, answer);
    }

    /// Checks that a caller that resumes an answered wait gets the same answer.
    fn same_as_before(&mut self, set: &BTreeSet<Uuid>, answer: &Answer) {
        if answer.timed_out() {
            return;
        }
        let known: Vec<_> = self.waits.iter().filter(|(_, (of, _))| of == set).collect();
        let known: Vec<Uuid> = known.into_iter().map(|(id, _)| *id).collect();
        for id in known {
            if let Ok(Waiting::Answered(again)) = self.shell.resume(id, 0)
                && !again.timed_out()
            {
                let (_, before) = self.waits.get_mut(&id).unwrap();
                assert_eq!(before.get_or_insert_with(|| again.clone()), &again);
            }
        }
    }

    /// At the end, all sessions take their messages, and all time-outs pass.
    fn settle(&mut self) {
        let living: Vec<_> = self.sessions.keys().copied().filter(|who| self.lives(*who)).collect();
        for who in living {
            self.end(who, TurnOutcome::Completed);
            self.shell.act(|teams, _| teams.note_room(who));
            while self.shell.offers.contains_key(&who) {
                self.hand_over(who);
            }
            assert_eq!(self.still_waits(who).next(), None);
        }
        self.shell.pass(200);
        self.note_answers();
        assert!(self.waiting.is_empty(), "a wait has not ended");
        assert_eq!(self.shell.teams.poll_timeout(), None);
        self.shell.check();
    }
}

fn run(limits: Limits, steps: Vec<Step>) {
    let mut model = Model::new(limits);
    for step in steps {
        model.take(step);
    }
    model.settle();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_message_arrives_exactly_once_and_every_wait_ends(steps in vec(step(), 0..120)) {
        run(Limits { page_messages: 3, ..Limits::default() }, steps);
    }

    #[test]
    fn at_the_bounds_only_what_nobody_needs_is_forgotten(steps in vec(step(), 0..120)) {
        let small = Limits { messages: 5, waits: 2, callers: 2, page_messages: 2, ..Limits::default() };
        run(small, steps);
    }
}
