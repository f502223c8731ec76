//! Runs of several servers of a fleet in simulated time, with real machines and dispatchers, and with every
//! fault that a transport, a process and the place of the records can make: `cargo xtask sim --fleet`.
//!
//! - `fleet_sim SEED`: one run, line by line
//! - `fleet_sim --seeds N [--from S]`: many runs on all cores
//! - `fleet_sim --without RULE SEED`, `--seeds N`: the same without a rule; the seeds that notice that

#![expect(clippy::print_stdout, reason = "a tool for the terminal")]

mod exchange;
mod net;
mod plan;
mod run;
mod server;
mod serving;
mod world;

use std::{
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use net::{Account, Mutant};
use plan::Plan;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    let wanted = match texts[..] {
        [seed] => number(seed).map(|seed| one((seed, Mutant::default()))),
        ["--without", rule, seed] => number(seed).zip(without(rule)).map(one),
        ["--seeds", seeds] => number(seeds).map(|seeds| many(0, seeds)),
        ["--without", rule, "--seeds", seeds] => number(seeds).zip(without(rule)).map(noticed),
        ["--seeds", seeds, "--from", from] => {
            number(seeds).zip(number(from)).map(|(seeds, from)| many(from, seeds))
        }
        _ => None,
    };
    wanted.unwrap_or_else(|| {
        println!("usage: fleet_sim [--without RULE] SEED | fleet_sim [--without RULE] --seeds N [--from S]");
        ExitCode::FAILURE
    })
}

fn one((seed, mutant): (u64, Mutant)) -> ExitCode {
    let plan = Plan::new(seed);
    let (result, lines) = run::traced(&plan, mutant);
    lines.iter().for_each(|line| println!("{line}"));
    let servers = plan.workers.len();
    match result {
        Ok(()) => {
            println!("seed {seed}: no fault in {} steps of {servers} servers", plan.steps.len());
            ExitCode::SUCCESS
        }
        Err(fault) => {
            println!("seed {seed}: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn without(rule: &str) -> Option<Mutant> {
    let mut mutant = Mutant::default();
    match rule {
        "leases" => mutant.rules.leases = false,
        "margin" => mutant.rules.margin = false,
        "recall" => mutant.rules.recall = false,
        "gaps" => mutant.rules.gaps = false,
        "compare-and-set" => mutant.compare_and_set = false,
        _ => return None,
    }
    Some(mutant)
}

fn noticed((seeds, mutant): (u64, Mutant)) -> ExitCode {
    for seed in 0..seeds {
        if let Err(fault) = run::run(&Plan::new(seed), mutant) {
            println!("seed {seed}: {fault}");
        }
    }
    ExitCode::SUCCESS
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
            match run::run(&Plan::new(seed), Mutant::default()) {
                Ok(account) => sum.0.add(account),
                Err(fault) => sum.1.push((seed, fault)),
            }
        }
    };
    let mut total = (Account::default(), Vec::new());
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

fn report(seeds: u64, account: &Account, faults: &mut [(u64, String)], seconds: f64) -> ExitCode {
    faults.sort();
    for (seed, fault) in faults.iter().take(10) {
        println!("seed {seed}: {fault}");
    }
    println!("{seeds} seeds in {seconds:.1} s: {account:?}");
    if faults.is_empty() {
        println!("no fault");
        return ExitCode::SUCCESS;
    }
    println!("{} seeds failed; `cargo xtask sim --fleet SEED` shows one of them", faults.len());
    ExitCode::FAILURE
}
