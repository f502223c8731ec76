//! The long tests: each runs for minutes, from a fixed seed, and is one command.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::{command, workspace::Workspace};

/// Memory that a fuzz target may use before it counts as a finding.
const FUZZ_MEMORY_MIB: u32 = 256;
/// How long all fuzz targets run together when nothing is said.
const FUZZ_MINUTES: u32 = 10;
/// How long rooms are tested when nothing is said.
const ROOMS_MINUTES: u32 = 1;
/// How long a workspace cluster is tested when nothing is said.
const CLUSTER_MINUTES: u32 = 1;
/// How long several servers that act as one are tested when nothing is said.
const FLEET_MINUTES: u32 = 1;
/// How long the mesh is tested when nothing is said.
const MESH_MINUTES: u32 = 2;

/// How long lost workers are tested with answers that outlive them when nothing is said.
const RESUME_MINUTES: u32 = 1;
/// How long the workspace is tested when nothing is said.
const WORKSPACE_MINUTES: u32 = 2;

/// The soak to run, and for how long.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Which one
    name: Soak,
    /// How long to run; without it, for a fixed amount of work
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_080))]
    minutes: Option<u32>,
    /// For `mesh`: instead, how large a file is fetched whose pull is interrupted, in GiB
    #[arg(long, value_name = "N")]
    pull_gib: Option<f64>,
    /// For `engines` and `resume`: the program that serves models, with the flags of llama.cpp's server, instead of a
    /// fake one
    #[arg(long, value_name = "PROGRAM", alias = "with", requires = "model")]
    engine: Option<PathBuf>,
    /// For `engines` and `resume`: the file of the model
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// For `resume`: a file with a prompt for the model on each line
    #[arg(long, value_name = "FILE", requires = "model")]
    prompts: Option<PathBuf>,
    /// For `mesh`: how often
    #[arg(long, value_name = "K", default_value_t = 3)]
    interrupts: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum Soak {
    /// Five members of a workspace whose links are cut and held, and that are stopped and killed
    Cluster,
    /// Generated histories against the dispatcher and its reference model
    Dispatch,
    /// A worker with twenty models and memory for three, whose engines, worker and server are killed
    Engines,
    /// Three servers that act as one, over NATS and PostgreSQL, all of which are killed and stopped
    Fleet,
    /// Every fuzz target in turn
    Fuzz,
    /// Ten thousand requests through every API: what the ledger holds, and what the backend counted
    Ledger,
    /// Ten machines of a mesh that are killed, stopped and started again while they answer each other
    Mesh,
    /// Streams whose model servers and workers are killed and drained, and that others go on with
    Resume,
    /// Rooms whose participants join, leave and die, with clients that hang up and slow watchers
    Rooms,
    /// Requests over four workers, of which one is killed every second
    Stress,
    /// Terminals and agents whose clients come, go, lag and are cut off, and whose daemon is killed
    Workspace,
}

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    match arguments.name {
        Soak::Cluster => cluster(workspace, arguments.minutes.unwrap_or(CLUSTER_MINUTES)),
        Soak::Dispatch => dispatch(workspace, arguments.minutes),
        Soak::Engines => engines(workspace, arguments),
        Soak::Fleet => fleet(workspace, arguments.minutes.unwrap_or(FLEET_MINUTES)),
        Soak::Fuzz => fuzz(workspace, arguments.minutes.unwrap_or(FUZZ_MINUTES)),
        Soak::Ledger => ledger(workspace),
        Soak::Mesh => mesh(workspace, arguments),
        Soak::Resume => resume(workspace, arguments),
        Soak::Rooms => rooms(workspace, arguments.minutes.unwrap_or(ROOMS_MINUTES)),
        Soak::Stress => stress(workspace, arguments.minutes),
        Soak::Workspace => sessions(workspace, arguments.minutes.unwrap_or(WORKSPACE_MINUTES)),
    }
}

fn dispatch(workspace: &Workspace, minutes: Option<u32>) -> Result<()> {
    let mut soak = program(workspace, "soak")?;
    soak.args(histories(minutes));
    command::run(soak)
}

