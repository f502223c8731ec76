//! A Warren server with a workspace, and an agent's command line that it finds on its path.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result};

use super::{
    Target, free_address,
    warren::{LISTENS, clean},
    ways::Ways,
};
use crate::{child::Process, cli::Kind, load::workspace::Daemon};

const TOKEN: &str = "bench-token-of-the-workspace";

/// Starts one. `suite`: this program, which is the agent, too.
pub(crate) async fn launch(program: &Path, suite: &Path) -> Result<Target> {
    launch_with(program, suite, &[]).await
}

/// Starts two members of one cluster. The ways to the first one's terminals: its own, and over the
/// other one.
pub(crate) async fn launch_pair(
    program: &Path,
    suite: &Path,
) -> Result<(Target, Target, [Daemon; 2])> {
    let at = free_address()?.to_string();
    let own = ["--cluster-token", TOKEN, "--node-name", "owner", "--peer-listen", &at];
    let owner = launch_with(program, suite, &own).await?;
    let own = ["--cluster-token", TOKEN, "--peer-listen", "127.0.0.1:0", "--peer", &at];
    let entry = launch_with(program, suite, &own).await?;
    let hop = Daemon { node: Some("owner".to_owned()), ..daemon(&entry)? };
    let ways = [daemon(&owner)?, hop];
    Ok((owner, entry, ways))
}

/// The members of one cluster, and the ways between them, which are the only ones.
pub(crate) struct Members {
    targets: Vec<Target>,
    pub(crate) daemons: Vec<Daemon>,
    pub(crate) ways: Ways,
}

impl Members {
    pub(crate) async fn stop(self) {
        for target in self.targets {
            target.stop().await;
        }
    }
}

/// Starts this many members.
pub(crate) async fn launch_members(program: &Path, suite: &Path, count: usize) -> Result<Members> {
    let at = (0..count).map(|_| free_address()).collect::<Result<Vec<_>>>()?;
    let ways = Ways::between(&at).await?;
    let (mut targets, mut daemons) = (Vec::new(), Vec::new());
    for (number, at) in at.iter().enumerate() {
        let (at, name) = (at.to_string(), format!("member {number}"));
        let peers: Vec<String> = ways.of(number).collect();
        let own = ["--cluster-token", TOKEN, "--no-peer-discovery"];
        let own = own.into_iter().chain(["--node-name", &name, "--peer-listen", &at]);
        let own: Vec<&str> =
            own.chain(peers.iter().flat_map(|peer| ["--peer", peer.as_str()])).collect();
        let target = launch_with(program, suite, &own).await?;
        daemons.push(daemon(&target)?);
        targets.push(target);
    }
    Ok(Members { targets, daemons, ways })
}

async fn launch_with(program: &Path, suite: &Path, arguments: &[&str]) -> Result<Target> {
    let dir = tempfile::Builder::new().prefix("benches-workspace-").tempdir()?;
    let programs = dir.path().join("bin");
    fs::create_dir(&programs)?;
    agent(&programs.join("claude"), suite).context("write the agent's command")?;
    let mut command = clean(program, dir.path());
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    command.args(["serve", "--listen", "127.0.0.1:0", "--workspace-token", TOKEN]);
    command.args(arguments);
    command.arg("--data-dir").arg(dir.path().join("data"));
    let mut server = Process::spawn(command, "warren-workspace", dir.path())?;
    let addr = server.listening(LISTENS).await?;
    let target = Target::new(Kind::Warren.name(), addr, vec![server], Some(dir));
    Ok(Target { key: Some(TOKEN.to_owned()), ..target })
}

pub(crate) fn daemon(target: &Target) -> Result<Daemon> {
    let pid = target.pids().first().copied().context("a server without a process")?;
    Ok(Daemon { addr: target.addr, token: TOKEN.to_owned(), pid, node: None })
}

fn agent(at: &Path, suite: &Path) -> Result<()> {
    let suite = suite.display().to_string().replace('\'', r"'\''");
    fs::write(at, format!("#!/bin/sh\nexec '{suite}' agent -- \"$@\"\n"))?;
    Ok(fs::set_permissions(at, fs::Permissions::from_mode(0o755))?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_agents_command_runs_the_suite_with_its_arguments() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("claude");
        agent(&at, Path::new("/bin/echo")).unwrap();
        let output = Command::new("/bin/sh").arg(&at).args(["-p", "a b"]).output().unwrap();
        assert_eq!(output.stdout, b"agent -- -p a b\n");
    }
}
