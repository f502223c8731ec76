//! The links between machines, the models of each, and how long one lets a request wait, and so a client must wait at
//! most.
//!
//! 0 to 7 meet at the relay. 0 to 3 have listeners besides, so that others reach them directly; between 4
//! to 7 everything goes over the relay. 8 and 9 are on the local network only: each knows one machine, so
//! that what they ask for reaches nobody else, unless a request goes over two links.

use std::time::Duration;

use testkit::lab::Patience;

pub(crate) const MACHINES: usize = 10;

const ALL: &str = "all";

const HALF: &str = "half";

pub(crate) const fn listens(machine: usize) -> bool {
    machine < 4 || machine >= 8
}

pub(crate) const fn at_relay(machine: usize) -> bool {
    machine < 8
}

/// The machines whose address a machine gets at its start; they are started before it.
pub(crate) const fn known_to(machine: usize) -> &'static [usize] {
    match machine {
        1 | 8 => &[0],
        2 => &[0, 1],
        3 => &[2],
        9 => &[1],
        _ => &[],
    }
}

pub(crate) fn linked(one: usize, other: usize) -> bool {
    let met = at_relay(one) && at_relay(other);
    let is_known = known_to(one).contains(&other) || known_to(other).contains(&one);
    one != other && (met || is_known)
}

pub(crate) fn peers(of: usize) -> impl Iterator<Item = usize> {
    (0..MACHINES).filter(move |other| linked(of, *other))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    All,
    Half,
    Only(usize),
}

impl Model {
    pub(crate) fn name(self) -> String {
        match self {
            Self::All => ALL.to_owned(),
            Self::Half => HALF.to_owned(),
            Self::Only(machine) => format!("only-{machine}"),
        }
    }

    pub(crate) const fn is_at(self, machine: usize) -> bool {
        match self {
            Self::All => true,
            Self::Half => machine.is_multiple_of(2),
            Self::Only(only) => only == machine,
        }
    }

    pub(crate) fn of(machine: usize) -> Vec<String> {
        let all = [Self::All, Self::Half, Self::Only(machine)];
        all.into_iter().filter(|model| model.is_at(machine)).map(Self::name).collect()
    }
}

/// How long a server waits. A request may wait in queues for longer than a peer behind a relay, which was busy when it was
/// last heard, takes to say that it is free again.
const PATIENCE: Patience = Patience {
    queue: Duration::from_secs(25),
    request: Duration::from_secs(20),
    idle: Duration::from_secs(20),
    requeues: 3,
};

/// How long a machine that is stopped waits for what is in flight.
pub(crate) const DRAIN: Duration = Duration::from_secs(15);

/// The longest that a machine is frozen: longer than its peers wait for a sign of it.
pub(crate) const FROZEN: Duration = Duration::from_secs(40);

/// The time that the machine may take beside that, however busy it is.
pub(crate) const BUSY: Duration = Duration::from_secs(60);

/// A request that has not ended by then hangs. It may be sent to a machine that is frozen itself meanwhile.
pub(crate) const HANGS: Duration = PATIENCE.longest().saturating_add(FROZEN).saturating_add(BUSY);

/// The flags of a machine of this plan.
pub(crate) fn flags() -> Vec<String> {
    let drain = ("--drain-timeout-secs", DRAIN.as_secs().to_string());
    let flags = PATIENCE.flags().into_iter().chain([drain]);
    flags.flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}
