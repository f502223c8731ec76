//! The helper's side of the supervisor: one process with one thread, the ancestor of all processes
//! of sessions.
//!
//! The supervisor is their sub-reaper: a process that loses its parents becomes its child, so it
//! can wait until none is left. When the socket to the daemon closes, the daemon is dead. Then the
//! supervisor holds the sessions for the next one if it was told to, and otherwise, or if none comes in
//! time, ends everything. It blocks only in one `poll`.
//!
//! - `events`: the event loop, and the daemon's requests
//! - `spawning`, `child`: the start of a process, and its steps before it executes the program
//! - `reaping`: reaps ended processes, and ends all at the end
//! - `family`: assigns processes to sessions
//! - `stopping`: the end of one session
//! - `event_queue`: events that the daemon has not read yet
//! - `holding`: the time between two daemons; `arrival`: the next daemon

mod arrival;
mod child;
mod event_queue;
mod events;
mod family;
mod holding;
mod reaping;
mod spawning;
mod stopping;

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    time::Duration,
};

use nix::sys::signal::SigSet;
use rustix::{
    event::{PollFd, PollFlags, poll},
    net::sockopt,
};

use crate::unix::{
    cgroup::Groups,
    channel,
    kernel::{EndedChildren, become_subreaper, close_rest_on_exec},
    messages::{Event, KeepOrder, MAX_REQUEST, Request},
};
use events::Supervising;

/// The error if stdin is not the socket of a daemon.
const NOT_OURS: &str = "this command is started by the daemon, for itself; it is of no use by hand";
/// How long the daemon may take to send its first message.
const FIRST_WORD: Duration = Duration::from_secs(10);

/// The whole life of a supervisor. The binary calls this for its hidden command, before it starts a
/// thread or a runtime. The supervisor serves the daemon at the other end of stdin and ends with
/// it.
pub fn main() -> ! {
    let ended = run();
    if let Err(error) = &ended {
        let _ = writeln!(io::stderr(), "supervisor: {error}");
    }
    std::process::exit(i32::from(ended.is_err()))
}

fn run() -> io::Result<()> {
    let socket = take_socket()?;
    close_rest_on_exec()?;
    let signals = hold_signals()?;
    // This fails for the leader of a process group (started by hand in a terminal), where it is not
    // needed.
    let _ = rustix::process::setsid();
    // So that no file system is kept busy for as long as sessions live.
    rustix::process::chdir("/")?;
    become_subreaper()?;
    let Some((max_children, control_groups, keep)) = first_word(&socket)? else { return Ok(()) };
    let groups = if control_groups { Groups::prepare() } else { Groups::default() };
    let mut supervising = Supervising::new(socket, signals, groups, max_children);
    supervising.configure(max_children, keep);
    let groups = supervising.groups.directories().into_iter().map(PathBuf::into_os_string);
    supervising.tell(&Event::Ready { groups: groups.collect() }, Vec::new());
    supervising.run()
}

/// Takes the socket from stdin and replaces stdin, since children must not inherit the socket.
fn take_socket() -> io::Result<OwnedFd> {
    let not_ours = |_| io::Error::new(io::ErrorKind::InvalidInput, NOT_OURS);
    let kind = sockopt::socket_type(io::stdin()).map_err(not_ours)?;
    if kind != channel::KIND {
        return Err(not_ours(rustix::io::Errno::INVAL));
    }
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(OpenOptions::new().read(true).open("/dev/null")?)?;
    Ok(socket)
}

/// Blocks all signals except SIGKILL and SIGSTOP, among them Ctrl-C in the daemon's terminal and
/// the signals that a service manager sends to all processes. The daemon still has sessions to end
/// in good order.
fn hold_signals() -> io::Result<EndedChildren> {
    SigSet::all().thread_block()?;
    EndedChildren::watch()
}

/// The limits and options of the daemon.
type FirstWord = (u32, bool, Option<KeepOrder>);

/// Waits for the daemon's first message. `None` if the daemon is gone without one.
fn first_word(socket: &OwnedFd) -> io::Result<Option<FirstWord>> {
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    let limit = FIRST_WORD.try_into().map_err(io::Error::other)?;
    if poll(&mut polled, Some(&limit))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut buffer = vec![0; MAX_REQUEST];
    let (length, _) = channel::receive(socket, &mut buffer)?;
    match Request::decode(&buffer[..length]) {
        Some(Request::Configure { max_children, control_groups, keep }) => {
            Ok(Some((max_children, control_groups, keep)))
        }
        None if length == 0 => Ok(None),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, NOT_OURS)),
    }
}
