//! Runs of several members in simulated time, with every fault that a network, a disk, a clock and
//! an operator can make, against a plain model: `cargo xtask sim`.
//!
//! - `sim SEED`: one run; if it breaks a rule, made as short as possible and printed line by line
//! - `sim --seeds N [--from S]`: many runs on all cores, and the seeds that failed once

#![expect(clippy::print_stdout, reason = "a tool for the terminal")]

mod acts;
mod disk;
mod known;
mod model;
mod network;
mod plan;
mod run;
mod shrink;
mod trace;
mod world;

use std::{
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use plan::Plan;
use world::{Account, Mutant};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match wanted(&arguments) {
        Some(Wanted::One(seed)) => one(seed),
        Some(Wanted::Many { from, seeds }) => many(from, seeds),
        None => {
            println!("usage: sim SEED | sim --seeds N [--from S]");
            ExitCode::FAILURE
        }
    }
}

enum Wanted {
    One(u64),
    Many { from: u64, seeds: u64 },
}

fn wanted(arguments: &[String]) -> Option<Wanted> {
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match texts[..] {
        [seed] => Some(Wanted::One(seed.parse().ok()?)),
        ["--seeds", seeds] => Some(Wanted::Many { from: 0, seeds: seeds.parse().ok()? }),
        ["--seeds", seeds, "--from", from] => {
            Some(Wanted::Many { from: from.parse().ok()?, seeds: seeds.parse().ok()? })
        }
        _ => None,
    }
}

fn one(seed: u64) -> ExitCode {
    let plan = Plan::new(seed);
    let Err(fault) = run::run(&plan, Mutant::default()) else {
        let (_, lines) = run::traced(&plan, Mutant::default());
        lines.iter().for_each(|line| println!("{line}"));
        println!("seed {seed}: no fault in {} steps", plan.steps.len());
        return ExitCode::SUCCESS;
    };
    println!("seed {seed}: {fault}");
    let short = shrink::shrunk(&plan, Mutant::default(), &fault);
    let (result, lines) = run::traced(&short, Mutant::default());
    lines.iter().for_each(|line| println!("{line}"));
    println!(
        "seed {seed}, {} of {} steps, {} members: {result:?}",
        short.steps.len(),
        plan.steps.len(),
        short.members
    );
    ExitCode::FAILURE
}

fn many(from: u64, seeds: u64) -> ExitCode {
    let (start, next) = (Instant::now(), AtomicU64::new(from));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut sum = (Account::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= from + seeds {
                return sum;
            }
            run_one(seed, &mut sum);
        }
    };
    let mut total = (Account::default(), Vec::new());
    known::SEEDS.iter().for_each(|seed| run_one(*seed, &mut total));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let (account, faults) =
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            total.0.add(account);
            total.1.extend(faults);
        }
    });
    report(seeds, &total.0, &mut total.1, start.elapsed().as_secs_f64())
}

fn run_one(seed: u64, sum: &mut (Account, Vec<(u64, String)>)) {
    match run::run(&Plan::new(seed), Mutant::default()) {
        Ok(account) => sum.0.add(account),
        Err(fault) => sum.1.push((seed, fault)),
    }
}

fn report(seeds: u64, account: &Account, faults: &mut [(u64, String)], seconds: f64) -> ExitCode {
    faults.sort();
    for (seed, fault) in faults.iter().take(10) {
        println!("seed {seed}: {fault}");
    }
    println!("{seeds} seeds and {} known ones in {seconds:.1} s: {account:?}", known::SEEDS.len());
    if faults.is_empty() {
        println!("no fault");
        return ExitCode::SUCCESS;
    }
    println!("{} seeds failed; `cargo xtask sim SEED` tells one of them", faults.len());
    ExitCode::FAILURE
}
