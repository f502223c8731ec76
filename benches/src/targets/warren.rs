//! A Warren server, and a Warren worker that lends it the backend: two processes, or one, started as
//! their users start them.

use std::{
    ffi::OsStr,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tempfile::TempDir;
use tokio::process::Command;

use super::{Target, eventually, names_model};
use crate::{child::Process, cli::Kind, http1, report};

pub(super) const LISTENS: Duration = Duration::from_secs(20);

/// How long the worker may take to connect and tell its models.
pub(super) const CONNECTS: Duration = Duration::from_secs(30);

/// How long the server may take for a question about itself.
pub(super) const ANSWERS: Duration = Duration::from_secs(5);

/// Jobs the worker takes at once: more than the suite ever sends.
pub(super) const MAX_CONCURRENT: &str = "20000";

/// The binary to measure: the one given, or one built now with `--release`.
pub(crate) async fn find(given: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(path) => path.canonicalize().with_context(|| format!("no {}", path.display())),
        None => build().await,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accounting<'a> {
    /// The default: a ledger, and no key on this machine.
    Usual,
    None,
    /// Each request has a key with limits of every kind, and is in the ledger.
    Whole,
    /// The same in the database of this URL.
    Shared(&'a str),
}

/// Starts both on `backend` and waits until the model can be asked for.
pub(crate) async fn launch(
    program: &Path,
    backend: SocketAddr,
    accounting: Accounting<'_>,
) -> Result<Target> {
    let dir = directory()?;
    let secret = secret();
    let key = match accounting {
        Accounting::Whole => Some(make_key(program, dir.path(), None).await?),
        Accounting::Shared(url) => Some(make_key(program, dir.path(), Some(url)).await?),
        Accounting::Usual | Accounting::None => None,
    };
    let mut server = serve(program, dir.path(), &secret, accounting)?;
    let addr = server.listening(LISTENS).await?;
    let mut worker = lend(program, dir.path(), addr, backend, &secret)?;
    // On this machine the health lists the models for every caller, with keys or without.
    let knows = async || worker.check().is_err() || names_model(addr, "/health").await;
    let up = eventually(CONNECTS, knows).await;
    server.check()?;
    worker.check()?;
    ensure!(up, "the server has no worker: {} | {}", server.last_words(), worker.last_words());
    let name = match accounting {
        Accounting::Usual => Kind::Warren.name(),
        Accounting::None => "without",
        Accounting::Whole => "with",
        Accounting::Shared(_) => "shared",
    };
    let mut target = Target::new(name, addr, vec![server, worker], Some(dir));
    target.parts[1].name = "worker";
    Ok(Target { key, ..target })
}

/// Starts `warren up` on `backend` and waits until the model can be asked for.
pub(crate) async fn launch_up(program: &Path, backend: SocketAddr) -> Result<Target> {
    let dir = directory()?;
    let mut command = clean(program, dir.path());
    command.args(["up", "--listen", "127.0.0.1:0", "--max-concurrent", MAX_CONCURRENT]);
    command.args(["--backend", &format!("http://{backend}")]);
    command.arg("--data-dir").arg(dir.path().join("data"));
    let mut process = Process::spawn(command, "warren-up", dir.path())?;
    let addr = process.listening(LISTENS).await?;
    let knows = async || process.check().is_err() || names_model(addr, "/health").await;
    let up = eventually(CONNECTS, knows).await;
    process.check()?;
    ensure!(up, "it has no backend: {}", process.last_words());
    Ok(Target::new(Kind::Up.name(), addr, vec![process], Some(dir)))
}

pub(crate) async fn launch_alone(program: &Path) -> Result<Target> {
    let dir = directory()?;
    let mut server = serve(program, dir.path(), &secret(), Accounting::Usual)?;
    let addr = server.listening(LISTENS).await?;
    Ok(Target::new(Kind::Warren.name(), addr, vec![server], Some(dir)))
}

/// A server alone that asks for a key.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) target: Target,
    /// The secret of its workers.
    pub(crate) secret: String,
    /// The administrator's token.
    pub(crate) admin: String,
    /// Where it runs.
    pub(crate) dir: PathBuf,
}

pub(crate) async fn launch_keyed(program: &Path) -> Result<Keyed> {
    let (dir, secret) = (directory()?, secret());
    let mut server = serve(program, dir.path(), &secret, Accounting::Whole)?;
    let addr = server.listening(LISTENS).await?;
    let path = dir.path().to_owned();
    let admin = std::fs::read_to_string(path.join("data/admin.token"))?.trim().to_owned();
    let target = Target::new(Kind::Warren.name(), addr, vec![server], Some(dir));
    Ok(Keyed { target, secret, admin, dir: path })
}

/// A server alone, as it is right after its start.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    /// From starting the program to its first answer on `/health`.
    pub(crate) ready: Duration,
    _dir: TempDir,
}

