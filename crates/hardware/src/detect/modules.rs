//! The memory modules, as the firmware lists them (SMBIOS 3.7, section 7.18: type 17, "Memory
//! Device"). Only root may read the list; others go without.

use crate::Root;

const TABLES: &str = "sys/firmware/dmi/tables/DMI";

/// The type of a structure that describes a memory module, and of the one that ends the table.
const MEMORY_DEVICE: u8 = 17;
const END: u8 = 127;

/// The most structures that are looked at.
const MAX_STRUCTURES: usize = 4096;

/// The width of the memory of a machine with up to four modules, in bits: two channels, however
/// many modules each has. One with more modules is a server with a channel for each.
const TWO_CHANNELS: u32 = 128;
const FEW_MODULES: usize = 4;

/// The most channels of a socket that is made.
const MAX_WIDTH: u32 = 12 * 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Module {
    /// Data bits, without those for correction.
    width: u32,
    /// Millions of transfers a second.
    rate: u32,
}

/// How fast the machine's memory is read at best in GB/s; `None` if that is not known.
pub(super) fn bandwidth_gbs(root: &Root) -> Option<f64> {
    bandwidth(&modules(&root.bytes(TABLES)?))
}

fn bandwidth(modules: &[Module]) -> Option<f64> {
    let rate = modules.iter().map(|module| module.rate).min()?;
    let all: u32 = modules.iter().map(|module| module.width).sum();
    let channels = if modules.len() <= FEW_MODULES { TWO_CHANNELS } else { MAX_WIDTH };
    Some(f64::from(rate) * f64::from(all.min(channels)) / 8.0 / 1000.0)
}

fn modules(table: &[u8]) -> Vec<Module> {
    let structures = Structures { rest: table }.take(MAX_STRUCTURES);
    structures.filter_map(module).collect()
}

/// The module that a structure describes; `None` for an empty socket, and for anything else.
fn module(structure: &[u8]) -> Option<Module> {
    let word = |at: usize| -> Option<u16> {
        Some(u16::from_le_bytes(structure.get(at..at + 2)?.try_into().ok()?))
    };
    let known = |at: usize| word(at).filter(|value| !matches!(value, 0 | 0xffff));
    (*structure.first()? == MEMORY_DEVICE).then_some(())?;
    // The size; 0 is an empty socket.
    (word(0x0c)? != 0).then_some(())?;
    let width = u32::from(known(0x0a)?);
    // The rate it is driven at, if known, is less than the one it was made for.
    let rate = u32::from(known(0x20).or_else(|| known(0x15))?);
    (width <= 64 && rate <= 20_000).then_some(Module { width, rate })
}

/// The formatted parts of the structures: each is followed by its texts, which end in two zeros.
struct Structures<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Structures<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(*self.rest.get(1)?);
        let structure = self.rest.get(..length).filter(|_| length >= 4)?;
        let texts = self.rest.get(length..)?;
        let end = texts.windows(2).position(|two| two == [0, 0])?;
        self.rest = texts.get(end + 2..)?;
        (structure.first() != Some(&END)).then_some(structure)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::MadeUp;

    fn device(size: u16, width: u16, speed: u16, configured: u16) -> Vec<u8> {
        let mut structure = vec![0; 0x28];
        structure[0] = MEMORY_DEVICE;
        structure[1] = 0x28;
        structure[0x0a..0x0c].copy_from_slice(&width.to_le_bytes());
        structure[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
        structure[0x15..0x17].copy_from_slice(&speed.to_le_bytes());
        structure[0x20..0x22].copy_from_slice(&configured.to_le_bytes());
        structure.extend(b"DIMM 0\0Bank 0\0\0");
        structure
    }

    fn of_table(devices: &[Vec<u8>]) -> Option<f64> {
        let mut table = vec![0, 4, 0, 0, 0, 0];
        table.extend(devices.concat());
        table.extend([END, 4, 0, 0, 0, 0]);
        let made = MadeUp::new();
        made.file(TABLES, table);
        bandwidth_gbs(&made.root())
    }

    #[test]
    fn two_channels_are_filled_however_many_modules_there_are() {
        let module = device(16384, 64, 5600, 4800);
        let empty = device(0, 64, 0, 0);
        assert_eq!(of_table(std::slice::from_ref(&module)), Some(38.4));
        assert_eq!(of_table(&[module.clone(), empty, module.clone()]), Some(76.8));
        assert_eq!(of_table(&vec![module; 4]), Some(76.8));
    }

    #[test]
    fn a_server_has_a_channel_for_each_module_and_soldered_memory_its_width() {
        let server = device(32767, 64, 3200, 3200);
        assert_eq!(of_table(&vec![server; 8]), Some(204.8));
        assert_eq!(of_table(&vec![device(4096, 32, 6400, 0); 4]), Some(102.4));
    }

    #[test]
    fn missing_facts_are_not_guessed() {
        assert_eq!(of_table(&[]), None);
        assert_eq!(of_table(&[device(16384, 0xffff, 3200, 3200), device(16384, 64, 0, 0)]), None);
        assert_eq!(bandwidth_gbs(&MadeUp::new().root()), None);
    }

    proptest! {
        #[test]
        fn no_table_is_too_broken(
            table in proptest::collection::vec(prop_oneof![Just(0), Just(17), any::<u8>()], 0..512)
        ) {
            let _ = bandwidth(&modules(&table));
        }
    }
}
