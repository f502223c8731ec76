//! How much memory models may take together.

use std::{fmt, iter::Sum, ops::Add};

use hardware::Machine;

const GIB: f64 = (1_u64 << 30) as f64;

/// The share of a GPU's memory that models do not get: it is for the screen, and for what servers take beside
/// their models.
const VRAM_RESERVE: f64 = 0.05;
/// The share of the machine's memory that is left to other programs.
const RAM_RESERVE: f64 = 0.25;

/// An amount of memory in bytes, apart for a machine's GPUs and for the machine itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Of the GPUs that run models.
    pub vram: u64,
    /// Of the machine.
    pub ram: u64,
}

impl Memory {
    /// All the memory of a machine. A machine whose memory is unknown counts as having enough.
    pub fn of(machine: &Machine) -> Self {
        let bytes = |gib: f64| (gib.max(0.0) * GIB) as u64;
        let vram = bytes(machine.gpu_vram_gb.unwrap_or(0.0));
        let ram = if machine.total_ram_gb > 0.0 { bytes(machine.total_ram_gb) } else { u64::MAX };
        Self { vram, ram }
    }

    /// The part that models may take, by default: 95 % of the GPUs' memory, 75 % of the machine's.
    #[must_use]
    pub fn for_models(self) -> Self {
        let share = |bytes: u64, reserve: f64| (bytes as f64 * (1.0 - reserve)) as u64;
        Self { vram: share(self.vram, VRAM_RESERVE), ram: share(self.ram, RAM_RESERVE) }
    }

    /// Both together.
    pub const fn total(self) -> u64 {
        self.vram.saturating_add(self.ram)
    }

    /// The memory that a model of this size takes. The GPUs' memory is filled first, and the rest goes into
    /// the machine's.
    #[must_use]
    pub(crate) fn need(self, bytes: u64) -> Self {
        let vram = bytes.min(self.vram);
        Self { vram, ram: bytes - vram }
    }

    /// The larger of the two, for each kind of memory.
    #[must_use]
    pub(crate) fn at_least(self, other: Self) -> Self {
        Self { vram: self.vram.max(other.vram), ram: self.ram.max(other.ram) }
    }

    /// Whether this memory has room for `need`.
    pub(crate) const fn holds(self, need: Self) -> bool {
        need.vram <= self.vram && need.ram <= self.ram
    }
}

impl From<&Machine> for Memory {
    fn from(machine: &Machine) -> Self {
        Self::of(machine)
    }
}

impl Add for Memory {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (vram, ram) =
            (self.vram.saturating_add(other.vram), self.ram.saturating_add(other.ram));
        Self { vram, ram }
    }
}

impl Sum for Memory {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// A number of bytes for people: `4.2 GB`.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            1_000_000_000.. => write!(f, "{:.1} GB", bytes / 1e9),
            1_000_000.. => write!(f, "{:.0} MB", bytes / 1e6),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_goes_to_the_gpus_first() {
        let memory = Memory { vram: 10, ram: 100 };
        assert_eq!(memory.need(7), Memory { vram: 7, ram: 0 });
        assert_eq!(memory.need(30), Memory { vram: 10, ram: 20 });
        assert!(memory.holds(memory.need(110)) && !memory.holds(memory.need(111)));
        assert_eq!(Memory { vram: 0, ram: 100 }.need(30), Memory { vram: 0, ram: 30 });
    }

    #[test]
    fn some_is_left_to_others() {
        let all = Memory { vram: 1000, ram: 1000 };
        assert_eq!(all.for_models(), Memory { vram: 950, ram: 750 });
    }

    #[test]
    fn a_machine_that_does_not_tell_has_enough() {
        let mut machine = Machine::detect();
        (machine.gpu_vram_gb, machine.total_ram_gb) = (Some(24.0), 64.0);
        assert_eq!(Memory::of(&machine), Memory { vram: 24 << 30, ram: 64 << 30 });
        (machine.gpu_vram_gb, machine.total_ram_gb) = (None, 0.0);
        assert!(Memory::of(&machine).for_models().holds(Memory { vram: 0, ram: 1 << 50 }));
    }

    #[test]
    fn sizes_are_told_in_words() {
        let told = [500, 4_200_000, 4_240_000_000].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(told, ["500 bytes", "4 MB", "4.2 GB"]);
    }
}
