//! A soak program from its arguments to its exit code.

use std::{num::ParseIntError, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Parser};

/// The arguments of every soak.
#[derive(Debug, Clone, Args)]
pub struct Trial {
    /// The warren binary to be tested
    #[arg(long)]
    pub binary: PathBuf,
    /// What the faults follow from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug)]
pub struct Outcome {
    pub account: String,
    /// The faults, the first of them.
    pub wrong: Vec<String>,
}

/// Reads the arguments, soaks, and prints the account. The exit code is 1 when something was wrong, and 2 when the arguments
/// were.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]
pub async fn run<S: Parser>(soak: impl AsyncFnOnce(S) -> Outcome) -> ExitCode {
    let Outcome { account, wrong } = soak(S::parse()).await;
    println!("{account}");
    for wrong in &wrong {
        eprintln!("wrong: {wrong}");
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reads a count; 0 is taken for 1.
pub fn at_least_one(text: &str) -> Result<usize, ParseIntError> {
    text.parse().map(|count: usize| count.max(1))
}

/// Reads a time in minutes; 0 is taken for 1.
pub fn minutes(text: &str) -> Result<Duration, ParseIntError> {
    at_least_one(text).map(|minutes| Duration::from_secs(minutes as u64 * 60))
}
