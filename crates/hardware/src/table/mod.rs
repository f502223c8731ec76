//! Memory bandwidths and cores of chips by their names, as their makers publish them.
//!
//! An entry is found by words that follow one another in the name. The first that fits counts, so
//! the longer names of a family come before the shorter.

mod amd;
mod nvidia;
mod others;

use crate::Vendor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) bandwidth_gbs: u32,
    /// Cores of the GPU; 0 if the name does not tell.
    pub(crate) gpu_cores: u32,
}

/// Words of a name, GB/s, cores.
type Entry = (&'static str, u32, u32);

pub(crate) fn gpu(vendor: Vendor, name: &str) -> Option<Known> {
    let table: &[Entry] = match vendor {
        Vendor::Nvidia => nvidia::GPUS,
        Vendor::Amd => amd::GPUS,
        Vendor::Intel => others::INTEL_GPUS,
        Vendor::Apple => others::APPLE_CHIPS,
    };
    find(table, name)
}

/// The known facts about a processor of this name. Only those with built-in memory are listed.
pub(crate) fn processor(name: &str) -> Option<Known> {
    let apple = name.starts_with("Apple").then(|| find(others::APPLE_CHIPS, name)).flatten();
    apple.or_else(|| find(others::PROCESSORS, name))
}

fn find(table: &[Entry], name: &str) -> Option<Known> {
    let words = words(name);
    let fits = |entry: &&Entry| words.contains(&format!(" {} ", entry.0));
    let (_, bandwidth_gbs, gpu_cores) = *table.iter().find(fits)?;
    Some(Known { bandwidth_gbs, gpu_cores })
}

/// The words of a name in lower case, with a space before and after each.
fn words(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |all, word| all + word + " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_drivers_say_them_are_found() {
        let nvidia = |name| gpu(Vendor::Nvidia, name).map(|known| known.bandwidth_gbs);
        assert_eq!(nvidia("NVIDIA GeForce RTX 4090"), Some(1008));
        assert_eq!(nvidia("NVIDIA GeForce RTX 4090 Laptop GPU"), Some(576));
        assert_eq!(nvidia("NVIDIA GeForce RTX 4070 Ti SUPER"), Some(672));
        assert_eq!(nvidia("NVIDIA GeForce RTX 3060"), Some(360));
        assert_eq!(
            (nvidia("NVIDIA A10"), nvidia("NVIDIA A100-SXM4-80GB")),
            (Some(600), Some(2039))
        );
        assert_eq!((nvidia("NVIDIA L4"), nvidia("NVIDIA L40S")), (Some(300), Some(864)));
        assert_eq!(nvidia("NVIDIA H100 80GB HBM3"), Some(3350));
        assert_eq!((nvidia("NVIDIA GeForce RTX 9999"), nvidia("")), (None, None));
        let amd = |name| gpu(Vendor::Amd, name).map(|known| known.bandwidth_gbs);
        assert_eq!(amd("AMD Radeon RX 7900 XT/7900 XTX/7900 GRE"), Some(960));
        assert_eq!((amd("AMD Instinct MI300X"), amd("Radeon RX 7600 XT")), (Some(5300), Some(288)));
        let apple = |name| processor(name).map(|known| known.bandwidth_gbs);
        assert_eq!((apple("Apple M1"), apple("Apple M3 Max")), (Some(68), Some(400)));
        assert_eq!(apple("Apple MacBook Pro (14-inch, M2 Pro, 2023)"), Some(200));
        assert_eq!(apple("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S"), Some(256));
        assert_eq!(apple("Intel(R) Xeon(R) Processor"), None);
    }

    #[test]
    fn the_specs_of_a_card_are_told_whole() {
        let known = Known { bandwidth_gbs: 1008, gpu_cores: 16384 };
        assert_eq!(gpu(Vendor::Nvidia, "NVIDIA GeForce RTX 4090"), Some(known));
    }

    #[test]
    fn no_entry_hides_another() {
        let tables =
            [nvidia::GPUS, amd::GPUS, others::INTEL_GPUS, others::APPLE_CHIPS, others::PROCESSORS];
        for table in tables {
            for (name, bandwidth_gbs, gpu_cores) in table {
                let known = Known { bandwidth_gbs: *bandwidth_gbs, gpu_cores: *gpu_cores };
                assert_eq!(find(table, name), Some(known), "{name}");
            }
        }
    }
}
