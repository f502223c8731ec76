//! The processor.

use crate::{
    Root,
    root::{name, value},
    table::{self, Known},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Processor {
    /// One of stock peers' words.
    pub(super) family: &'static str,
    pub(super) name: Option<String>,
    /// 0 when unknown.
    pub(super) cores: u32,
}

impl Processor {
    pub(super) fn known(&self) -> Option<Known> {
        table::processor(self.name.as_deref()?)
    }
}

pub(super) fn processor(root: &Root) -> Processor {
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    // What a board is called that has no other name: `Apple Mac mini (M1, 2020)`, `Raspberry Pi 5`.
    let board = root.word("proc/device-tree/model").and_then(|model| name(&model));
    let named = ["model name", "Model", "Hardware"].iter().find_map(|key| value(&cpuinfo, key));
    let cores = cpuinfo.lines().filter(|line| is_processor(line)).count();
    Processor {
        family: family(&cpuinfo, board.as_deref().unwrap_or_default()),
        name: named.or(board),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
    }
}

/// `processor : 0`, one line for each.
fn is_processor(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, value)| {
        key.trim() == "processor" && value.trim().parse::<u32>().is_ok()
    })
}

fn family(cpuinfo: &str, board: &str) -> &'static str {
    let maker = value(cpuinfo, "vendor_id").map_or("unknown", |maker| of_maker(&maker));
    match maker {
        known if known != "unknown" => known,
        _ if board.starts_with("Apple") => of_apple(board),
        _ if value(cpuinfo, "CPU implementer").is_some() => "armGeneric",
        _ => "unknown",
    }
}

/// The family of a processor of this maker, as the processor itself spells it.
pub(super) fn of_maker(maker: &str) -> &'static str {
    match maker {
        "GenuineIntel" => "intelCPU",
        "AuthenticAMD" => "amdCPU",
        _ => "unknown",
    }
}

/// The family of an Apple chip that stands somewhere in this text: `Apple M2 Pro`,
/// `Apple MacBook Pro (14-inch, M2 Pro, 2023)`. Newer ones than stock peers know are unknown.
pub(super) fn of_apple(text: &str) -> &'static str {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut words = words.skip_while(|word| !matches!(*word, "M1" | "M2" | "M3" | "M4"));
    match (words.next(), words.next()) {
        (Some("M1"), variant) => variant_of(["m1", "m1Pro", "m1Max", "m1Ultra"], variant),
        (Some("M2"), variant) => variant_of(["m2", "m2Pro", "m2Max", "m2Ultra"], variant),
        (Some("M3"), variant) => variant_of(["m3", "m3Pro", "m3Max", "m3Ultra"], variant),
        (Some("M4"), variant) => variant_of(["m4", "m4Pro", "m4Max", "m4Ultra"], variant),
        _ => "unknown",
    }
}

fn variant_of(families: [&'static str; 4], variant: Option<&str>) -> &'static str {
    let [plain, pro, max, ultra] = families;
    match variant {
        Some("Pro") => pro,
        Some("Max") => max,
        Some("Ultra") => ultra,
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    fn detected(cpuinfo: &str, board: &str) -> Processor {
        let made = MadeUp::new();
        made.file("proc/cpuinfo", cpuinfo).file("proc/device-tree/model", board);
        processor(&made.root())
    }

    #[test]
    fn processors_of_every_maker_are_told_apart() {
        let intel = detected(
            "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R)  Processor\n\n\
             processor\t: 1\nvendor_id\t: GenuineIntel\nmodel name\t: other\n",
            "",
        );
        let name = Some("Intel(R) Xeon(R) Processor".to_owned());
        assert_eq!(intel, Processor { family: "intelCPU", name, cores: 2 });
        let amd = "processor : 0\nvendor_id : AuthenticAMD\nmodel name : AMD Ryzen 9 7950X\n";
        assert_eq!(detected(amd, "").family, "amdCPU");
        let arm = "processor\t: 0\nBogoMIPS\t: 108.00\nCPU implementer\t: 0x41\n\n";
        let pi = detected(arm, "Raspberry Pi 5 Model B Rev 1.0\0");
        assert_eq!(pi.name.as_deref(), Some("Raspberry Pi 5 Model B Rev 1.0"));
        assert_eq!((pi.family, pi.cores), ("armGeneric", 1));
        let mac = detected(arm, "Apple MacBook Pro (14-inch, M2 Pro, 2023)\0");
        assert_eq!(mac.family, "m2Pro");
    }

    #[test]
    fn a_machine_that_tells_nothing_has_an_unknown_processor() {
        let unknown = Processor { family: "unknown", name: None, cores: 0 };
        assert_eq!(processor(&MadeUp::new().root()), unknown);
        assert_eq!(detected("processor : many\nvendor_id\n: : :\n", ""), unknown);
    }

    #[test]
    fn apples_chips_are_known_as_far_as_stock_peers_know_them() {
        let families = ["Apple M1", "Apple M1 Ultra", "Apple M3 Max", "Mac mini (M4, 2024)"];
        assert_eq!(families.map(of_apple), ["m1", "m1Ultra", "m3Max", "m4"]);
        assert_eq!(["Apple M5", "Apple processor", "M10", ""].map(of_apple), ["unknown"; 4]);
    }
}
