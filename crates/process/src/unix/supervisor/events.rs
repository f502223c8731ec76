//! The event loop, and the requests of the daemon.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, poll};
use uuid::Uuid;

use super::{
    event_queue::EventQueue,
    family::Family,
    holding::Keeping,
    spawning::{PendingStart, SessionEnds, SessionProcesses},
    stopping::PendingStop,
};
use crate::{
    signal::Signal,
    unix::{
        cgroup::Groups,
        channel,
        kernel::EndedChildren,
        messages::{Event, MAX_MEMBERS, MAX_REQUEST, Request},
        processes,
    },
};

/// The most requests that are handled before the children get their turn.
const REQUESTS_AT_ONCE: usize = 16;

/// The state of a supervisor.
pub(super) struct Supervising {
    pub(super) socket: OwnedFd,
    pub(super) signals: EndedChildren,
    pub(super) groups: Groups,
    pub(super) max_children: u32,
    /// How sessions are kept while there is no daemon; `None`: they are not.
    pub(super) keep: Option<Keeping>,
    /// Whether there is no daemon just now.
    pub(super) is_holding: bool,
    pub(super) sessions: HashMap<Uuid, SessionProcesses>,
    /// The living first processes of sessions, by process id.
    pub(super) leaders: HashMap<u32, Uuid>,
    pub(super) starting: Vec<PendingStart>,
    pub(super) stops: Vec<PendingStop>,
    /// Whether a process has ended since the last scan of the family, and the time of that scan.
    pub(super) has_changed: bool,
    pub(super) last_scan: Instant,
    /// Whether more children wait to be reaped.
    pub(super) has_more: bool,
    /// The request to end everything, if there was one.
    pub(super) ending: Option<u64>,
    pub(super) outgoing: EventQueue,
    pub(super) buffer: Vec<u8>,
}

#[derive(Clone, Copy)]
struct WakeUp {
    requests: bool,
    is_hung_up: bool,
}

impl Supervising {
    pub(super) fn new(
        socket: OwnedFd,
        signals: EndedChildren,
        groups: Groups,
        max_children: u32,
    ) -> Self {
        Self {
            socket,
            signals,
            groups,
            max_children,
            keep: None,
            is_holding: false,
            sessions: HashMap::new(),
            leaders: HashMap::new(),
            starting: Vec::new(),
            stops: Vec::new(),
            has_changed: false,
            last_scan: Instant::now(),
            has_more: false,
            ending: None,
            outgoing: EventQueue::default(),
            buffer: vec![0; MAX_REQUEST],
        }
    }

    /// Runs until the daemon asks for the end, or is gone.
    pub(super) fn run(&mut self) -> io::Result<()> {
        loop {
            let is_gone = self.turn()?;
            if is_gone && self.ending.is_none() && self.hold()? {
                continue;
            }
            if is_gone || self.is_at_the_end() {
                self.end_everything();
                return self.say_good_bye();
            }
        }
    }

    /// Queues an event for the daemon; never waits.
    pub(super) fn tell(&mut self, event: &Event, with: Vec<OwnedFd>) {
        self.outgoing.push(event.encode(), with);
    }

    /// Scans all processes, and assigns them to sessions.
    pub(super) fn look(&mut self) -> Family {
        (self.has_changed, self.last_scan) = (false, Instant::now());
        Family::look(std::process::id(), &self.sessions, &self.leaders, &self.groups)
    }

    /// One round: sends, waits, and handles what happened. Returns whether the daemon is gone.
    fn turn(&mut self) -> io::Result<bool> {
        if self.outgoing.flush(&self.socket).is_err() {
            return Ok(true);
        }
        let awake = self.wait()?;
        // Before the ends are reaped: a child that failed to start has reported first, and then ended.
        self.read_reports();
        self.reap();
        let is_gone = awake.is_hung_up || (awake.requests && !self.take_requests());
        self.advance(Instant::now());
        Ok(is_gone)
    }

