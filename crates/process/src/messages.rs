//! What daemon and supervisor say to each other, each message one packet.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use uuid::Uuid;

use crate::{
    codec::{Reader, Writer},
    command::{Command, Stdio},
    failure::Failure,
    signal::{Exit, Signal},
};

/// The largest packet that the daemon sends: a command, and its few numbers.
pub(crate) const MAX_REQUEST: usize = crate::MAX_COMMAND + 1024;
/// The largest packet that the supervisor sends.
pub(crate) const MAX_EVENT: usize = 64 * 1024;
/// The most process ids that fit into it.
pub(crate) const MAX_MEMBERS: usize = (MAX_EVENT - 64) / 4;

/// From the daemon. The numbers of requests are its own, and come back in the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// The first, and only once.
    Configure {
        max_children: u32,
        control_groups: bool,
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
}

/// A command as the supervisor needs it: the user by number.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Whom to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// It is ready; the directories of its control groups, which all its processes are below.
    Ready {
        groups: Vec<PathBuf>,
    },
    /// With the descriptors: the terminal's master, or our ends of stdin, stdout and stderr.
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
    /// A signal was sent to so many, or so many are left after a stop.
    Done {
        request: u64,
        count: u32,
    },
    Members {
        request: u64,
        pids: Vec<u32>,
    },
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

impl Request {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let tagged = Writer::starting_with;
        match self {
            Self::Configure { max_children, control_groups } => {
                tagged(0).u32(*max_children).flag(*control_groups)
            }
            Self::Spawn { request, order } => order.put(tagged(1).u64(*request)),
            Self::Signal { request, id, signal } => {
                tagged(2).u64(*request).id(*id).i32(signal.number())
            }
            Self::Stop { request, id, grace } => {
                tagged(3).u64(*request).id(*id).u64(milliseconds(*grace))
            }
            Self::Members { request, id } => tagged(4).u64(*request).id(*id),
            Self::Shutdown { request, grace } => tagged(5).u64(*request).u64(milliseconds(*grace)),
        }
        .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let from = &mut Reader::new(bytes);
        let message = match from.u8()? {
            0 => Self::Configure { max_children: from.u32()?, control_groups: from.flag()? },
            1 => Self::Spawn { request: from.u64()?, order: Order::take(from)? },
            2 => Self::Signal {
                request: from.u64()?,
                id: from.id()?,
                signal: Signal::from_number(from.i32()?)?,
            },
            3 => Self::Stop {
                request: from.u64()?,
                id: from.id()?,
                grace: Duration::from_millis(from.u64()?),
            },
            4 => Self::Members { request: from.u64()?, id: from.id()? },
            5 => Self::Shutdown { request: from.u64()?, grace: Duration::from_millis(from.u64()?) },
            _ => return None,
        };
        from.finish(message)
    }
}

impl Order {
    fn put(&self, to: Writer) -> Writer {
        let to = to.id(self.id).text(&self.program).list(&self.args, |to, arg| to.text(arg));
        let to = to.list(&self.env, |to, (name, value)| to.text(name).text(value));
        let to = to.text(&self.working_dir);
        let to = to.flag(self.terminal.is_some());
        let (cols, rows) = self.terminal.unwrap_or_default();
        let to = to.u16(cols).u16(rows);
        let to = to.list(self.identity.as_slice(), |to, identity| {
            to.u32(identity.uid).u32(identity.gid).list(&identity.groups, |to, gid| to.u32(*gid))
        });
        to.list(self.max_processes.as_slice(), |to, most| to.u32(*most))
    }

    fn take(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            id: from.id()?,
            program: from.text()?,
            args: from.list(Reader::text)?,
            env: from.list(|from| Some((from.text()?, from.text()?)))?,
            working_dir: from.text()?,
            terminal: {
                let is_terminal = from.flag()?;
                let size = (from.u16()?, from.u16()?);
                is_terminal.then_some(size)
            },
            identity: from.list(Identity::take)?.pop(),
            max_processes: from.list(Reader::u32)?.pop(),
        })
    }
}

impl Identity {
    fn take(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { uid: from.u32()?, gid: from.u32()?, groups: from.list(Reader::u32)? })
    }
}

impl Event {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let tagged = Writer::starting_with;
        match self {
            Self::Ready { groups } => tagged(0).list(groups, |to, path| to.text(path.as_os_str())),
            Self::Started { request, pid, start_time } => {
                tagged(1).u64(*request).u32(*pid).u64(*start_time)
            }
            Self::Failed { request, failure } => {
                tagged(2).u64(*request).u16(failure.step.into()).i32(failure.errno)
            }
            Self::Exited { id, exit } => {
                let (is_signal, number) = match *exit {
                    Exit::Code(code) => (false, code),
                    Exit::Signal(signal) => (true, signal),
                    Exit::Lost => (true, 0),
                };
                tagged(3).id(*id).flag(is_signal).i32(number)
            }
            Self::Done { request, count } => tagged(4).u64(*request).u32(*count),
            Self::Members { request, pids } => {
                tagged(5).u64(*request).list(pids, |to, pid| to.u32(*pid))
            }
        }
        .finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let from = &mut Reader::new(bytes);
        let message = match from.u8()? {
            0 => Self::Ready { groups: from.list(|from| from.text().map(PathBuf::from))? },
            1 => Self::Started { request: from.u64()?, pid: from.u32()?, start_time: from.u64()? },
            2 => Self::Failed {
                request: from.u64()?,
                failure: Failure {
                    step: u8::try_from(from.u16()?).ok()?.try_into().ok()?,
                    errno: from.i32()?,
                },
            },
            3 => Self::Exited { id: from.id()?, exit: exit(from.flag()?, from.i32()?) },
            4 => Self::Done { request: from.u64()?, count: from.u32()? },
            5 => Self::Members { request: from.u64()?, pids: from.list(Reader::u32)? },
            _ => return None,
        };
        from.finish(message)
    }
}

fn exit(is_signal: bool, number: i32) -> Exit {
    match (is_signal, number) {
        (false, code) => Exit::Code(code),
        (true, 0) => Exit::Lost,
        (true, signal) => Exit::Signal(signal),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