/// How many histories the dispatcher's soak generates.
fn histories(minutes: Option<u32>) -> Vec<String> {
    match minutes {
        Some(minutes) => vec!["--minutes".to_owned(), minutes.to_string()],
        // The time is only so that it ends on any machine.
        None => ["--seeds", "10000", "--minutes", "60"].map(str::to_owned).into(),
    }
}

fn stress(workspace: &Workspace, minutes: Option<u32>) -> Result<()> {
    let mut stress = driver(workspace, "stress")?;
    stress.args(["--requests", "20000", "--workers", "4"]);
    if let Some(minutes) = minutes {
        stress.args(["--minutes", &minutes.to_string()]);
    }
    command::run(stress)
}

fn ledger(workspace: &Workspace) -> Result<()> {
    let mut ledger = driver(workspace, "ledger")?;
    ledger.args(["--requests", "10000"]);
    command::run(ledger)
}

fn mesh(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut mesh = driver(workspace, "mesh")?;
    mesh.args(["--clients", "32"]);
    match arguments.pull_gib {
        Some(gib) => {
            let interrupts = arguments.interrupts.to_string();
            mesh.args(["--pull-gib", &gib.to_string(), "--interrupts", &interrupts])
        }
        None => mesh.args(["--minutes", &arguments.minutes.unwrap_or(MESH_MINUTES).to_string()]),
    };
    command::run(mesh)
}

fn rooms(workspace: &Workspace, minutes: u32) -> Result<()> {
    let mut rooms = driver(workspace, "rooms")?;
    rooms.args(["--participants", "50", "--clients", "64", "--minutes", &minutes.to_string()]);
    command::run(rooms)
}

fn cluster(workspace: &Workspace, minutes: u32) -> Result<()> {
    let mut cluster = driver(workspace, "cluster")?;
    cluster.args(["--minutes", &minutes.to_string()]);
    command::run(cluster)
}

fn fleet(workspace: &Workspace, minutes: u32) -> Result<()> {
    let mut fleet = driver(workspace, "fleet")?;
    fleet.args(["--minutes", &minutes.to_string()]);
    command::run(fleet)
}

fn engines(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut soak = driver(workspace, "engines")?;
    let fake = examples(workspace)?.join("fake_engine");
    soak.arg("--engine").arg(arguments.engine.as_ref().unwrap_or(&fake));
    if let Some(model) = &arguments.model {
        soak.arg("--model").arg(model);
    }
    // As many requests as take about a minute, for each minute, with a fake engine.
    let requests = 2000 * arguments.minutes.unwrap_or(1);
    soak.args(["--requests", &requests.to_string()]);
    command::run(soak)
}

/// A thousand losses, or as many as there are in some minutes.
fn resume(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut soak = driver(workspace, "resume")?;
    if let (Some(engine), Some(model)) = (&arguments.engine, &arguments.model) {
        soak.arg("--with").arg(engine).arg("--model").arg(model);
    }
    if let Some(prompts) = &arguments.prompts {
        soak.arg("--prompts").arg(prompts);
    }
    if arguments.engine.is_none() || arguments.minutes.is_some() {
        let minutes = arguments.minutes.unwrap_or(RESUME_MINUTES).to_string();
        soak.args(["--minutes", &minutes]);
    }
    command::run(soak)
}

fn sessions(workspace: &Workspace, minutes: u32) -> Result<()> {
    let mut soak = driver(workspace, "workspace")?;
    soak.args(["--minutes", &minutes.to_string(), "--agents"]);
    soak.arg(examples(workspace)?.join("fake-agent"));
    command::run(soak)
}

/// The program that drives `warren` in this soak.
fn driver(workspace: &Workspace, name: &str) -> Result<Command> {
    let mut driver = program(workspace, "soaks")?;
    driver.args([name, "--seed", "1", "--binary"]).arg(workspace.binary()?);
    Ok(driver)
}

