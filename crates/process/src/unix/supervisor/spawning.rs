//! Starts a process: its terminal or pipes, its control group, the fork, and the report that it
//! became the program.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Gid, Mode, Uid, fchmod, fchown},
    process::{Signal, WaitOptions, kill_process, waitpid},
    pty::{grantpt, unlockpt},
    termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize},
};
use uuid::Uuid;

use super::{child, events::Supervising};
use crate::{
    signal::Exit,
    unix::{
        cgroup::Group,
        failure::{Failure, Step},
        journal, kernel,
        messages::{Event, Order},
        processes,
        unsafe_calls::fork_single_threaded,
    },
};

/// How long a child may take to become its program. A directory on a dead file server would block
/// it for ever.
const LONGEST_START: Duration = Duration::from_secs(10);

pub(super) struct SessionProcesses {
    /// The first process.
    pub(super) pid: u32,
    pub(super) start_time: u64,
    pub(super) group: Option<Group>,
    /// Whether the first process has not been reaped yet.
    pub(super) is_alive: bool,
    /// Whether the start was reported to the daemon, so that the end must be reported, too.
    pub(super) is_known: bool,
    /// How the first process ended.
    pub(super) exit: Option<Exit>,
    /// The ends for the next daemon; `None` if none is waited for, or until the start is reported.
    pub(super) ends: Option<SessionEnds>,
}

/// The daemon's ends of a session's stdio, and its journal.
pub(super) struct SessionEnds {
    /// The terminal's master, or stdin, stdout and stderr. An input that was closed is a pipe without a reader.
    pub(super) stdio: Vec<OwnedFd>,
    pub(super) journal: File,
}

impl SessionEnds {
    /// The descriptors for a daemon.
    pub(super) fn for_daemon(&self) -> io::Result<Vec<OwnedFd>> {
        let mut all: Vec<OwnedFd> =
            self.stdio.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?;
        all.push(self.journal.try_clone()?.into());
        Ok(all)
    }

    /// The end that output is read from.
    pub(super) fn output(&self) -> Option<&OwnedFd> {
        match &self.stdio[..] {
            [master] => Some(master),
            [_, stdout, _] => Some(stdout),
            _ => None,
        }
    }

    /// Closes the process's input, if it is a pipe.
    pub(super) fn close_input(&mut self) -> io::Result<()> {
        if let [stdin, _, _] = &mut self.stdio[..] {
            let (_reader, without_reader) = kernel::pipe()?;
            *stdin = without_reader;
        }
        Ok(())
    }
}

/// A forked child that has not become its program yet.
pub(super) struct PendingStart {
    pub(super) id: Uuid,
    pub(super) request: u64,
    pub(super) report: File,
    pub(super) deadline: Instant,
    ends: SessionEnds,
}

/// The two sides of a child's stdio.
struct Ends {
    child: child::Stdio,
    daemon: SessionEnds,
}

impl Supervising {
    pub(super) fn spawn(&mut self, request: u64, order: &Order) {
        if let Err(failure) = self.start(request, order) {
            self.tell(&Event::Failed { request, failure }, Vec::new());
        }
    }

    /// Handles the reports of starting children.
    pub(super) fn read_reports(&mut self) {
        let mut at = 0;
        while let Some(starting) = self.starting.get_mut(at) {
            match report(&mut starting.report) {
                Some(outcome) => {
                    let starting = self.starting.swap_remove(at);
                    self.conclude(starting, outcome);
                }
                None => at += 1,
            }
        }
    }

    pub(super) fn expire_starts(&mut self, now: Instant) {
        while let Some(at) = self.starting.iter().position(|it| it.deadline <= now) {
            let starting = self.starting.swap_remove(at);
            self.kill_leader(starting.id);
            let failure = Failure::plain(Step::Deadline);
            self.tell(&Event::Failed { request: starting.request, failure }, Vec::new());
        }
    }

    fn start(&mut self, request: u64, order: &Order) -> Result<(), Failure> {
        self.may_start(order)?;
        let id = order.id;
        let (ends, reports) = prepare(order)?;
        // Before the fork: the child enters it first of all, so no descendant is ever outside.
        let group = self.groups.create(id, order.max_processes);
        let group = group.map_err(Failure::at(Step::ControlGroup))?;
        let supervisor = std::process::id();
        let forked = fork_single_threaded().inspect_err(|_| group.iter().for_each(Group::remove));
        let Some(pid) = forked.map_err(Failure::at(Step::Fork))? else {
            child::become_program(order, &ends.child, group.as_ref(), reports.1, supervisor);
        };
        // The child cannot be reaped before this function returns, so its entry in `/proc` exists.
        let start_time = processes::stat(pid).map_or(0, |stat| stat.start_time);
        let session = SessionProcesses {
            pid,
            start_time,
            group,
            is_alive: true,
            is_known: false,
            exit: None,
            ends: None,
        };
        // Known from here on, also while it starts: a stop finds it, and its id is not given again.
        self.sessions.insert(id, session);
        self.leaders.insert(pid, id);
        let deadline = Instant::now() + LONGEST_START;
        let report = reports.0.into();
        self.starting.push(PendingStart { id, request, report, deadline, ends: ends.daemon });
        Ok(())
    }

