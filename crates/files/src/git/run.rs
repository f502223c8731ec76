//! One process of git: its environment, its time limit, its output and its end.

use std::{ffi::OsString, io, path::Path, process::Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader, copy, sink},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use super::{Git, GitError, Runner, disarm};

/// The most bytes of git's standard error that are kept.
const COMPLAINTS: u64 = 8 << 10;

#[derive(Debug)]
pub(super) struct Output {
    success: bool,
    stdout: Vec<u8>,
    stderr: String,
}

impl Output {
    pub(super) fn succeeded(self) -> Result<Vec<u8>, GitError> {
        if self.success { Ok(self.stdout) } else { Err(GitError::Failed(self.complaint())) }
    }

    /// Whether git failed with this text on standard error.
    pub(super) fn complains(&self, of: &str) -> bool {
        !self.success && self.stderr.contains(of)
    }

    /// The first line that says what is wrong.
    fn complaint(&self) -> String {
        let lines = || self.stderr.lines().filter(|line| !line.is_empty());
        let fatal = lines().find_map(|line| line.strip_prefix("fatal: "));
        fatal.or_else(|| lines().next()).unwrap_or("it said nothing").to_owned()
    }
}

impl Git {
    /// Runs git in a directory, with these arguments after the common ones.
    pub(super) async fn run(
        &self,
        runner: &Runner,
        root: &Path,
        args: &[OsString],
    ) -> Result<Output, GitError> {
        let limit = self.settings.max_output;
        self.run_reading(runner, root, args, async |stdout| all(stdout, limit).await).await
    }

    /// The paths of the submodules in the index of a directory, `most` of them at most. The index itself
    /// may be of any size.
    pub(super) async fn submodules(
        &self,
        runner: &Runner,
        root: &Path,
        most: usize,
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let args = disarm::ask_for_index();
        let found = self.run_reading(runner, root, &args, async |stdout| {
            submodules(stdout, most).await.map_err(GitError::Read)
        });
        let records = found.await?.succeeded()?;
        let paths = records.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(<[u8]>::to_vec).collect())
    }

    async fn run_reading(
        &self,
        runner: &Runner,
        root: &Path,
        args: &[OsString],
        read: impl AsyncFnOnce(Option<ChildStdout>) -> Result<Vec<u8>, GitError>,
    ) -> Result<Output, GitError> {
        let time_out = self.settings.time_out;
        let permit = timeout(time_out, self.running.acquire()).await.map_err(|_| GitError::Busy)?;
        let _permit = permit.map_err(|_| GitError::Busy)?;
        let mut command = command(runner, root, args)?;
        runner
            .as_user
            .as_ref()
            .map_or(Ok(()), |becomes| becomes(&mut command))
            .map_err(GitError::Start)?;
        let mut child = command.spawn().map_err(not_started)?;
        let group = Group::of(&child);
        let ended = timeout(time_out, finish(&mut child, read)).await;
        let output = ended.map_err(|_| GitError::TimedOut(time_out))??;
        group.disarm();
        Ok(output)
    }
}

fn command(runner: &Runner, root: &Path, args: &[OsString]) -> Result<Command, GitError> {
    let (program, words) = runner.command.split_first().ok_or(GitError::Missing)?;
    let mut command = Command::new(program);
    command.args(words).args(disarm::always(root)).args(args);
    command.env_clear().envs(runner.env.iter().map(|(name, value)| (name, value)));
    command.envs(disarm::ENVIRONMENT).current_dir("/").process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

fn not_started(error: io::Error) -> GitError {
    match error.kind() {
        io::ErrorKind::NotFound => GitError::Missing,
        _ => GitError::Start(error),
    }
}

async fn finish(
    child: &mut Child,
    read: impl AsyncFnOnce(Option<ChildStdout>) -> Result<Vec<u8>, GitError>,
) -> Result<Output, GitError> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::try_join!(read(stdout), first(stderr))?;
    let status = child.wait().await.map_err(GitError::Read)?;
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    Ok(Output { success: status.success(), stdout, stderr })
}

async fn all(from: Option<impl AsyncRead + Unpin>, limit: usize) -> Result<Vec<u8>, GitError> {
    let mut read = Vec::new();
    let Some(from) = from else { return Ok(read) };
    from.take(limit as u64 + 1).read_to_end(&mut read).await.map_err(GitError::Read)?;
    if read.len() > limit { Err(GitError::TooLarge { limit }) } else { Ok(read) }
}

/// The paths of the first submodules in a listing of the index, each with a NUL after it.
async fn submodules(from: Option<impl AsyncRead + Unpin>, most: usize) -> io::Result<Vec<u8>> {
    let (mut found, mut count) = (Vec::new(), 0);
    let Some(from) = from else { return Ok(found) };
    let (mut records, mut record) = (BufReader::new(from), Vec::new());
    while records.read_until(0, &mut record).await? > 0 {
        if let Some(path) = disarm::submodule(&record).filter(|_| count < most) {
            found.extend(path);
            count += 1;
        }
        record.clear();
    }
    Ok(found)
}

/// The beginning of a stream. The rest is read and dropped, since git would wait for room in a full
/// pipe.
async fn first(from: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, GitError> {
    let mut head = Vec::new();
    let Some(mut from) = from else { return Ok(head) };
    (&mut from).take(COMPLAINTS).read_to_end(&mut head).await.map_err(GitError::Read)?;
    copy(&mut from, &mut sink()).await.map_err(GitError::Read)?;
    Ok(head)
}

/// The process group of a running git. If this is dropped before [`Group::disarm`], the group is killed.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Notes that git has ended: its group must not be killed.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The leader has not been waited for yet, so its number cannot be reused. The call may fail
        // because git has just ended, which does no harm.
        if let Some(pid) = self.0 {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}
