//! Runs generated histories against the plain model for a given time: `cargo run --release -p
//! dispatch --example soak -- --seeds 10000 --minutes 10`.
//!
//! Stops at the number of seeds or of minutes, whichever comes first, prints a summary line, and
//! fails with the first seed whose history breaks a rule. Seeds count from 0, or from `--from N`, so that a
//! run can be repeated.

#[path = "../tests/history/mod.rs"]
mod history;

use std::{
    io::{self, Write},
    ops::Range,
    process::ExitCode,
    time::{Duration, Instant},
};

use history::Account;

fn main() -> ExitCode {
    let outcome = wanted().and_then(|(seeds, time)| soak(seeds, time));
    let (line, code) = match outcome {
        Ok(line) => (line, ExitCode::SUCCESS),
        Err(line) => (line, ExitCode::FAILURE),
    };
    // The output may be closed; the exit code holds the result.
    let _ = writeln!(io::stdout(), "{line}");
    code
}

fn wanted() -> Result<(Range<u64>, Duration), String> {
    let (mut from, mut seeds, mut minutes) = (0, u64::MAX, 1.0_f64);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let wrong = || format!("usage: soak --from N --seeds N --minutes M; not {name} {value}");
        match name.as_str() {
            "--from" => from = value.parse().map_err(|_| wrong())?,
            "--seeds" => seeds = value.parse().map_err(|_| wrong())?,
            "--minutes" => minutes = value.parse().map_err(|_| wrong())?,
            _ => return Err(wrong()),
        }
    }
    let time = Duration::try_from_secs_f64(minutes * 60.0).map_err(|error| error.to_string())?;
    Ok((from..from.saturating_add(seeds), time))
}

fn soak(seeds: Range<u64>, time: Duration) -> Result<String, String> {
    let (start, mut total, mut run) = (Instant::now(), Account::default(), seeds.start);
    while seeds.contains(&run) && start.elapsed() < time {
        let count = 200 + (run as usize % 10) * 200;
        let account = history::run(&history::steps(run, count))
            .map_err(|rule| format!("seed {run} ({count} steps): {rule}"))?;
        total.steps += account.steps;
        total.jobs += account.jobs;
        total.assigned += account.assigned;
        total.requeued += account.requeued;
        total.fell_back += account.fell_back;
        total.moved += account.moved;
        total.unserved += account.unserved;
        total.overloaded += account.overloaded;
        total.revoked += account.revoked;
        total.narrowed += account.narrowed;
        total.tried += account.tried;
        total.ceased += account.ceased;
        total.unready += account.unready;
        total.woken += account.woken;
        total.kept += account.kept;
        total.lent += account.lent;
        total.not_lent += account.not_lent;
        total.broken_off += account.broken_off;
        total.resumed += account.resumed;
        run += 1;
    }
    let seconds = start.elapsed().as_secs();
    let run = run - seeds.start;
    Ok(format!("{run} histories without a fault in {seconds} s: {total:?}"))
}