/// Builds `warren`, all soak programs and what else is asked for together: built alone, a package would
/// give the libraries that they share other features, and cargo would compile these again.
pub(crate) fn build(workspace: &Workspace, more: &[&str]) -> Result<()> {
    let mut build = workspace.cargo(&["build", "--release", "--bin", "warren", "--examples"]);
    for package in ["warren", "testkit", "workspace", "dispatch"] {
        build.args(["--package", package]);
    }
    build.args(more);
    command::run(build)
}

fn program(workspace: &Workspace, name: &str) -> Result<Command> {
    build(workspace, &[])?;
    let mut program = Command::new(examples(workspace)?.join(name));
    program.current_dir(workspace.root());
    Ok(program)
}

/// Where the examples of all packages are once they are built.
fn examples(workspace: &Workspace) -> Result<PathBuf> {
    Ok(workspace.binary()?.with_file_name("examples"))
}

fn fuzz(workspace: &Workspace, minutes: u32) -> Result<()> {
    let targets = fuzz_targets(&workspace.read("fuzz/Cargo.toml")?);
    ensure!(!targets.is_empty(), "fuzz/Cargo.toml names no targets");
    let seconds = (minutes as usize * 60 / targets.len()).max(1);
    // All at once: `run` would build one target after the other, each on one core.
    command::run(cargo_fuzz(workspace, "build")?)?;
    for target in &targets {
        command::run(fuzz_one(workspace, target, seconds)?)
            .with_context(|| format!("the fuzz target {target} found something"))?;
    }
    println!("fuzz: {} targets, {seconds} s each, nothing found", targets.len());
    Ok(())
}

fn fuzz_one(workspace: &Workspace, target: &str, seconds: usize) -> Result<Command> {
    let mut fuzz = cargo_fuzz(workspace, "run")?;
    fuzz.args([target, "--", "-seed=1", "-print_final_stats=1", "-verbosity=0"]);
    fuzz.arg(format!("-max_total_time={seconds}"));
    fuzz.arg(format!("-rss_limit_mb={FUZZ_MEMORY_MIB}"));
    Ok(fuzz)
}

fn cargo_fuzz(workspace: &Workspace, verb: &str) -> Result<Command> {
    let mut fuzz = workspace.cargo(&["fuzz", verb, "--sanitizer", "none"]);
    fuzz.env("PATH", path_with_tools(workspace.root())?);
    Ok(fuzz)
}

/// `.ci/run` puts the tools that a machine lacks into `target/tools`.
fn path_with_tools(root: &Path) -> Result<std::ffi::OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = std::iter::once(root.join("target/tools/bin")).chain(env::split_paths(&path));
    Ok(env::join_paths(places)?)
}

/// The names of the binaries in the manifest of `fuzz/`.
pub(crate) fn fuzz_targets(manifest: &str) -> Vec<String> {
    let sections = manifest.split("[[bin]]").skip(1);
    let name = |section: &str| {
        let line = section.lines().find_map(|line| line.trim().strip_prefix("name"))?;
        Some(line.trim_matches([' ', '=', '"']).to_owned())
    };
    sections.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_binaries_of_the_manifest() {
        let manifest = "[package]\nname = \"fuzz\"\n\n[[bin]]\nname = \"relay\"\npath = \"a.rs\"\n\n[[bin]]\npath = \"b.rs\"\nname = \"peek\"\n";
        assert_eq!(fuzz_targets(manifest), ["relay", "peek"]);
        assert!(fuzz_targets("[package]\nname = \"fuzz\"\n").is_empty());
    }

    #[test]
    fn a_soak_without_minutes_does_a_fixed_amount_of_work() {
        assert_eq!(histories(None), ["--seeds", "10000", "--minutes", "60"]);
        assert_eq!(histories(Some(2)), ["--minutes", "2"]);
    }

    #[test]
    fn own_tools_come_first() {
        let path = path_with_tools(Path::new("/house")).unwrap();
        assert!(path.to_string_lossy().starts_with("/house/target/tools/bin:"));
    }
}
