//! What the tests start: `supervisor`, and `daemon`, which starts one and then waits to be killed.
//!
//! The daemon takes a directory and a shell command: it runs the command in it as a session, says
//! `started` when it runs, and sleeps.

use std::{io::Write, path::Path};

use process::{Command, Limits, Stdio, Supervisor, User, clean_environment};
use uuid::Uuid;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [_, "supervisor"] => process::supervisor::main(),
        [_, "daemon", directory, command, groups] => {
            daemon(directory, command, *groups == "groups");
        }
        _ => std::process::exit(2),
    }
}

fn daemon(directory: &str, command: &str, control_groups: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map(|runtime| runtime.block_on(serve(directory, command, control_groups)));
    std::process::exit(if matches!(done, Ok(Ok(()))) { 0 } else { 1 });
}

async fn serve(directory: &str, command: &str, control_groups: bool) -> Result<(), String> {
    let said = |error: process::ProcessError| error.to_string();
    let limits = Limits { control_groups, ..Limits::default() };
    let supervisor = Supervisor::start_ourselves(limits).await.map_err(said)?;
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
