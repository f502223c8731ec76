//! Processes that somebody else started.

use std::{ffi::OsString, io, os::fd::OwnedFd, path::PathBuf, time::Duration};

use rustix::{
    io::Errno,
    process::{PidfdFlags, pidfd_open, pidfd_send_signal},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    task,
    time::{sleep, timeout},
};

use crate::{
    error::ProcessError,
    procfs::{self, Stat},
    signal::Signal,
    unsafe_calls::watch,
};

/// How long killing may take; only what the kernel itself holds up takes longer.
const LONGEST_KILL: Duration = Duration::from_secs(5);
/// How often it is looked who is left of a group.
const BETWEEN: Duration = Duration::from_millis(20);

/// A process that somebody else started. It is held by a descriptor, so that it can never be taken
/// for another that got its number later.
#[derive(Debug)]
pub struct Adopted {
    held: AsyncFd<OwnedFd>,
    pid: u32,
    start_time: u64,
    command_line: Vec<OsString>,
    working_dir: Option<PathBuf>,
    owner: u32,
}

impl Adopted {
    /// Takes hold of a process, whoever it is. Only within a runtime.
    ///
    /// # Errors
    /// [`ProcessError::NoSuchProcess`] when there is none, or it has ended;
    /// [`ProcessError::Process`] when it cannot be looked at.
    pub fn open(pid: u32) -> Result<Self, ProcessError> {
        let failed = |error: io::Error| failure(pid, error);
        let raw = procfs::to_pid(pid).ok_or(ProcessError::NoSuchProcess { pid })?;
        let held = pidfd_open(raw, PidfdFlags::NONBLOCK).map_err(|error| failed(error.into()))?;
        let held = watch(held, Interest::READABLE).map_err(failed)?;
        let stat = procfs::stat(pid).map_err(failed)?;
        let adopted = Self {
            held,
            pid,
            start_time: stat.start_time,
            command_line: procfs::command_line(pid).map_err(failed)?,
            working_dir: procfs::working_dir(pid).ok(),
            owner: procfs::owner(pid).map_err(failed)?,
        };
        // What was read is about what is held only if that has not ended meanwhile.
        if adopted.is_alive() { Ok(adopted) } else { Err(ProcessError::NoSuchProcess { pid }) }
    }

    /// Takes hold again of a process that was held before, say by an earlier daemon.
    ///
    /// # Errors
    /// As for [`Adopted::open`]; [`ProcessError::PidReused`] when the number is another's by now.
    pub fn open_again(pid: u32, start_time: u64) -> Result<Self, ProcessError> {
        let adopted = Self::open(pid)?;
        if adopted.start_time == start_time {
            Ok(adopted)
        } else {
            Err(ProcessError::PidReused { pid })
        }
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When it began, in clock ticks since the machine did.
    #[must_use]
    pub fn start_time(&self) -> u64 {
        self.start_time
    }

    /// Its program and arguments when it was adopted; they may be anything, and are empty for a thread
    /// of the kernel.
    #[must_use]
    pub fn command_line(&self) -> &[OsString] {
        &self.command_line
    }

    /// The directory that it was in when it was adopted, if that may be seen.
    #[must_use]
    pub fn working_dir(&self) -> Option<&PathBuf> {
        self.working_dir.as_ref()
    }

    /// The number of the user that it runs as.
    #[must_use]
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Whether it runs; one that has ended is not alive, even if nobody has asked how it did.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        procfs::stat(self.pid).is_ok_and(|stat| stat.start_time == self.start_time && !stat.is_dead)
    }

    /// Sends it a signal, itself alone.
    ///
    /// # Errors
    /// [`ProcessError::NoSuchProcess`] when it has ended; [`ProcessError::Process`] when it may not
    /// be signalled.
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        pidfd_send_signal(self.held.get_ref(), signal.raw())
            .map_err(|error| failure(self.pid, error.into()))
    }

    /// Ends it, and with it all of its process group where it leads one, as what a shell or a service
    /// manager started does: asks, and kills what is still there after `grace`. A group that somebody
    /// else leads is that one's: there it ends alone.
    ///
    /// # Errors
    /// As for [`Adopted::signal`]; that it has ended already is none.
    pub async fn end(&self, grace: Duration) -> Result<(), ProcessError> {
        let leads = procfs::stat(self.pid)
            .is_ok_and(|stat| stat.start_time == self.start_time && stat.group == self.pid);
        self.tell(Signal::Terminate, leads).await?;
        // Who is stopped would not hear it.
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

    /// Waits until it ends. How it did, only its parent is told.
    ///
    /// # Errors
    /// [`ProcessError::Process`] when it can be watched no longer.
    pub async fn wait(&self) -> Result<(), ProcessError> {
        let ready = self.held.readable().await;
        ready.map(|mut ready| ready.retain_ready()).map_err(|error| failure(self.pid, error))
    }

    /// Sends a signal to it, and to the others of the group that it leads.
    async fn tell(&self, signal: Signal, leads: bool) -> Result<(), ProcessError> {
        // Before it is gone, since then its number says nothing of who the others are.
        let others = self.others(leads).await;
        for stat in others {
            procfs::signal_exactly(stat.pid, stat.start_time, signal.raw());
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

    /// The living of the group that it leads, or led, but for itself. As long as there are any, its
    /// number is nobody else's; when it is another's by now, there are none.
    async fn others(&self, leads: bool) -> Vec<Stat> {
        if !leads {
            return Vec::new();
        }
        let (pid, start_time) = (self.pid, self.start_time);
        task::spawn_blocking(move || others(pid, start_time)).await.unwrap_or_default()
    }
}

fn others(pid: u32, start_time: u64) -> Vec<Stat> {
    let all = procfs::all();
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
    async fn it_is_known_by_what_the_kernel_says_of_it() {
        let mut child = cat(&["-u", "-"]);
        let adopted = Adopted::open(child.id()).unwrap();
        // Between fork and exec it is still us, by name.
        while procfs::command_line(child.id()).unwrap()[0] != "cat" {
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
    async fn a_number_that_is_anothers_by_now_is_told_from_one_that_is_nobodys() {
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

    /// A shell that ignores being asked, if it is to, and what it started in the background: their
    /// numbers.
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
        procfs::stat(pid).is_ok_and(|stat| !stat.is_dead)
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
    async fn one_whose_group_is_somebody_elses_ends_alone() {
        // Its group is that of these tests, which go on.
        let (mut child, others) = shell(false, false);
        let adopted = Adopted::open(child.id()).unwrap();
        adopted.end(Duration::from_secs(5)).await.unwrap();
        assert!(!adopted.is_alive());
        assert!(others.iter().all(|pid| lives(*pid)));
        for pid in others {
            let start_time = procfs::stat(pid).unwrap().start_time;
            assert!(procfs::signal_exactly(pid, start_time, Signal::Kill.raw()));
        }
        child.wait().unwrap();
    }
}