    fn may_start(&self, order: &Order) -> Result<(), Failure> {
        let step = match () {
            () if self.ending.is_some() => Step::Ending,
            () if self.sessions.contains_key(&order.id) => Step::Duplicate,
            () if self.sessions.len() >= self.max_children as usize => Step::Limit,
            () => return Ok(()),
        };
        Err(Failure::plain(step))
    }

    fn conclude(&mut self, starting: PendingStart, outcome: Result<(), Failure>) {
        let PendingStart { id, request, ends, .. } = starting;
        match outcome {
            Ok(()) => {
                let Some(session) = self.sessions.get_mut(&id) else { return };
                session.is_known = true;
                let (pid, start_time) = (session.pid, session.start_time);
                match ends.for_daemon() {
                    Ok(all) => {
                        session.ends = Some(ends).filter(|_| self.keep.is_some());
                        self.tell(&Event::Started { request, pid, start_time }, all);
                    }
                    Err(error) => {
                        self.kill_leader(id);
                        let failure = Failure::at(Step::Pipes)(error);
                        self.tell(&Event::Failed { request, failure }, Vec::new());
                    }
                }
            }
            Err(failure) => {
                self.forget_failed(id);
                self.tell(&Event::Failed { request, failure }, Vec::new());
            }
        }
    }

    /// Ends a child whose daemon is gone before its start was reported.
    pub(super) fn give_up_start(&mut self, id: Uuid) {
        self.forget_failed(id);
    }

    /// Waits for a child that could not become its program, and forgets its session. The child is
    /// about to exit, so the wait is short.
    fn forget_failed(&mut self, id: Uuid) {
        let Some(pid) = self.kill_leader(id) else { return };
        if let Some(raw) = processes::to_pid(pid) {
            // Reaped here and not by the loop, which would report the end of a session.
            let _ = waitpid(Some(raw), WaitOptions::empty());
        }
        self.leaders.remove(&pid);
        if let Some(group) = self.sessions.remove(&id).and_then(|session| session.group) {
            group.remove();
        }
    }

    /// Kills the first process of a session, if it has not been reaped.
    fn kill_leader(&self, id: Uuid) -> Option<u32> {
        let session = self.sessions.get(&id).filter(|session| session.is_alive)?;
        let _ = kill_process(processes::to_pid(session.pid)?, Signal::KILL);
        Some(session.pid)
    }
}

/// The report of a child. If the pipe closes without a report, the child executed its program.
fn report(pipe: &mut File) -> Option<Result<(), Failure>> {
    // A pipe takes a report this short as a whole, so the report is never read in parts.
    let mut bytes = [0; 16];
    match pipe.read(&mut bytes) {
        Ok(0) => Some(Ok(())),
        Ok(length) => {
            let failure = Failure::decode(&bytes[..length]);
            Some(Err(failure.unwrap_or(Failure::plain(Step::Fork))))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Err(error) => Some(Err(Failure::at(Step::Fork)(error))),
    }
}

/// Opens all descriptors of a child before the fork.
fn prepare(order: &Order) -> Result<(Ends, (OwnedFd, OwnedFd)), Failure> {
    let ends = match order.terminal {
        Some(size) => terminal(size, order).map_err(Failure::at(Step::Terminal))?,
        None => pipes().map_err(Failure::at(Step::Pipes))?,
    };
    let reports = kernel::non_blocking_pipe();
    Ok((ends, reports.map_err(Failure::at(Step::Pipes))?))
}

fn terminal((cols, rows): (u16, u16), order: &Order) -> io::Result<Ends> {
    let master = kernel::new_terminal()?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = kernel::slave(&master)?;
    tcsetwinsize(&master, Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 })?;
    let mut modes = tcgetattr(&slave)?;
    // So that a backspace in a line removes a whole character.
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&slave, OptionalActions::Now, &modes)?;
    if let Some(identity) = &order.identity {
        // Programs open their terminal again by its path, as the user.
        fchown(&slave, Some(Uid::from_raw(identity.uid)), None::<Gid>)?;
        fchmod(&slave, Mode::from_raw_mode(0o620))?;
    }
    let journal = journal::create(journal::TERMINAL_RING)?;
    let daemon = SessionEnds { stdio: vec![master], journal };
    Ok(Ends { child: child::Stdio::Terminal(slave), daemon })
}

fn pipes() -> io::Result<Ends> {
    let ((stdin, to), (from_out, stdout), (from_err, stderr)) =
        (kernel::pipe()?, kernel::pipe()?, kernel::pipe()?);
    let journal = journal::create(journal::PIPE_RING)?;
    let daemon = SessionEnds { stdio: vec![to, from_out, from_err], journal };
    Ok(Ends { child: child::Stdio::Pipes([stdin, stdout, stderr]), daemon })
}
