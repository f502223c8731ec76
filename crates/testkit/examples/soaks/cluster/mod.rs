//! A workspace of five members: links that are cut and held, members that are stopped and killed. All
//! members become equal, nothing that was acknowledged is lost, nothing that was deleted comes again,
//! every line that is typed at another member arrives once and in order, and no process is left.
//!
//! `soaks cluster --binary PATH [--minutes 1] [--members 5] [--talks 8] [--seed 1]`
//!
//! It ends with one line of account; the exit code is 1 when something was wrong. With
//! `SOAK_TRACE=1` every fault is printed when it begins.
//!
//! - `members`: the members, and clients of them; `ways`: the proxies between them
//! - `chaos`: faults of links and members
//! - `changes`: sessions and projects that come and go; `ledger`: what was acknowledged of that
//! - `talks`: clients that type into sessions of other members
//! - `settle`: what has to be true in the end
//! - `account`: what became of all

mod account;
mod changes;
mod chaos;
mod ledger;
mod members;
mod settle;
mod talks;
mod ways;

use std::{fmt, sync::Arc, time::Duration};

use clap::Args;
use testkit::{
    Random,
    lab::{self, Crew, Outcome},
};
use tokio::time::Instant;

use crate::cluster::{account::Report, ledger::Ledger, members::Members};

/// How many links may have a fault at once.
const LINKS: usize = 2;
/// How many tasks change sessions and projects.
const CHANGERS: usize = 4;

#[derive(Debug, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    trial: lab::Trial,
    #[arg(long, default_value_t = 5, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..=16))]
    members: usize,
    #[arg(long, default_value_t = 8, value_parser = lab::at_least_one)]
    talks: usize,
    /// How long, in minutes
    #[arg(long = "minutes", default_value = "1", value_parser = lab::minutes)]
    time: Duration,
}

pub(crate) async fn soak(settings: Settings) -> Outcome {
    let report = Report::default();
    let (members, ledger) =
        (Arc::new(Members::start(&settings).await), Arc::new(Ledger::default()));
    let begun = Instant::now();
    run(&settings, &members, &ledger, &report).await;
    settle::settle(&members, &ledger, &report).await;
    settle::end(&members, &ledger, &report).await;
    report.check(|counts| counts.too_few());
    let (seed, took, wrongs) =
        (settings.trial.seed, begun.elapsed().as_secs_f64(), report.wrongs());
    let counts = report.tally(|counts| counts.to_string());
    report.outcome(format!("seed {seed}: {took:.1} s; {counts}; {wrongs} wrong"))
}

/// Everything at once, until the time is over and all clients have read to the end.
async fn run(settings: &Settings, members: &Arc<Members>, ledger: &Arc<Ledger>, report: &Report) {
    let (mut random, until) = (Random::new(settings.trial.seed), Instant::now() + settings.time);
    let (mut chaos, mut clients) = (Crew::of("a fault"), Crew::of("a client"));
    let own = || (Arc::clone(members), report.clone());
    for _ in 0..CHANGERS {
        let ((to, report), ledger) = (own(), Arc::clone(ledger));
        clients.spawn(changes::change(to, ledger, random.fork(), report, until));
    }
    for _ in 0..settings.talks {
        let ((to, report), ledger) = (own(), Arc::clone(ledger));
        clients.spawn(talks::talk(to, ledger, random.fork(), report, until));
    }
    for _ in 0..LINKS {
        let (to, report) = own();
        chaos.spawn(chaos::links(to, random.fork(), report, until));
    }
    let ((to, reports), of) = (own(), Arc::clone(ledger));
    chaos.spawn(chaos::machines(to, of, random.fork(), reports, until));
    chaos.join(report).await;
    members.ways.heal_all();
    trace(format_args!("quiet"));
    clients.join(report).await;
}

/// Prints what happens, if that is asked for.
#[expect(clippy::print_stderr, reason = "a tool for the terminal")]
fn trace(what: fmt::Arguments<'_>) {
    if std::env::var_os("SOAK_TRACE").is_some() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        eprintln!("{:.3} {what}", now.unwrap_or_default().as_secs_f64());
    }
}
