//! The links between machines, and the models of each.
//!
//! 0 to 7 meet at the relay. 0 to 3 have listeners besides, so that others reach them directly; between 4
//! to 7 everything goes over the relay. 8 and 9 are on the local network only: each knows one machine, so
//! that what they ask for reaches nobody else, unless a request goes over two links.

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
pub(crate) const fn told_of(machine: usize) -> &'static [usize] {
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
    let told = told_of(one).contains(&other) || told_of(other).contains(&one);
    one != other && (met || told)
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
