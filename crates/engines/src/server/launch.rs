//! Starts a server, and waits until it answers.

use std::{
    net::{Ipv4Addr, TcpListener},
    sync::Arc,
    time::Duration,
};

use backend::{BackendConfig, HttpBackend};
use process::{Child, ChildIo, Command, Handle, Stdio, User, clean_environment, listening_ports};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until, timeout},
};
use uuid::Uuid;

use super::{Server, Start, command::expand, failure::Failure, flow, health};

/// How often a server is started, at most, while other programs take its port before it listens.
const PORTS: u32 = 3;
/// The slowest disk that the deadline allows for, in bytes a second.
const SLOWEST: u64 = 20_000_000;
/// The longest wait between two checks whether the server answers.
const LOOK: Duration = Duration::from_millis(15);
/// How long to wait for the end of a server when another process answers on its port.
const TAKEN: Duration = Duration::from_secs(3);

/// How long to wait, after the end of a server, for the last of its output.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Starts a server, and returns when it answers.
pub(super) async fn launch(start: &Start) -> Result<Server, Failure> {
    let file = &start.model.file;
    let length = tokio::fs::metadata(file).await;
    let length = length.map_err(Failure::File)?.len();
    let mut left = PORTS;
    loop {
        left -= 1;
        match launch_once(start, length).await {
            Err(Failure::PortTaken { port }) if left > 0 => {
                tracing::info!(model = &*start.name, port, "the port was taken: another one");
            }
            done => return done,
        }
    }
}

async fn launch_once(start: &Start, length: u64) -> Result<Server, Failure> {
    let port = free_port()?;
    let (mut child, flow) = spawn(start, port).await?;
    let handle = child.handle();
    let mut config = BackendConfig::new(format!("http://127.0.0.1:{port}"));
    config.timeouts = start.shared.config.timeouts;
    config.endpoints = start.model.program.endpoints;
    let backend = HttpBackend::new(&config).map_err(|error| Failure::Address(error.to_string()))?;
    let late = deadline(start.shared.config.start_deadline, length, start.expected);
    let answers = tokio::select! {
        biased;
        () = start.stop.cancelled() => Err(Failure::Stopped),
        exit = child.wait() => Err(ended(exit, port)),
        health = until_healthy(start, &backend) => health,
        () = sleep_until(Instant::now() + late) => Err(is_late(&handle, port, late).await),
    };
    let answers = match answers {
        Ok(()) => is_ours(&mut child, port).await,
        failed => failed,
    };
    match answers {
        Ok(()) => Ok(Server { child, flow, backend: Arc::new(backend) }),
        Err(failure) => {
            end(&handle, flow).await;
            Err(failure)
        }
    }
}

async fn spawn(start: &Start, port: u16) -> Result<(Child, Option<JoinHandle<()>>), Failure> {
    let supervisor = start.shared.supervisor().await.map_err(Failure::Process)?;
    let user = User::current().map_err(Failure::Process)?;
    let mut words = expand(&start.model, port).into_iter();
    let program = words.next().ok_or(Failure::NoCommand)?;
    let command = Command {
        id: Uuid::from_u128(rand::random()),
        program: program.into(),
        args: words.map(Into::into).collect(),
        env: clean_environment(&start.model.program.env, &user),
        working_dir: "/".into(),
        stdio: Stdio::Pipes,
        run_as: None,
        max_processes: None,
    };
    start.log.begin(&command.program, &command.args).await;
    let mut child = supervisor.spawn(command).await.map_err(Failure::Process)?;
    let mut flow = None;
    if let ChildIo::Pipes { stdin, stdout, stderr } = child.take_io() {
        stdin.close().await;
        flow = Some(start.shared.tasks.spawn(flow::keep(stdout, stderr, Arc::clone(&start.log))));
    }
    Ok((child, flow))
}

/// A port of this machine that nobody listens on now.
fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let port = listener.and_then(|listener| Ok(listener.local_addr()?.port()));
    port.map_err(|error| Failure::Address(error.to_string()))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// How long a server may take until it answers. A larger file, or a longer load before, extends it.
fn deadline(least: Duration, length: u64, expected: Option<Duration>) -> Duration {
    let reading = Duration::from_secs(length / SLOWEST);
    least + reading.max(expected.unwrap_or_default().saturating_mul(4))
}

async fn until_healthy(start: &Start, backend: &HttpBackend) -> Result<(), Failure> {
    let mut wait = Duration::from_millis(2);
    loop {
        if health::answers(backend, start.model.program.health.as_deref()).await {
            return Ok(());
        }
        sleep(wait).await;
        wait = (wait * 2).min(LOOK);
    }
}

/// Why a server has ended before it answered. If its port is in use now, it ended because of that.
fn ended(exit: process::Exit, port: u16) -> Failure {
    match is_free(port) {
        true => Failure::Ended { exit, what: "while it loaded the model" },
        false => Failure::PortTaken { port },
    }
}

/// Checks that the server itself answers on the port. If another program has taken the port, the server
/// ends soon, and that is the failure. If the server goes on, the program that listens is taken to do so
/// for the server, as that of a container does.
async fn is_ours(child: &mut Child, port: u16) -> Result<(), Failure> {
    if listens(&child.handle(), port).await {
        return Ok(());
    }
    match timeout(TAKEN, child.wait()).await {
        Ok(exit) => Err(ended(exit, port)),
        Err(_) => Ok(()),
    }
}

async fn is_late(handle: &Handle, port: u16, after: Duration) -> Failure {
    let listens = listens(handle, port).await;
    Failure::Late { after, listens }
}

/// Whether a process of the server listens on the port.
async fn listens(handle: &Handle, port: u16) -> bool {
    let Ok(members) = handle.members().await else { return false };
    let listening = move || listening_ports(&members).contains(&port);
    tokio::task::spawn_blocking(listening).await.unwrap_or(false)
}

/// Ends all processes of a server, and waits a moment for the last of their output.
pub(super) async fn end(handle: &Handle, flow: Option<JoinHandle<()>>) {
    match handle.stop(Duration::ZERO).await {
        Ok(0) | Err(process::ProcessError::SupervisorGone) => {}
        Ok(left) => tracing::warn!(left, "processes of a model server are stuck in the kernel"),
        Err(error) => tracing::warn!(%error, "a model server could not be ended"),
    }
    if let Some(flow) = flow {
        // Bounded: a process that has left the server's group may keep its output open for ever.
        let _ = timeout(LAST_WORDS, flow).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_and_a_slow_load_before_give_more_time() {
        let deadline =
            |length, expected| deadline(Duration::from_secs(60), length, expected).as_secs();
        assert_eq!(deadline(1000, None), 60);
        assert_eq!(deadline(40_000_000_000, None), 60 + 2000);
        assert_eq!(deadline(1000, Some(Duration::from_secs(30))), 60 + 120);
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(!is_free(port));
        assert!(matches!(ended(process::Exit::Code(1), port), Failure::PortTaken { .. }));
        assert_ne!(free_port().unwrap(), port);
    }
}
