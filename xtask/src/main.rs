//! The project's own tools, called as `cargo xtask COMMAND`.
//!
//! `layers` and `tidy` are also tests of this crate, so that `cargo test` says when the house is
//! out of order.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]

mod budget;
mod circles;
mod clients;
mod command;
mod dist;
mod layers;
mod sim;
mod soak;
mod systems;
mod table;
mod tidy;
mod workspace;

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    let workspace = workspace::Workspace::here();
    match task {
        Task::Layers => layers::run(&workspace)
            .and_then(|()| systems::run(&workspace))
            .and_then(|()| circles::run(&workspace)),
        Task::Tidy => tidy::run(&workspace),
        Task::Budget(arguments) => budget::run(&workspace, &arguments),
        Task::Soak(arguments) => soak::run(&workspace, &arguments),
        Task::Sim(arguments) => sim::run(&workspace, &arguments),
        Task::Clients(arguments) => clients::run(&workspace, &arguments),
        Task::Dist(arguments) => dist::run(&workspace, &arguments),
        Task::Ci => command::run(Command::new(workspace.root().join(".ci/run"))),
    }
}

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own tools")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check the crates' edges against the table of ARCHITECTURE.md
    Layers,
    /// Check the rules of the house that no compiler knows
    Tidy,
    /// Count what a request costs in instructions and allocations, and compare with benches/budget.toml
    Budget(budget::Arguments),
    /// Run one of the long tests, from a fixed seed
    Soak(soak::Arguments),
    /// Run the simulator of the workspace cluster: one seed, or many
    Sim(sim::Arguments),
    /// Test with real clients and a real model server, installed under target/clients
    Clients(clients::Arguments),
    /// Build what is handed out into dist/: an archive that runs on old systems, its SHA-256, install.sh
    Dist(dist::Arguments),
    /// Run everything that continuous integration runs
    Ci,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
