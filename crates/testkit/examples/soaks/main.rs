//! All soaks of the whole program, by name: each starts real processes, disturbs them, and holds them to what must be true.
//!
//! One program, since each that is optimised as a whole takes a minute to link.

#![expect(clippy::expect_used, reason = "a tool for the terminal, whose failures are its results")]

mod cluster;
mod engines;
mod fleet;
mod ledger;
mod mesh;
mod resume;
mod rooms;
mod stress;
mod tokens;
mod workspace;

use std::process::ExitCode;

use clap::Parser;
use testkit::lab;

/// A soak, with its own settings.
#[derive(Debug, Parser)]
enum Soak {
    Cluster(cluster::Settings),
    Engines(engines::Settings),
    Fleet(fleet::Settings),
    Ledger(ledger::Settings),
    Mesh(mesh::Settings),
    Resume(resume::Settings),
    Rooms(rooms::Settings),
    Stress(stress::Settings),
    Workspace(workspace::Settings),
}

#[tokio::main]
async fn main() -> ExitCode {
    lab::run(async |soak| match soak {
        Soak::Cluster(settings) => cluster::soak(settings).await,
        Soak::Engines(settings) => engines::soak(settings).await,
        Soak::Fleet(settings) => fleet::soak(settings).await,
        Soak::Ledger(settings) => ledger::soak(settings).await,
        Soak::Mesh(settings) => mesh::soak(settings).await,
        Soak::Resume(settings) => resume::soak(settings).await,
        Soak::Rooms(settings) => rooms::soak(settings).await,
        Soak::Stress(settings) => stress::soak(settings).await,
        Soak::Workspace(settings) => workspace::soak(settings).await,
    })
    .await
}
