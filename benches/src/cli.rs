//! The options of the suite.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::programs::flood;

/// Measures a backend directly, behind nginx and bare relays, and through Warren, in one run.
#[derive(Debug, Parser)]
#[command(name = "benches", args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    /// Which of the suite's processes this one is; without it, the suite itself.
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// The processes the suite starts from its own executable. Those that wait end when their
/// stdin ends.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// The mock model server
    #[command(hide = true)]
    Backend,
    /// The load generator
    #[command(hide = true)]
    Load {
        /// What to do, as JSON
        plan: String,
    },
    /// Count what requests cost a server and a worker, for `cargo xtask budget`
    #[command(hide = true)]
    Count {
        /// The warren that is counted
        warren: PathBuf,
        /// Where what callgrind writes is kept
        dir: PathBuf,
    },
    /// The front of the pair of relays without features
    #[command(hide = true)]
    BareFront,
    /// Its back
    #[command(hide = true)]
    BareBack {
        /// Where the front waits for it
        front: SocketAddr,
        /// The address of the backend
        backend: SocketAddr,
    },
    /// The mock model server as a model engine
    #[command(hide = true)]
    Engine {
        /// The file of its model, which must be there and is not read
        #[arg(long)]
        model: PathBuf,
        /// Where it listens, on loopback
        #[arg(long)]
        port: u16,
    },
    /// A model server of the replay of conversations
    #[command(hide = true)]
    ReplayEngine {
        /// How many seconds of the load pass in a second
        #[arg(long)]
        pace: f64,
    },
    /// The bare WebSocket echo
    #[command(hide = true)]
    Echo,
    /// The receiving end of a plain copy
    #[command(hide = true)]
    Receive {
        /// The file that is written
        to: PathBuf,
    },
    /// The sending end of a plain copy
    #[command(hide = true)]
    Send {
        /// The file that is read
        from: PathBuf,
        /// Where it goes
        to: SocketAddr,
    },
    /// A stock peer that has a model
    #[command(hide = true)]
    Give {
        /// The file of the model
        from: PathBuf,
        /// What it is called
        model: String,
    },
    /// A stock peer that fetches a model
    #[command(hide = true)]
    Fetch {
        /// The peer that has it
        peer: SocketAddr,
        /// What it is called
        model: String,
        /// The file that is written
        to: PathBuf,
    },
    /// A program that writes much to its terminal
    #[command(hide = true)]
    Flood {
        /// What it writes
        kind: flood::Kind,
        /// How much, in megabytes
        megabytes: u64,
        /// How much in a second, in megabytes, if not as fast as can be
        #[arg(long)]
        pace: Option<f64>,
    },
    /// A program that gives back each key
    #[command(hide = true)]
    Keys,
    /// An agent that answers at once
    #[command(hide = true)]
    Agent {
        /// The arguments of an agent
        #[arg(last = true)]
        arguments: Vec<String>,
    },
}

/// The choice of measurements, and how long each takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Short rounds, fewer streams: a look, not a measurement
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measured seconds of each row on each target, over all rounds (default 6; quick 1)
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub(crate) seconds: Option<f64>,
    /// Rounds the seconds are split into (default 6; quick 1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: Option<u32>,
    /// Only scenarios whose name contains PATTERN; several, separated by commas
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Only these targets
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) targets: Vec<Kind>,
    /// Concurrent slow streams (default 10000; quick 1000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) streams: Option<u32>,
    /// The warren binary to measure; without it, one is built with --release
    #[arg(long, value_name = "PATH")]
    pub(crate) warren: Option<PathBuf>,
    /// Write all numbers to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// List the names of the scenarios and leave
    #[arg(long)]
    pub(crate) list: bool,
}

impl Options {
    /// Whether a scenario of this name was asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| name.contains(pattern.as_str()))
    }

    /// Whether this target was asked for.
    pub(crate) fn targets(&self, kind: Kind) -> bool {
        self.targets.is_empty() || self.targets.contains(&kind)
    }

    /// Rounds each row is split into.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 1 } else { 6 })
    }

    /// Measured seconds of one round of one row on one target.
    pub(crate) fn round_seconds(&self) -> f64 {
        let total = self.seconds.unwrap_or(if self.quick { 1.0 } else { 6.0 });
        total / f64::from(self.rounds())
    }

    /// Slow streams open at once.
    pub(crate) fn streams(&self) -> u32 {
        self.streams.unwrap_or(if self.quick { 1_000 } else { 10_000 })
    }
}

/// The kinds of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The backend itself.
    Direct,
    /// The backend behind nginx as a plain reverse proxy.
    Nginx,
    /// The backend behind a pair of relays without features.
    Bare,
    /// The backend lent by a Warren worker to a Warren server.
    Warren,
    /// The backend lent by `warren up`, server and worker in one process.
    Up,
}

impl Kind {
    /// All of them, in the order they are shown.
    pub(crate) const ALL: [Self; 5] =
        [Self::Direct, Self::Nginx, Self::Bare, Self::Warren, Self::Up];

    /// Its name in tables and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Bare => "bare",
            Self::Warren => "warren",
            Self::Up => "up",
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.05..=3600.0).contains(&value) => Ok(value),
        _ => Err("between 0.05 and 3600 seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_of_a_row_are_split_into_its_rounds() {
        let cli = Cli::parse_from(["benches", "--seconds", "9", "--rounds", "3"]);
        assert!((cli.options.round_seconds() - 3.0).abs() < f64::EPSILON);
        assert!(Cli::try_parse_from(["benches", "--seconds", "0"]).is_err());
    }

    #[test]
    fn only_takes_several_patterns() {
        let options = Cli::parse_from(["benches", "--only", "plain/1,cancel"]).options;
        assert!(options.wants("plain/1/1KiB") && options.wants("cancel"));
        assert!(!options.wants("stream/1/1KiB"));
    }

    #[test]
    fn the_suites_own_processes_are_subcommands() {
        assert!(matches!(Cli::parse_from(["benches", "backend"]).role, Some(Role::Backend)));
    }
}
