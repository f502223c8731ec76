//! Many watchers of many rooms: what each costs the server, and how long an event takes to reach all
//! of its room; with few watchers in each of many rooms, with all of them in one, and with some that
//! never read. Each has a server of its own, and they take turns.
//!
//! An event is the change of a participant: a PUT, which the server writes to its disk before it tells
//! anybody. The time runs from just before that request is sent, and both of its ends are taken in one
//! process: until the event is in a watcher's socket, by the kernel's clock (`event`), and until the
//! watcher has read it (`read`). All watchers are read by one thread, one after the other, so that
//! `read` tells more of the load generator than of the server.

use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};

use super::{
    super::slow_streams::warn_of_file_limit,
    crowd::{Crowd, EACH, SILENT},
};
use crate::{
    http1::Link,
    lab::{self, Lab},
    load::{Plan, slow::Opened, watch::EventTimes},
    proc,
    report::{self, Column, Goal, Line, Report, Section},
    rooms::{self, ENDPOINT, Participant},
    targets::{Target, warren},
};

const PARTICIPANTS: u32 = 10;

const OPENING: Duration = Duration::from_secs(300);

const TELLING: Duration = Duration::from_secs(600);

/// The most that a watcher may cost the server, in KiB.
const MOST_MEMORY: f64 = 30.0;

/// How soon nearly all watchers must get an event, in milliseconds.
const MOST_TIME: f64 = 50.0;

/// How much later that may be because of watchers that do not read.
const MOST_DELAY: f64 = 1.2;

const WATCHERS: Column = Column::new("watchers", 0);
const MEMORY: Column = Column::new("KiB/watcher", 1);
const AFTER: Column = Column::new("KiB after", 1);
const MADE: Column = Column::new("put p50 ms", 3);
const P50: Column = Column::new("event p50 ms", 3);
const P99: Column = Column::new("event p99 ms", 3);
const MAX: Column = Column::new("event max ms", 3);
const READ: Column = Column::new("read p99 ms", 3);
const CPU: Column = Column::new("server µs/event", 2);
const DROPPED: Column = Column::new("dropped", 0);
const RESUMED: Column = Column::new("resumed", 0);

const COLUMNS: [Column; 11] =
    [WATCHERS, MEMORY, AFTER, MADE, P50, P99, MAX, READ, CPU, DROPPED, RESUMED];

pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let Some(program) = lab.launcher.warren() else { return Ok(()) };
    let count = if lab.options.quick { 50 } else { 500 };
    warn_of_file_limit(count * EACH);
    let mut sums: Vec<Sum> = Crowd::ALL.iter().map(|_| Sum::default()).collect();
    for at in lab.turns(sums.len()) {
        sums[at].add(&one_round(Crowd::ALL[at], count, lab, program).await?);
    }
    report.add(section(count, sums))
}

struct Round {
    opened: Opened,
    told: EventTimes,
    /// The server's memory before, with all watchers, and after the events, in bytes.
    memory: Option<[u64; 3]>,
    /// The server's processor time for all events, to all watchers.
    cpu: Duration,
}

async fn one_round(crowd: Crowd, count: u32, lab: &Lab, program: &Path) -> Result<Round> {
    let mut target = warren::launch_alone(program).await?;
    let rooms = furnish(&target, count).await?;
    let before = target.resident("server");
    let plan = crowd.watch(&target, &rooms, lab.options.quick);
    let mut load = lab.start_load(&Plan::Watch(plan))?;
    let opened: Opened = lab::outcome(&mut load, OPENING).await?;
    ensure!(opened.open > 0, "no watcher was let in: {:?}", opened.failures);
    let watched = target.resident("server");
    let begun = proc::cpu(&target.pids())?;
    load.go_on().await?;
    let told: EventTimes = lab::outcome(&mut load, TELLING).await?;
    let cpu = proc::cpu(&target.pids())?.saturating_sub(begun);
    let after = target.resident("server");
    load.stop().await;
    target.check()?;
    target.stop().await;
    let memory = before.zip(watched).zip(after).map(|((a, b), c)| [a, b, c]);
    Ok(Round { opened, told, memory, cpu })
}

async fn furnish(target: &Target, count: u32) -> Result<Vec<String>> {
    let mut link = Link::open(target.addr).await?;
    let mut codes = Vec::new();
    for _ in 0..count {
        let code = rooms::make(&mut link).await?;
        for participant in 0..PARTICIPANTS {
            let id = rooms::id(participant);
            let friend = Participant { id: &id, nickname: "friend", endpoint: ENDPOINT };
            rooms::put(&mut link, &code, &friend).await?;
        }
        codes.push(code);
    }
    Ok(codes)
}