    fn wait(&self) -> io::Result<WakeUp> {
        let mut interest = PollFlags::empty();
        // A daemon that does not read its answers gets no more requests read: that bounds the queue.
        interest.set(PollFlags::IN, !self.outgoing.is_full());
        interest.set(PollFlags::OUT, self.outgoing.is_blocked());
        let mut polled =
            vec![PollFd::new(&self.socket, interest), PollFd::new(&self.signals, PollFlags::IN)];
        polled.extend(self.starting.iter().map(|it| PollFd::new(&it.report, PollFlags::IN)));
        let timeout = self
            .next_time()
            .and_then(|time| time.saturating_duration_since(Instant::now()).try_into().ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = polled[0].revents();
        Ok(WakeUp {
            requests: happened.contains(PollFlags::IN),
            is_hung_up: happened.intersects(PollFlags::HUP | PollFlags::ERR),
        })
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        let starting = self.starting.iter().map(|it| it.deadline);
        let stops = self.stops.iter().map(|it| it.next);
        let retry = self.outgoing.retry_at();
        let at_once = self.has_more.then(Instant::now);
        starting.chain(stops).chain(self.next_look()).chain(retry).chain(at_once).min()
    }

    /// Returns whether the daemon still exists.
    fn take_requests(&mut self) -> bool {
        for _ in 0..REQUESTS_AT_ONCE {
            if self.outgoing.is_full() {
                return true;
            }
            match channel::receive(&self.socket, &mut self.buffer) {
                Ok((0, _)) => return false,
                Ok((length, _)) => match Request::decode(&self.buffer[..length]) {
                    Some(request) => self.take(request),
                    None => return false,
                },
                // Any other error means that the daemon is gone.
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn take(&mut self, request: Request) {
        match request {
            Request::Configure { max_children, keep, .. } => self.configure(max_children, keep),
            Request::Spawn { request, order } => self.spawn(request, &order),
            Request::Signal { request, id, signal } => {
                let count = self.signal_group(id, signal);
                self.tell(&Event::Done { request, count }, Vec::new());
            }
            Request::Stop { request, id, grace } => self.stop(Some(request), id, grace),
            Request::Members { request, id } => self.tell_members(request, id),
            Request::CloseInput { request, id } => self.close_input(request, id),
            Request::Shutdown { request, grace } => self.shut_down(request, grace),
        }
    }

    /// Signals the process group of a session. Nobody else can have the group's id while the
    /// session's first process lives, so the signal is sent only then.
    fn signal_group(&self, id: Uuid, signal: Signal) -> u32 {
        let alive = self.sessions.get(&id).filter(|session| session.is_alive);
        let group = alive.and_then(|session| processes::to_pid(session.pid));
        let sent = group.map(|pid| rustix::process::kill_process_group(pid, signal.raw()));
        u32::from(matches!(sent, Some(Ok(()))))
    }

    fn tell_members(&mut self, request: u64, id: Uuid) {
        let family = self.look();
        let pids = family.of(id).iter().map(|stat| stat.pid).take(MAX_MEMBERS).collect();
        self.tell(&Event::Members { request, pids }, Vec::new());
    }

    fn close_input(&mut self, request: u64, id: Uuid) {
        let ends = self.sessions.get_mut(&id).and_then(|session| session.ends.as_mut());
        // A failure leaves the input open, and the process is ended by a signal later.
        let _ = ends.map(SessionEnds::close_input);
        self.tell(&Event::Done { request, count: 0 }, Vec::new());
    }

    fn shut_down(&mut self, request: u64, grace: Duration) {
        // No process is started from now on.
        self.ending = Some(request);
        let ids: Vec<Uuid> = self.sessions.keys().copied().collect();
        ids.into_iter().for_each(|id| self.stop(None, id, grace));
    }

    fn is_at_the_end(&self) -> bool {
        self.ending.is_some() && self.stops.is_empty() && self.starting.is_empty()
    }

    /// Answers the request to end everything, if there was one. A daemon that does not read is not
    /// waited for.
    fn say_good_bye(&mut self) -> io::Result<()> {
        if let Some(request) = self.ending {
            self.tell(&Event::Done { request, count: 0 }, Vec::new());
            let _ = self.outgoing.flush(&self.socket);
        }
        Ok(())
    }
}
