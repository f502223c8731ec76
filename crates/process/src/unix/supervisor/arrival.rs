//! The next daemon: who it is, and what it gets.

use std::{
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use super::events::Supervising;
use crate::unix::{
    channel, kernel,
    messages::{Event, Hello, SECRET, VERSION, Welcome},
};

/// How long a connection may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest first message that is read.
const LONGEST_HELLO: usize = 256;

/// A connection that has not said yet who it is.
pub(super) struct Arrival {
    pub(super) socket: OwnedFd,
    pub(super) until: Instant,
}

impl Arrival {
    /// A connection of this process's user; `None` if it is another user's.
    pub(super) fn new(socket: OwnedFd) -> Option<Self> {
        let own = rustix::process::geteuid().as_raw();
        let is_own = kernel::peer(&socket).is_ok_and(|(_, uid)| uid == own);
        is_own.then(|| Self { socket, until: Instant::now() + PATIENCE })
    }

    /// Reads who it is, and returns the answer for it. `None`: it has said nothing yet. `Some(None)`: it may not take over, and
    /// gets no answer.
    pub(super) fn read(&self, secret: &[u8; SECRET]) -> Option<Option<Welcome>> {
        let mut packet = [0; LONGEST_HELLO];
        let length = match channel::receive(&self.socket, &mut packet) {
            Ok((length, _)) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return (self.until <= Instant::now()).then_some(None);
            }
            Err(_) => return Some(None),
        };
        let hello = packet.get(..length).and_then(Hello::decode);
        Some(hello.filter(|hello| is_same(&hello.secret, secret)).map(|hello| {
            match hello.version == VERSION {
                true => Welcome::Yes,
                false => Welcome::OtherVersion,
            }
        }))
    }
}

impl Supervising {
    /// Answers a daemon. Returns whether it has the sessions now.
    pub(super) fn welcome(&mut self, socket: OwnedFd, welcome: Welcome) -> bool {
        if channel::send(&socket, &[welcome as u8], &[]).is_err() {
            return false;
        }
        // The socket stays open until everything is ended: the daemon waits for that.
        self.socket = socket;
        if welcome == Welcome::OtherVersion {
            return false;
        }
        self.tell_held();
        true
    }

    fn tell_held(&mut self) {
        let groups = self.groups.directories().into_iter().map(Into::into);
        self.tell(&Event::Ready { groups: groups.collect() }, Vec::new());
        let held = self.held().into_iter();
        let held: Vec<_> = held
            .filter_map(|(id, ends)| {
                let session = self.sessions.get(&id)?;
                let (pid, start_time, exit) = (session.pid, session.start_time, session.exit);
                Some((Event::Held { id, pid, start_time, exit }, ends.for_daemon().ok()?))
            })
            .collect();
        for (event, with) in held {
            self.tell(&event, with);
        }
        self.tell(&Event::AllHeld, Vec::new());
    }
}

/// Compares secrets without telling by the time how much of them is the same.
fn is_same(one: &[u8; SECRET], other: &[u8; SECRET]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(differences) == 0
}
