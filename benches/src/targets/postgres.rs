//! A PostgreSQL of its own, for servers that share their keys and their limits.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::process::Command;

use super::eventually;
use crate::{child::Process, report};

/// How long it may take to start.
const STARTS: Duration = Duration::from_secs(60);

/// The user and the group `nobody`: the server refuses to run as root.
const NOBODY: u32 = 65_534;

/// A database server that listens in a directory of its own.
#[derive(Debug)]
pub(crate) struct Postgres {
    process: Process,
    dir: TempDir,
}

impl Postgres {
    /// Starts one; `None`: PostgreSQL is not installed.
    pub(crate) async fn launch() -> Result<Option<Self>> {
        let Some(programs) = programs() else {
            report::note("shared/… is left out: there is no PostgreSQL");
            return Ok(None);
        };
        let dir = tempfile::Builder::new().prefix("benches-postgres-").tempdir()?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        if is_root() {
            chown(dir.path(), Some(NOBODY), Some(NOBODY))?;
        }
        let data = dir.path().join("data");
        let mut make = command(&programs.join("initdb"), dir.path());
        make.args(["--auth=trust", "--username=warren", "--encoding=UTF8", "--no-locale", "-D"]);
        let made = make.arg(&data).output().await.context("start initdb")?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let mut serve = command(&programs.join("postgres"), dir.path());
        serve.arg("-D").arg(&data).arg("-k").arg(dir.path()).args(["-c", "listen_addresses="]);
        let mut process = Process::spawn(serve, "postgres", dir.path())?.with_children();
        let socket = dir.path().join(".s.PGSQL.5432");
        let up = eventually(STARTS, async || process.check().is_err() || socket.exists()).await;
        process.check()?;
        ensure!(up, "PostgreSQL does not start: {}", process.last_words());
        Ok(Some(Self { process, dir }))
    }

    pub(crate) fn url(&self) -> String {
        let host = self.dir.path().display().to_string().replace('/', "%2F");
        format!("postgres://warren@{host}/postgres")
    }

    pub(crate) async fn stop(self) {
        self.process.stop().await;
    }
}

/// Where Debian's package keeps the programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let all = versions.map(|version| version.path().join("bin"));
    all.filter(|programs| programs.join("initdb").exists()).max()
}

fn command(program: &Path, dir: &Path) -> Command {
    let mut command = match is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(program);
            command
        }
        false => Command::new(program),
    };
    command.current_dir(dir).kill_on_drop(true);
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