#[derive(Default)]
struct Sum {
    watchers: u64,
    /// KiB for each watcher: the most of all rounds.
    memory: Option<f64>,
    after: Option<f64>,
    told: EventTimes,
    cpu: Duration,
}

impl Sum {
    fn add(&mut self, round: &Round) {
        let (opened, told) = (&round.opened, &round.told);
        self.watchers = opened.open;
        if let Some([before, watched, after]) = round.memory {
            let each = |now: u64| now.saturating_sub(before) as f64 / 1024.0 / opened.open as f64;
            self.memory = Some(self.memory.unwrap_or(0.0).max(each(watched)));
            self.after = Some(self.after.unwrap_or(0.0).max(each(after)));
        }
        self.cpu += round.cpu;
        self.told.add(told);
        self.told.failures.merge(&opened.failures);
    }

    fn line(self, crowd: Crowd) -> Line {
        if self.told.unstamped > 0 {
            let (name, count) = (crowd.name(), self.told.unstamped);
            report::note(&format!("{name}: {count} events are timed by when they were read"));
        }
        let each = self.cpu.as_secs_f64() * 1e6 / self.told.events as f64;
        let silent = |count: u64| (crowd == Crowd::WithSilent).then_some(count as f64);
        let values = vec![
            Some(self.watchers as f64),
            self.memory,
            self.after,
            self.told.made.millis(0.5),
            self.told.arrived.millis(0.5),
            self.told.arrived.millis(0.99),
            self.told.arrived.millis(1.0),
            self.told.read.millis(0.99),
            (crowd != Crowd::WithSilent && self.told.events > 0).then_some(each),
            silent(self.told.dropped),
            silent(self.told.resumed),
        ];
        Line::new(crowd.name(), values, self.told.failures)
    }
}

fn section(rooms: u32, sums: Vec<Sum>) -> Section {
    let watchers = rooms * EACH;
    let lines = Crowd::ALL.into_iter().zip(sums).map(|(crowd, sum)| sum.line(crowd));
    Section {
        name: "rooms/events".into(),
        title: format!(
            "{rooms} rooms with {PARTICIPANTS} participants each, {watchers} watchers: {EACH} in \
             each room, all in one, and {SILENT} of those that never read"
        ),
        columns: COLUMNS.to_vec(),
        lines: lines.collect(),
        bases: const { &[Crowd::Together.name()] },
        goals: goals(),
    }
}

fn goals() -> Vec<Goal> {
    let quick = [Crowd::Spread, Crowd::Together].map(|crowd| {
        let memory = [MEMORY, AFTER].map(|column| column.at_most(crowd.name(), MOST_MEMORY));
        let [watching, after] = memory;
        [watching, after, P99.at_most(crowd.name(), MOST_TIME)]
    });
    let silent = P99.at_most(Crowd::WithSilent.name(), MOST_DELAY);
    let mut goals = quick.concat();
    goals.push(silent.beside(Crowd::Together.name()));
    goals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Times;

    fn told(millis: u64) -> EventTimes {
        let mut times = Times::default();
        times.add(Duration::from_millis(millis));
        EventTimes { arrived: times, events: 100, ..EventTimes::default() }
    }

    fn round(millis: u64, memory: [u64; 3]) -> Round {
        let opened = Opened { open: 10, ..Opened::default() };
        Round { opened, told: told(millis), memory: Some(memory), cpu: Duration::from_micros(500) }
    }

    #[test]
    fn the_most_memory_of_all_rounds_counts() {
        let mut sum = Sum::default();
        sum.add(&round(1, [10_240, 20_480, 30_720]));
        sum.add(&round(3, [10_240, 30_720, 20_480]));
        let line = sum.line(Crowd::Spread);
        assert_eq!(line.values[..3], [Some(10.0), Some(2.0), Some(2.0)]);
        assert_eq!(line.values[8..], [Some(5.0), None, None]);
    }

    #[test]
    fn goals_name_lines_and_columns_that_exist() {
        let sums = Crowd::ALL.map(|_| {
            let mut sum = Sum::default();
            sum.add(&round(1, [0, 1, 2]));
            sum
        });
        let section = section(500, sums.into());
        for goal in &section.goals {
            assert!(section.lines.iter().any(|line| line.target == goal.line));
            assert!(section.columns.iter().any(|column| column.name == goal.column));
        }
        assert_eq!(section.goals.len(), 7);
    }
}
