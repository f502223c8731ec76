//! The simulators: of a workspace cluster, and of several servers as one.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::{command, workspace::Workspace};

/// One run to read, or many to trust.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The seed of one run: what happens in it, line by line; made short if it breaks a rule
    #[arg(value_name = "SEED", required_unless_present = "seeds", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// How many runs, on all cores, with those that failed once
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The first of their seeds
    #[arg(long, value_name = "S", default_value_t = 0)]
    from: u64,
    /// Runs of several servers as one, instead of a workspace cluster
    #[arg(long)]
    fleet: bool,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    // Only this package: it has few dependencies, and a build of everything would take minutes.
    let (package, example) =
        if arguments.fleet { ("fleet", "fleet_sim") } else { ("replica", "sim") };
    command::run(workspace.cargo(&[
        "build",
        "--release",
        "--package",
        package,
        "--example",
        example,
    ]))?;
    let mut sim = Command::new(workspace.binary()?.with_file_name("examples").join(example));
    sim.current_dir(workspace.root()).args(options(arguments));
    command::run(sim)
}

fn options(arguments: &Arguments) -> Vec<String> {
    match (arguments.seed, arguments.seeds) {
        (Some(seed), _) => vec![seed.to_string()],
        (None, seeds) => {
            let seeds = seeds.unwrap_or_default().to_string();
            ["--seeds".to_owned(), seeds, "--from".to_owned(), arguments.from.to_string()].into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_or_many() {
        let one = Arguments { seed: Some(7), seeds: None, from: 0, fleet: false };
        assert_eq!(options(&one), ["7"]);
        let many = Arguments { seed: None, seeds: Some(9), from: 3, fleet: true };
        assert_eq!(options(&many), ["--seeds", "9", "--from", "3"]);
    }
}
