//! Processes that somebody else started.

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use rustix::io::Errno;
use tokio::{
    task,
    time::{sleep, timeout},
};

use crate::{
    error::ProcessError,
    signal::Signal,
    unix::{
        kernel::ProcessHold,
        processes::{self, Stat},
    },
};

/// The longest time for killing. Only a process stuck in the kernel takes longer.
const LONGEST_KILL: Duration = Duration::from_secs(5);
/// The time between two checks of the processes left in a group.
const BETWEEN: Duration = Duration::from_millis(20);

/// A process that somebody else started. On Linux a pidfd holds it, so that it can never be mistaken for
/// another process with the same id.
#[derive(Debug)]
pub struct Adopted {
    held: ProcessHold,
    pid: u32,
    start_time: u64,
    command_line: Vec<OsString>,
    working_dir: Option<PathBuf>,
    owner: u32,
}

impl Adopted {
    /// Opens a process of any user. Needs a runtime.
    ///
    /// # Errors
    /// [`ProcessError::NoSuchProcess`] when there is no such process, or it has ended;
    /// [`ProcessError::Process`] when it cannot be examined.
    pub fn open(pid: u32) -> Result<Self, ProcessError> {
        let failed = |error: io::Error| failure(pid, error);
        let held = ProcessHold::open(pid).map_err(failed)?;
        let stat = processes::stat(pid).map_err(failed)?;
        let adopted = Self {
            held,
            pid,
            start_time: stat.start_time,
            command_line: processes::command_line(pid).map_err(failed)?,
            working_dir: processes::working_dir(pid).ok(),
            owner: processes::owner(pid).map_err(failed)?,
        };
        // `/proc` is read by number. The number belonged to this process all the time only if the
        // process still lives.
        if adopted.is_alive() { Ok(adopted) } else { Err(ProcessError::NoSuchProcess { pid }) }
    }

    /// Opens a process that was opened before, for example by an earlier daemon.
    ///
    /// # Errors
    /// As for [`Adopted::open`]; [`ProcessError::PidReused`] when another process has the id.
    pub fn open_again(pid: u32, start_time: u64) -> Result<Self, ProcessError> {
        let adopted = Self::open(pid)?;
        if adopted.start_time == start_time {
            Ok(adopted)
        } else {
            Err(ProcessError::PidReused { pid })
        }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The start of the process, in the system's own unit: a number for [`Adopted::open_again`].
    #[must_use]
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// The time of the process's start, to a hundredth of a second.
    #[must_use]
    pub fn started_at(&self) -> SystemTime {
        processes::started_at(self.start_time)
    }

    /// The value of a variable in the environment that the process was started with, if that is visible.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<OsString> {
        processes::variable(self.pid, name)
    }

    /// The program and the arguments at the time of the adoption. They may be any bytes. A thread
    /// of the kernel has one empty argument.
    #[must_use]
    pub fn command_line(&self) -> &[OsString] {
        &self.command_line
    }

    /// The working directory at the time of the adoption, if it is visible.
    #[must_use]
    pub fn working_dir(&self) -> Option<&PathBuf> {
        self.working_dir.as_ref()
    }

    /// The id of the user that the process runs as.
    #[must_use]
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Whether the process runs. A zombie does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        processes::stat(self.pid)
            .is_ok_and(|stat| stat.start_time == self.start_time && !stat.is_dead)
    }

    /// Sends a signal to this process alone.
    ///
    /// # Errors
    /// [`ProcessError::NoSuchProcess`] when the process has ended; [`ProcessError::Process`] when
    /// it may not be signalled.
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        self.held.signal(signal.raw()).map_err(|error| failure(self.pid, error))
    }

    /// Ends the process, and its process group if the process leads one, as jobs of a shell or of a
    /// service manager do: with SIGTERM, and after `grace` with SIGKILL. If its group has another
    /// leader, only the process itself is ended. Gives up on processes that are stuck in the
    /// kernel, without an error.
    ///
    /// # Errors
    /// As for [`Adopted::signal`]. A process that has already ended is not an error.
    pub async fn end(&self, grace: Duration) -> Result<(), ProcessError> {
        // Only a leader's group is certainly its own: a member's may be a whole shell's.
        let leads = processes::stat(self.pid)
            .is_ok_and(|stat| stat.start_time == self.start_time && stat.group == self.pid);
        self.tell(Signal::Terminate, leads).await?;
        // A stopped process would not handle the signal.
        self.tell(Signal::Continue, leads).await?;
        if timeout(grace, self.all_gone(leads)).await.is_ok() {
            return Ok(());
        }
        let killing = async {
            while self.is_alive() || !self.others(leads).await.is_empty() {
                self.tell(Signal::Kill, leads).await?;
                sleep(BETWEEN).await;
            }
            Ok(())
        };
        timeout(LONGEST_KILL, killing).await.unwrap_or(Ok(()))
    }

    /// Waits until the process ends. Only its parent learns the exit code.
    ///
    /// # Errors
    /// [`ProcessError::Process`] when the process can no longer be watched.
    pub async fn wait(&self) -> Result<(), ProcessError> {
        self.held.ended().await.map_err(|error| failure(self.pid, error))
    }

    /// Sends a signal to the process, and to the others in the group that it leads.
    async fn tell(&self, signal: Signal, leads: bool) -> Result<(), ProcessError> {
        // The others are found before the process ends: afterwards its number no longer identifies
        // the group.
        let others = self.others(leads).await;
        for stat in others {
            processes::signal_exactly(stat.pid, stat.start_time, signal.raw());
        }
        match self.signal(signal) {
            Err(ProcessError::NoSuchProcess { .. }) => Ok(()),
            sent => sent,
        }
    }

    async fn all_gone(&self, leads: bool) {
        let _watched_no_longer = self.wait().await;
        while !self.others(leads).await.is_empty() {
            sleep(BETWEEN).await;
        }
    }

    /// The other living processes of the group that the process leads or led. As long as there are
    /// any, the kernel does not reuse the group's number. So if the number was reused, there are
    /// none.
    async fn others(&self, leads: bool) -> Vec<Stat> {
        if !leads {
            return Vec::new();
        }
        let (pid, start_time) = (self.pid, self.start_time);
        task::spawn_blocking(move || others(pid, start_time)).await.unwrap_or_default()
    }
}

