//! Histories of teams, driven as a shell would drive them.

mod elsewhere;
mod histories;
mod leading;
mod messages;
mod results;
mod two_machines;
mod waiting;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use protocol::workspace::TurnOutcome;

use super::*;

/// A team whose leader and team workers have ids that are easy to read.
const TEAM: Uuid = id(1);
const LEADER: Uuid = id(100);
const ANN: Uuid = id(101);
const BOB: Uuid = id(102);

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// A shell: it stores the effects to keep, then carries out the others.
struct Shell {
    teams: Teams,
    limits: Limits,
    stored: BTreeMap<Key, Record>,
    /// The message that is being delivered to each session.
    offers: BTreeMap<Uuid, Delivery>,
    shown: Vec<Delivery>,
    results: Vec<(Uuid, bool, String)>,
    completed: usize,
    updated: usize,
    killed: Vec<Uuid>,
    answers: BTreeMap<Caller, Result<Answer, TeamError>>,
    now: Instant,
    at: u64,
    next_id: u128,
}

impl Shell {
    fn new(limits: Limits) -> Self {
        Self {
            teams: Teams::new(limits),
            limits,
            stored: BTreeMap::new(),
            offers: BTreeMap::new(),
            shown: Vec::new(),
            results: Vec::new(),
            completed: 0,
            updated: 0,
            killed: Vec::new(),
            answers: BTreeMap::new(),
            now: Instant::now(),
            at: 1_795_000_000_000,
            next_id: 1_000_000,
        }
    }

    /// A team of a leader and two team workers.
    fn with_team(limits: Limits) -> Self {
        let mut shell = Self::new(limits);
        shell.create(TEAM, LEADER).unwrap();
        shell.join(ANN).unwrap();
        shell.join(BOB).unwrap();
        shell
    }

    fn create(&mut self, id: Uuid, leader: Uuid) -> Result<(), TeamError> {
        let new = NewTeam { id, name: "research".to_owned(), leader, project: None };
        let effects = self.teams.create(new, self.at)?;
        self.carry_out(effects);
        Ok(())
    }

    fn join(&mut self, session: Uuid) -> Result<(), TeamError> {
        self.at += 1;
        let effects = self.teams.worker_joined(TEAM, session, self.at)?;
        self.carry_out(effects);
        Ok(())
    }

    fn say(&mut self, from: Uuid, to: Option<Uuid>, text: &str) -> Result<u64, TeamError> {
        self.ask(|teams, at| teams.relay(TEAM, from, to, text, at))
    }

    fn assign(&mut self, worker: Uuid, prompt: &str) -> u64 {
        self.ask(|teams, at| teams.assign(TEAM, worker, prompt, at)).unwrap()
    }

    fn read(&mut self, session: Uuid, since: Option<u64>) -> Page {
        self.ask(|teams, _| teams.inbox(TEAM, session, since)).unwrap()
    }

    /// Delivers the message that a session was offered, and begins a turn with it.
    fn begin(&mut self, session: Uuid, turn: u64) -> u64 {
        let seq = self.deliver(session);
        self.start(session, turn);
        seq
    }

    fn deliver(&mut self, session: Uuid) -> u64 {
        let Delivery { team, seq, .. } = self.offers.remove(&session).unwrap();
        self.act(|teams, _| teams.delivered(team, seq, session).unwrap());
        seq
    }

    fn start(&mut self, session: Uuid, turn: u64) {
        self.act(|teams, at| teams.turn_started(session, turn, at));
    }

    fn end(&mut self, session: Uuid, turn: u64, outcome: TurnOutcome, text: &str) {
        let ended = FinishedTurn { turn, outcome, text: text.to_owned() };
        self.act(|teams, at| teams.turn_ended(session, ended, at));
    }

    fn complete(&mut self, session: Uuid, turn: u64, text: &str) {
        self.end(session, turn, TurnOutcome::Completed, text);
    }

    fn report(&mut self, worker: Uuid, result: &str) -> Result<String, TeamError> {
        let report = Report { success: true, result: result.to_owned() };
        Ok(self.ask(|teams, at| teams.report(TEAM, worker, report, at))?.1.to_string())
    }

    fn gone(&mut self, session: Uuid) {
        self.at += 1;
        self.offers.remove(&session);
        self.act(|teams, at| teams.session_gone(session, at));
    }

    fn wait_for(&mut self, workers: Option<&[Uuid]>, seconds: u64) -> Result<Waiting, TeamError> {
        self.wait(workers, seconds, None)
    }

    fn resume(&mut self, wait: Uuid, seconds: u64) -> Result<Waiting, TeamError> {
        self.wait(None, seconds, Some(wait))
    }

    fn wait(
        &mut self,
        workers: Option<&[Uuid]>,
        seconds: u64,
        resume: Option<Uuid>,
    ) -> Result<Waiting, TeamError> {
        self.next_id += 1;
        self.at += 1;
        let timeout = Duration::from_secs(seconds);
        let (workers, new_id) = (workers.map(<[Uuid]>::to_vec), id(self.next_id));
        let ask = WaitFor { team: TEAM, workers, timeout, resume, new_id };
        let now = self.now;
        self.ask(|teams, at| teams.wait(&ask, now, at))
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.at += seconds * 1000;
        let effects = self.teams.handle_timeout(self.now);
        self.carry_out(effects);
        assert!(self.teams.poll_timeout().is_none_or(|next| next > self.now));
    }