/// Starts a server with an empty data directory and takes the time.
pub(crate) async fn start_server(program: &Path) -> Result<Started> {
    let dir = directory()?;
    let begun = tokio::time::Instant::now();
    let mut process = serve(program, dir.path(), &secret(), Accounting::Usual)?;
    let addr = process.listening(LISTENS).await?;
    http1::get(addr, "/health", ANSWERS).await?;
    Ok(Started { process, ready: begun.elapsed(), _dir: dir })
}

/// A key whose limits are never reached, made before the server starts.
async fn make_key(program: &Path, dir: &Path, database: Option<&str>) -> Result<String> {
    let most = "1000000000";
    let mut command = clean(program, dir);
    command.args(["key", "create", "--name", "bench", "--scope", "inference", "--json"]);
    command.args(["--rpm", most, "--tpm", "1000000000000", "--concurrent", most]);
    command.args(["--budget-tokens", "1000000000000/day"]);
    command.arg("--data-dir").arg(dir.join("data"));
    command.envs(database.map(|url| ("WARREN_DATABASE", url)));
    let output = command.kill_on_drop(true).output().await.context("start warren key create")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "no key could be made: {words}");
    let made: CreatedKey = serde_json::from_slice(&output.stdout).context("an odd key")?;
    Ok(made.key)
}

#[derive(Deserialize)]
struct CreatedKey {
    key: String,
}

fn serve(program: &Path, dir: &Path, secret: &str, accounting: Accounting<'_>) -> Result<Process> {
    let mut command = clean(program, dir);
    command.args(["serve", "--listen", "127.0.0.1:0", "--worker-secret", secret]);
    command.arg("--data-dir").arg(dir.join("data"));
    match accounting {
        Accounting::Usual => {}
        Accounting::None => drop(command.arg("--ledger=false")),
        Accounting::Whole => drop(command.arg("--require-key")),
        Accounting::Shared(url) => {
            command.arg("--require-key").env("WARREN_DATABASE", url);
        }
    }
    Process::spawn(command, "warren-serve", dir)
}

/// Starts a worker that lends `backend` to a server.
pub(super) fn lend(
    program: &Path,
    dir: &Path,
    server: SocketAddr,
    backend: SocketAddr,
    secret: &str,
) -> Result<Process> {
    lend_slots(program, dir, (server, backend), secret, MAX_CONCURRENT)
}

/// The same with another number of slots.
pub(super) fn lend_slots(
    program: &Path,
    dir: &Path,
    (server, backend): (SocketAddr, SocketAddr),
    secret: &str,
    slots: &str,
) -> Result<Process> {
    let mut command = clean(program, dir);
    command.args(["worker", "--secret", secret, "--max-concurrent", slots]);
    command.args(["--server", &format!("http://{server}")]);
    command.args(["--backend", &format!("http://{backend}")]);
    let mut worker = Process::spawn(command, "warren-worker", dir)?;
    worker.discard_output();
    Ok(worker)
}

/// No settings but ours: none from the environment, no file in the home or working directory.
pub(super) fn clean(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", dir).env("PATH", "/usr/bin:/bin");
    // No log line for each request: nginx writes none either.
    command.env("WARREN_LOG", "warn");
    command
}

pub(super) fn directory() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("benches-warren-").tempdir()?)
}

/// For one run on loopback; it need not be unguessable.
fn secret() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("bench-secret-{}-{}", std::process::id(), since.as_nanos())
}

async fn build() -> Result<PathBuf> {
    report::note("building warren");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--package", "warren", "--bin", "warren"]);
    command.args(["--message-format", "json-render-diagnostics"]).current_dir(root);
    let output = command.kill_on_drop(true).stderr(Stdio::inherit()).stdin(Stdio::null());
    let output = output.output().await.context("start cargo")?;
    ensure!(output.status.success(), "warren does not build; --targets direct,nginx goes without");
    executable(&output.stdout).context("cargo built no warren")
}

/// The executable in cargo's messages; most of them are about libraries.
fn executable(messages: &[u8]) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
    }
    let lines = messages.split(|&byte| byte == b'\n');
    let mut paths =
        lines.filter_map(|line| serde_json::from_slice::<Message>(line).ok()?.executable);
    paths.rfind(|path| path.file_stem() == Some(OsStr::new("warren")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_among_cargos_messages() {
        let messages = b"{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
            {\"reason\":\"compiler-artifact\",\"executable\":\"/t/dist/warren\"}\n\
            {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages), Some("/t/dist/warren".into()));
        assert_eq!(executable(b"nothing"), None);
    }

    #[tokio::test]
    async fn a_missing_binary_is_said_by_name() {
        let error = find(Some(Path::new("/nowhere/warren"))).await.unwrap_err();
        assert!(error.to_string().contains("/nowhere/warren"));
    }
}
