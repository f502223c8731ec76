//! The programs that the tests start: `supervisor`, and `daemon`, which starts one and then waits to be killed.
//!
//! The daemon takes a directory and a shell command: it runs the command in it as a session, says
//! `started` when it runs, and sleeps. `keeping` is the same for a daemon whose session outlives it by
//! some milliseconds, with the directory as its own.

use std::{io::Write, path::Path, time::Duration};

use process::{Command, Keep, Limits, Stdio, Supervisor, User, clean_environment};
use uuid::Uuid;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [_, "supervisor"] => process::supervisor::main(),
        [_, "daemon", directory, command, groups] => {
            daemon(directory, command, *groups == "groups", None);
        }
        [_, "keeping", directory, command, millis] => {
            let span = millis.parse().map(Duration::from_millis).ok();
            daemon(directory, command, true, span);
        }
        _ => std::process::exit(2),
    }
}

fn daemon(directory: &str, command: &str, control_groups: bool, keep: Option<Duration>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done =
        runtime.map(|runtime| runtime.block_on(serve(directory, command, control_groups, keep)));
    std::process::exit(if matches!(done, Ok(Ok(()))) { 0 } else { 1 });
}

async fn serve(
    directory: &str,
    command: &str,
    control_groups: bool,
    keep: Option<Duration>,
) -> Result<(), String> {
    let said = |error: process::ProcessError| error.to_string();
    let limits = Limits { control_groups, ..Limits::default() };
    let keep = keep.map(|span| Keep::new(Path::new(directory), span));
    let keep = keep.transpose().map_err(|error| error.to_string())?;
    let supervisor = Supervisor::start_ourselves_keeping(limits, keep.as_ref());
    let supervisor = supervisor.await.map_err(said)?;
    let child = supervisor.spawn(order(directory, command)?).await.map_err(said)?;
    writeln!(std::io::stdout(), "started {} {}", child.pid, supervisor.pid())
        .map_err(|error| error.to_string())?;
    std::future::pending::<()>().await;
    drop((child, supervisor));
    Ok(())
}

fn order(directory: &str, command: &str) -> Result<Command, String> {
    let user = User::current().map_err(|error| error.to_string())?;
    Ok(Command {
        id: Uuid::from_u128(u128::from(std::process::id())),
        program: "bash".into(),
        args: vec!["-c".into(), command.into()],
        env: clean_environment(&[], &user),
        working_dir: Path::new(directory).to_owned(),
        stdio: Stdio::Terminal { cols: 80, rows: 24 },
        run_as: None,
        max_processes: None,
    })
}