    /// The daemon dies, and starts again from the stored records in their written form.
    fn restart(&mut self) {
        let written = serde_json::to_string(&self.stored.values().collect::<Vec<_>>()).unwrap();
        let records: Vec<Record> = serde_json::from_str(&written).unwrap();
        let (teams, left_out) = Teams::restore(self.limits, records);
        assert_eq!(left_out, []);
        self.teams = teams;
        self.check();
        self.offers.clear();
        self.answers.clear();
        self.act(|teams, at| teams.restarted(at));
    }

    /// Calls the machine with the present time, and carries out the effects.
    fn act(&mut self, call: impl FnOnce(&mut Teams, u64) -> Vec<Effect>) {
        let effects = call(&mut self.teams, self.at);
        self.carry_out(effects);
    }

    /// The same, for a call that has an answer.
    fn ask<T>(&mut self, call: impl FnOnce(&mut Teams, u64) -> Called<T>) -> Result<T, TeamError> {
        let (answer, effects) = call(&mut self.teams, self.at)?;
        self.carry_out(effects);
        Ok(answer)
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let is_kept = |effect: &Effect| matches!(effect, Effect::Keep(_));
        assert!(effects.is_sorted_by_key(|effect| !is_kept(effect)), "{effects:?}");
        for effect in effects {
            self.carry_out_one(effect);
        }
    }

    fn carry_out_one(&mut self, effect: Effect) {
        match effect {
            Effect::Keep(Change::Put(record)) => {
                self.stored.insert(record.key(), record);
            }
            Effect::Keep(Change::Remove(key)) if key.part == Part::Team => {
                self.stored.retain(|other, _| other.team != key.team);
            }
            Effect::Keep(Change::Remove(key)) => {
                self.stored.remove(&key);
            }
            Effect::Show(delivery) => self.shown.push(delivery),
            Effect::Deliver(delivery) => {
                let before = self.offers.insert(delivery.to, delivery);
                assert_eq!(before, None, "a session has one message at a time");
            }
            Effect::WorkerResult { worker, success, result, .. } => {
                self.results.push((worker, success, result.to_string()));
            }
            Effect::WaitAnswered { caller, answer } => {
                let before = self.answers.insert(caller, answer);
                assert!(before.is_none(), "a caller is answered once");
            }
            Effect::Completed(_) => self.completed += 1,
            Effect::Updated(_) => self.updated += 1,
            Effect::Deleted(_) => {}
            Effect::Keep(other) => panic!("{other:?} is the outpost's"),
            Effect::KillSessions(sessions) => self.killed.extend(sessions),
        }
    }

    /// Checks that the stored records equal the machine's.
    fn check(&self) {
        let held = self.teams.records();
        assert!(held.iter().eq(self.stored.values()), "{held:#?}\nstored: {:#?}", self.stored);
    }

    fn pending(&self, worker: Uuid) -> bool {
        let workers = self.teams.get(TEAM).unwrap().workers;
        workers.iter().any(|shown| shown.session == worker && shown.pending)
    }

    fn answer_of(&self, waiting: &Waiting) -> Option<Answer> {
        match waiting {
            Waiting::Answered(answer) => Some(answer.clone()),
            Waiting::Until(caller) => self.answers.get(caller).map(|said| said.clone().unwrap()),
        }
    }
}

fn texts(answer: &Answer) -> Vec<(Uuid, bool, &str)> {
    answer.finished.iter().map(|one| (one.worker, one.success, &*one.result)).collect()
}

#[test]
fn a_team_is_shown_with_its_workers_in_the_order_in_which_they_came() {
    let shell = Shell::with_team(Limits::default());
    let team = shell.teams.get(TEAM).unwrap();
    assert_eq!(shell.teams.list(), std::slice::from_ref(&team));
    assert_eq!((team.leader, team.active, &*team.name), (LEADER, true, "research"));
    let sessions: Vec<_> = team.workers.iter().map(|worker| worker.session).collect();
    assert_eq!(sessions, [ANN, BOB]);
    assert_eq!(shell.teams.team_of(LEADER), Some((TEAM, true)));
    assert_eq!(shell.teams.team_of(ANN), Some((TEAM, false)));
    assert_eq!(shell.teams.team_of(id(9)), None);
    assert_eq!(shell.updated, 3);
    shell.check();
}

#[test]
fn an_id_and_a_session_are_used_once() {
    let mut shell = Shell::with_team(Limits::default());
    assert_eq!(shell.create(TEAM, id(7)), Err(TeamError::Exists(TEAM)));
    let taken = TeamError::AlreadyMember { session: ANN, team: TEAM };
    assert_eq!(shell.create(id(2), ANN), Err(taken.clone()));
    assert_eq!(shell.join(ANN), Err(taken));
}

