//! The time between two daemons: output is read into the sessions' journals, as much as they hold, and
//! ends are remembered, until the next daemon takes the sessions over or the time is up.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use uuid::Uuid;

use super::{
    arrival::Arrival, event_queue::EventQueue, events::Supervising, spawning::SessionEnds,
};
use crate::unix::{
    channel, client,
    journal::{HeldOutput, MOST_HELD},
    messages::{KeepOrder, SECRET},
};

/// The most output of all sessions that is held. Beyond it their programs wait, as for a terminal that
/// takes nothing.
const MOST_IN_ALL: usize = 16 * MOST_HELD;
/// The most bytes of one read.
const PIECE: usize = 4096;
/// The most connections that may say who they are at the same time.
const MOST_ARRIVALS: usize = 8;

/// How sessions are kept while there is no daemon.
pub(super) struct Keeping {
    pub(super) span: Duration,
    pub(super) secret: [u8; SECRET],
    path: PathBuf,
    /// It listens all the time, so that the next daemon is not too early.
    listener: OwnedFd,
}

impl Keeping {
    fn new(order: &KeepOrder) -> io::Result<Self> {
        let dir = Path::new(&order.dir);
        let listener = channel::listen(dir, client::SOCKET)?;
        let path = dir.join(client::SOCKET);
        Ok(Self { span: order.span, secret: order.secret, path, listener })
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The outputs that are held.
struct Outputs {
    by_session: HashMap<Uuid, HeldOutput>,
    /// The bytes of all of them.
    bytes: usize,
}

impl Supervising {
    /// Sets what a daemon may change.
    pub(super) fn configure(&mut self, max_children: u32, keep: Option<KeepOrder>) {
        self.max_children = max_children;
        let Some(order) = keep else { return self.keep = None };
        match &mut self.keep {
            // The next daemon may be connecting already: the socket stays.
            Some(keeping) if keeping.secret == order.secret => keeping.span = order.span,
            keeping => {
                *keeping = Keeping::new(&order).inspect_err(complain).ok();
            }
        }
    }

    /// Holds all sessions. Returns whether a daemon has taken them over.
    pub(super) fn hold(&mut self) -> io::Result<bool> {
        let Some(until) = self.keep.as_ref().map(|keep| Instant::now() + keep.span) else {
            return Ok(false);
        };
        self.begin_to_hold();
        let mut outputs = self.outputs();
        let mut arrivals = Vec::new();
        while Instant::now() < until {
            // Nothing is left that a daemon could take over.
            if self.sessions.values().all(|session| session.ends.is_none()) {
                break;
            }
            self.wait_for_any(&outputs, &arrivals, until)?;
            self.reap();
            self.advance(Instant::now());
            self.outgoing = EventQueue::default();
            self.read_all(&mut outputs);
            if let Some(is_taken) = self.receive(&mut arrivals) {
                self.is_holding = !is_taken;
                return Ok(is_taken);
            }
        }
        Ok(false)
    }

    /// Forgets what concerned the dead daemon only.
    fn begin_to_hold(&mut self) {
        self.is_holding = true;
        self.outgoing = EventQueue::default();
        while let Some(starting) = self.starting.first() {
            let id = starting.id;
            self.starting.swap_remove(0);
            self.give_up_start(id);
        }
        // The stops go on, but nobody waits for their answers.
        self.stops.iter_mut().for_each(|stop| stop.request = None);
        // Nobody may wait for the end of what the daemon wrote.
        if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stderr(nowhere);
        }
    }

    fn outputs(&self) -> Outputs {
        let ends = self.sessions.iter().filter_map(|(id, it)| Some((*id, it.ends.as_ref()?)));
        let begun = ends.filter_map(|(id, it)| Some((id, HeldOutput::begin(&it.journal).ok()?)));
        let by_session: HashMap<_, _> = begun.collect();
        let bytes = by_session.values().map(|output| MOST_HELD - output.room()).sum();
        Outputs { by_session, bytes }
    }

    fn wait_for_any(
        &self,
        outputs: &Outputs,
        arrivals: &[Arrival],
        until: Instant,
    ) -> io::Result<()> {
        let mut polled = vec![PollFd::new(&self.signals, PollFlags::IN)];
        // At the bound the listener is not polled: a connection that is not taken would wake the loop again.
        if let Some(keep) = self.keep.as_ref().filter(|_| arrivals.len() < MOST_ARRIVALS) {
            polled.push(PollFd::new(&keep.listener, PollFlags::IN));
        }
        polled.extend(arrivals.iter().map(|it| PollFd::new(&it.socket, PollFlags::IN)));
        polled.extend(self.readable(outputs).map(|(_, end)| PollFd::new(end, PollFlags::IN)));
        let patience = arrivals.iter().map(|it| it.until);
        let next = patience.chain(self.next_time()).chain([until]).min().unwrap_or(until);
        let timeout = next.saturating_duration_since(Instant::now()).try_into().ok();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The sessions whose output is read, as long as there is room.
    fn readable<'a>(
        &'a self,
        outputs: &'a Outputs,
    ) -> impl Iterator<Item = (Uuid, &'a OwnedFd)> + 'a {
        let has_room = move |id: &Uuid| {
            let output = outputs.by_session.get(id);
            outputs.bytes + PIECE <= MOST_IN_ALL && output.is_some_and(|it| it.room() >= PIECE)
        };
        let sessions = self.sessions.iter().filter(move |(id, _)| has_room(id));
        sessions.filter_map(|(id, it)| Some((*id, it.ends.as_ref()?.output()?)))
    }

    fn read_all(&self, outputs: &mut Outputs) {
        let ready = self.readable(outputs).filter(|(_, end)| is_readable(end));
        let ready: Vec<Uuid> = ready.map(|(id, _)| id).collect();
        let mut piece = [0; PIECE];
        let mut over = Vec::new();
        for id in ready {
            let ends = self.sessions.get(&id).and_then(|session| session.ends.as_ref());
            let Some(end) = ends.and_then(SessionEnds::output) else { continue };
            let read = match rustix::io::read(end.as_fd(), &mut piece) {
                Err(Errno::AGAIN | Errno::INTR) => continue,
                // The output has ended. The next daemon reads the same.
                Ok(0) | Err(_) => {
                    over.push(id);
                    continue;
                }
                Ok(read) => read,
            };
            let Some(output) = outputs.by_session.get_mut(&id) else { continue };
            if output.append(&piece[..read]).is_err() {
                over.push(id);
            }
            outputs.bytes += read;
        }
        over.iter().for_each(|id| drop(outputs.by_session.remove(id)));
    }

    /// Lets daemons appear. Returns whether one has taken the sessions over, or `false` if it speaks
    /// another version; `None` if none has come.
    fn receive(&mut self, arrivals: &mut Vec<Arrival>) -> Option<bool> {
        let keep = self.keep.as_ref()?;
        if arrivals.len() < MOST_ARRIVALS
            && let Ok(socket) = channel::accept(&keep.listener)
        {
            arrivals.extend(Arrival::new(socket));
        }
        let secret = keep.secret;
        let mut at = 0;
        while let Some(arrival) = arrivals.get(at) {
            match arrival.read(&secret) {
                None => at += 1,
                Some(None) => drop(arrivals.swap_remove(at)),
                Some(Some(welcome)) => {
                    let socket = arrivals.swap_remove(at).socket;
                    return Some(self.welcome(socket, welcome));
                }
            }
        }
        None
    }

    /// The ends of a session that the next daemon gets.
    pub(super) fn held(&self) -> Vec<(Uuid, &SessionEnds)> {
        let held = self.sessions.iter();
        held.filter_map(|(id, session)| Some((*id, session.ends.as_ref()?))).collect()
    }
}

fn is_readable(end: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(end, PollFlags::IN)];
    let at_once = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Says on standard error that sessions will not be kept.
fn complain(error: &io::Error) {
    use io::Write as _;
    let _ = writeln!(io::stderr(), "supervisor: sessions will end with the server: {error}");
}