fn others(pid: u32, start_time: u64) -> Vec<Stat> {
    let all = processes::all();
    if all.get(&pid).is_some_and(|stat| stat.start_time != start_time) {
        return Vec::new();
    }
    let of_group = |stat: &Stat| stat.group == pid && stat.pid != pid && !stat.is_dead;
    all.into_values().filter(of_group).collect()
}

fn failure(pid: u32, source: io::Error) -> ProcessError {
    let is_gone = source.kind() == io::ErrorKind::NotFound
        || Errno::from_io_error(&source) == Some(Errno::SRCH);
    if is_gone {
        ProcessError::NoSuchProcess { pid }
    } else {
        ProcessError::Process { pid, source }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        os::unix::process::CommandExt as _,
        process::{Child, Command, Stdio},
    };

    use super::*;

    fn cat(arguments: &[&str]) -> Child {
        let mut command = Command::new("cat");
        command.args(arguments).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null());
        command.spawn().unwrap()
    }

    #[tokio::test]
    async fn an_adopted_process_is_described_by_the_kernel() {
        let mut child = cat(&["-u", "-"]);
        let adopted = Adopted::open(child.id()).unwrap();
        // Between fork and exec the process still has the command line of the tests.
        while processes::command_line(child.id()).unwrap()[0] != "cat" {
            tokio::task::yield_now().await;
        }
        let adopted = Adopted::open_again(child.id(), adopted.start_time()).unwrap();
        assert_eq!(adopted.command_line(), ["cat", "-u", "-"]);
        assert_eq!(adopted.working_dir(), Some(&PathBuf::from("/")));
        assert_eq!(adopted.owner(), rustix::process::geteuid().as_raw());
        assert!(adopted.is_alive());
        adopted.signal(Signal::Terminate).unwrap();
        adopted.wait().await.unwrap();
        assert!(!adopted.is_alive(), "not reaped, but dead");
        assert!(Adopted::open(child.id()).is_err());
        child.wait().unwrap();
        let gone = adopted.signal(Signal::Terminate);
        assert!(matches!(gone, Err(ProcessError::NoSuchProcess { .. })));
    }

    #[tokio::test]
    async fn a_reused_process_id_is_told_apart_from_an_unused_one() {
        let mut child = cat(&[]);
        let started = Adopted::open(child.id()).unwrap().start_time();
        let reused = Adopted::open_again(child.id(), started - 1);
        assert!(matches!(reused, Err(ProcessError::PidReused { .. })));
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = Adopted::open_again(child.id(), started);
        assert!(matches!(gone, Err(ProcessError::NoSuchProcess { .. })));
        for pid in [0, u32::MAX] {
            assert!(matches!(Adopted::open(pid), Err(ProcessError::NoSuchProcess { .. })));
        }
    }

    /// Starts a shell with two background processes; on request it ignores SIGTERM. Returns the ids
    /// of the background processes, too.
    fn shell(leads: bool, deaf: bool) -> (Child, Vec<u32>) {
        let trap = if deaf { "trap '' TERM;" } else { "" };
        let script = format!("{trap} sleep 1000 & echo $!; sleep 1000 & echo $!; wait; wait");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdout(Stdio::piped());
        if leads {
            command.process_group(0);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let pids = [(); 2].map(|()| lines.next().unwrap().unwrap().parse().unwrap());
        (child, pids.into())
    }

    fn lives(pid: u32) -> bool {
        processes::stat(pid).is_ok_and(|stat| !stat.is_dead)
    }

    #[tokio::test]
    async fn one_that_leads_its_group_ends_with_all_of_it() {
        for deaf in [false, true] {
            let (mut child, others) = shell(true, deaf);
            let adopted = Adopted::open(child.id()).unwrap();
            adopted.end(Duration::from_millis(100)).await.unwrap();
            assert!(!adopted.is_alive());
            assert!(!others.iter().any(|pid| lives(*pid)), "deaf: {deaf}");
            child.wait().unwrap();
            adopted.end(Duration::ZERO).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_process_in_a_group_of_another_ends_alone() {
        // The process is in the group of the tests, which must go on.
        let (mut child, others) = shell(false, false);
        let adopted = Adopted::open(child.id()).unwrap();
        adopted.end(Duration::from_secs(5)).await.unwrap();
        assert!(!adopted.is_alive());
        assert!(others.iter().all(|pid| lives(*pid)));
        for pid in others {
            let start_time = processes::stat(pid).unwrap().start_time;
            assert!(processes::signal_exactly(pid, start_time, Signal::Kill.raw()));
        }
        child.wait().unwrap();
    }
}