#[test]
fn a_team_without_its_leader_is_inactive_and_takes_no_workers() {
    let mut shell = Shell::with_team(Limits::default());
    shell.gone(LEADER);
    assert!(!shell.teams.get(TEAM).unwrap().active);
    assert_eq!(shell.join(id(7)), Err(TeamError::Inactive(TEAM)));
    assert_eq!(shell.say(ANN, None, "anybody?"), Err(TeamError::Inactive(TEAM)));
    assert_eq!(shell.teams.assign(TEAM, ANN, "work", 0), Err(TeamError::Inactive(TEAM)));
    assert_eq!(shell.say(ANN, Some(BOB), "we two go on"), Ok(1));
    shell.check();
    shell.restart();
    assert!(!shell.teams.get(TEAM).unwrap().active);
}

#[test]
fn deleting_a_team_kills_its_living_sessions_and_leaves_nothing() {
    let mut shell = Shell::with_team(Limits::default());
    shell.assign(ANN, "work");
    let waiting = shell.wait_for(None, 60).unwrap();
    shell.gone(BOB);
    shell.act(|teams, _| teams.delete(TEAM).unwrap());
    assert_eq!(shell.killed, [LEADER, ANN]);
    let Waiting::Until(caller) = waiting else { panic!("{waiting:?}") };
    assert_eq!(shell.answers[&caller], Err(TeamError::Deleted(TEAM)));
    assert_eq!(shell.teams.poll_timeout(), None);
    assert!(shell.stored.is_empty());
    assert_eq!((shell.teams.held, shell.teams.team_of(ANN)), (0, None));
    assert_eq!(shell.teams.delete(TEAM), Err(TeamError::NoTeam(TEAM)));
    shell.create(TEAM, LEADER).unwrap();
    assert_eq!(shell.read(LEADER, None).messages, []);
}

#[test]
fn one_team_too_many_is_refused() {
    let mut shell = Shell::new(Limits::default());
    for number in 1..=256 {
        shell.create(id(number), id(1000 + number)).unwrap();
    }
    assert_eq!(shell.create(id(999), id(9999)), Err(TeamError::TooManyTeams { max: 256 }));
    shell.act(|teams, _| teams.delete(id(3)).unwrap());
    shell.create(id(999), id(9999)).unwrap();
}

#[test]
fn a_long_name_is_refused() {
    let mut shell = Shell::new(Limits::default());
    let mut new = NewTeam { id: TEAM, name: "n".repeat(257), leader: LEADER, project: None };
    let (what, len, max) = ("name of the team", 257, 256);
    let expected = Err(TeamError::TooLong { what, len, max });
    assert_eq!(shell.teams.create(new.clone(), 0), expected);
    new.name.pop();
    shell.act(|teams, _| teams.create(new, 0).unwrap());
}

#[test]
fn one_worker_too_many_takes_the_place_of_the_one_that_ended_first_or_is_refused() {
    let mut shell = Shell::with_team(Limits::default());
    for number in 200..262 {
        shell.join(id(number)).unwrap();
    }
    let full = TeamError::TooManyWorkers { team: TEAM, max: 64 };
    assert_eq!(shell.join(id(300)), Err(full.clone()));
    shell.assign(BOB, "work");
    shell.gone(BOB);
    shell.gone(ANN);
    shell.join(id(300)).unwrap();
    assert_eq!(shell.teams.team_of(BOB), None);
    assert_eq!(shell.teams.team_of(ANN), Some((TEAM, false)));
    shell.check();
    shell.join(id(301)).unwrap();
    assert_eq!(shell.join(id(302)), Err(full));
    shell.check();
    shell.restart();
}

#[test]
fn records_that_belong_to_nothing_are_named_and_left_out() {
    let mut shell = Shell::with_team(Limits::default());
    shell.say(LEADER, None, "hello").unwrap();
    let mut records = shell.teams.records();
    records.retain(|record| record.key() != Key::member(TEAM, LEADER));
    let (teams, left_out) = Teams::restore(Limits::default(), records.clone());
    assert_eq!((teams.list(), left_out), (vec![], vec![Key::team(TEAM)]));
    records.retain(|record| record.key() != Key::team(TEAM));
    let keys: Vec<_> = records.iter().map(Record::key).collect();
    let (teams, left_out) = Teams::restore(Limits::default(), records);
    assert_eq!((teams.list(), left_out), (vec![], keys));
}

#[test]
fn a_key_is_shown_in_the_same_way_for_ever() {
    let zeros = "00000000-0000-0000-0000-000000000065";
    assert_eq!(Part::Team.to_string(), "team");
    assert_eq!(Part::Member(ANN).to_string(), format!("member/{zeros}"));
    assert_eq!(Part::Message(7).to_string(), "message/00000000000000000007");
    let result = format!("result/{zeros}/00000000000000000007");
    assert_eq!(Part::Result(ANN, 7).to_string(), result);
    assert_eq!(Part::Wait(ANN).to_string(), format!("wait/{zeros}"));
}
