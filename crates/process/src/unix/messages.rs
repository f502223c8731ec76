//! The messages between the daemon and the supervisor, one packet each.
//!
//! A daemon starts the supervisor from its own executable, so mostly both ends are the same binary. A
//! daemon that takes over the supervisor of an earlier one says its [`VERSION`] first, and goes on only
//! if it is the supervisor's.

use std::{ffi::OsString, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::{
    command::{Command, Stdio},
    signal::{Exit, Signal},
    unix::failure::Failure,
};

/// The size of the largest packet that the daemon sends: a command and a few numbers. A group id
/// takes up to five bytes here, but counts as four in a command's size.
pub(crate) const MAX_REQUEST: usize = crate::MAX_COMMAND / 4 * 5 + 1024;
/// The size of the largest packet that the supervisor sends.
pub(crate) const MAX_EVENT: usize = 80 * 1024;
/// The most process ids that fit into an event, at five bytes each.
pub(crate) const MAX_MEMBERS: usize = (MAX_EVENT - 64) / 5;

/// The version of these messages and of the journals. It changes with them, which a test checks.
pub(crate) const VERSION: u32 = 1;
/// The beginning of the first message of a daemon that takes a supervisor over. In all versions the
/// version follows, four bytes with the lowest first, and the secret.
const HELLO: &[u8; 16] = b"warren-takeover\0";

/// A message of the daemon. The daemon numbers its requests, and the answers repeat the number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The first message, sent only once.
    Configure {
        max_children: u32,
        control_groups: bool,
        keep: Option<KeepOrder>,
    },
    Spawn {
        request: u64,
        order: Order,
    },
    Signal {
        request: u64,
        id: Uuid,
        signal: Signal,
    },
    Stop {
        request: u64,
        id: Uuid,
        grace: Duration,
    },
    Members {
        request: u64,
        id: Uuid,
    },
    Shutdown {
        request: u64,
        grace: Duration,
    },
    /// The daemon has closed its end of a session's input, and nobody will write to it any more.
    CloseInput {
        request: u64,
        id: Uuid,
    },
}

/// How sessions are kept while there is no daemon.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeepOrder {
    /// For how long.
    pub(crate) span: Duration,
    /// The directory of the socket at which the next daemon appears.
    pub(crate) dir: OsString,
    /// The secret that the daemon has to know.
    pub(crate) secret: [u8; SECRET],
}

/// The length of a secret between daemons, in bytes.
pub(crate) const SECRET: usize = 32;

/// Shows no secret.
impl std::fmt::Debug for KeepOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeepOrder").field("span", &self.span).field("dir", &self.dir).finish()
    }
}

/// The first message of a daemon that takes a supervisor over.
pub(crate) struct Hello {
    pub(crate) version: u32,
    pub(crate) secret: [u8; SECRET],
}

impl Hello {
    pub(crate) fn encode(&self) -> Vec<u8> {
        [&HELLO[..], &self.version.to_le_bytes(), &self.secret].concat()
    }

    pub(crate) fn decode(packet: &[u8]) -> Option<Self> {
        let rest = packet.strip_prefix(HELLO)?;
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let secret = rest.first_chunk::<SECRET>()?;
        Some(Self { version: u32::from_le_bytes(*version), secret: *secret })
    }
}

/// A supervisor's answer to a [`Hello`], one byte in all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Welcome {
    /// The daemon has the supervisor now.
    Yes = 1,
    /// The versions differ. The supervisor ends everything and itself.
    OtherVersion = 2,
}

/// A command in the form that the supervisor needs: the user is given by numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: Uuid,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) working_dir: OsString,
    pub(crate) terminal: Option<(u16, u16)>,
    pub(crate) identity: Option<Identity>,
    pub(crate) max_processes: Option<u32>,
}

/// The user that a child becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

/// A message of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The supervisor is ready. All its processes will be below these directories of control
    /// groups.
    Ready {
        groups: Vec<OsString>,
    },
    /// A process was started. Descriptors come with this event: the terminal's master, or the
    /// daemon's ends of stdin, stdout and stderr; and last the session's journal.
    Started {
        request: u64,
        pid: u32,
        start_time: u64,
    },
    Failed {
        request: u64,
        failure: Failure,
    },
    Exited {
        id: Uuid,
        exit: Exit,
    },
    /// A request was carried out. `count` is the number of groups that a signal was sent to, or of
    /// processes left after a stop.
    Done {
        request: u64,
        count: u32,
    },
    Members {
        request: u64,
        pids: Vec<u32>,
    },
    /// A process that an earlier daemon started. The same descriptors come with it as with `Started`.
    Held {
        id: Uuid,
        pid: u32,
        start_time: u64,
        exit: Option<Exit>,
    },
    /// There are no more such processes.
    AllHeld,
}

impl From<Command> for Order {
    fn from(command: Command) -> Self {
        Self {
            id: command.id,
            program: command.program,
            args: command.args,
            env: command.env,
            working_dir: command.working_dir.into(),
            terminal: match command.stdio {
                Stdio::Terminal { cols, rows } => Some((cols, rows)),
                Stdio::Pipes => None,
            },
            identity: command.run_as.filter(|user| !user.is_current()).map(|user| Identity {
                uid: user.uid,
                gid: user.gid,
                groups: user.groups,
            }),
            max_processes: command.max_processes,
        }
    }
}

impl Failure {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    pub(crate) fn decode(report: &[u8]) -> Option<Self> {
        decode(report)
    }
}

impl Request {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    pub(crate) fn decode(packet: &[u8]) -> Option<Self> {
        decode(packet)
    }
}

impl Event {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    pub(crate) fn decode(packet: &[u8]) -> Option<Self> {
        decode(packet)
    }
}

fn encode(message: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "only a list of unknown length fails, and here is none")]
    postcard::to_stdvec(message).expect("every list knows its length")
}

/// Decodes a message. A list grows with the bytes that are present, not with the length that it
/// claims, so a false length takes no memory.
fn decode<T: DeserializeOwned>(packet: &[u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(packet).ok()?;
    rest.is_empty().then_some(message)
}

#[cfg(test)]
mod tests;
