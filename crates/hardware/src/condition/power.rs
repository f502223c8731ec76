//! The power source of a machine (Linux: `Documentation/ABI/testing/sysfs-class-power`).

use crate::Root;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Power {
    pub(crate) on_ac_power: bool,
    pub(crate) battery_percent: Option<u8>,
}

/// A source of power of the machine itself.
struct Supply {
    /// Not a battery, nor a UPS: mains, or a charger on USB.
    is_external: bool,
    is_online: bool,
    is_discharging: bool,
    percent: Option<u8>,
}

pub(super) fn read(root: &Root) -> Power {
    let supplies = root.children("sys/class/power_supply", |_| true);
    let supplies: Vec<Supply> = supplies.iter().filter_map(|path| supply(root, path)).collect();
    Power { on_ac_power: on_ac_power(&supplies), battery_percent: percent(&supplies) }
}

/// `None` for the batteries of mice, keyboards and telephones.
fn supply(root: &Root, path: &str) -> Option<Supply> {
    let word = |file: &str| root.word(&format!("{path}/{file}"));
    if word("scope").as_deref() == Some("Device") {
        return None;
    }
    let is_external = !matches!(word("type")?.as_str(), "Battery" | "UPS");
    Some(Supply {
        is_external,
        is_online: word("online").is_some_and(|online| online != "0"),
        is_discharging: word("status").as_deref() == Some("Discharging"),
        percent: capacity(word("capacity")).filter(|_| !is_external),
    })
}

/// Batteries that are badly gauged say more than they hold.
fn capacity(word: Option<String>) -> Option<u8> {
    word?.parse::<u8>().ok().map(|percent| percent.min(100))
}

/// A charger that is there counts, even one too weak to charge. Without one, a battery that
/// discharges tells; and where a charger could be and is not, any battery.
fn on_ac_power(supplies: &[Supply]) -> bool {
    let mut external = supplies.iter().filter(|supply| supply.is_external).peekable();
    let could_be_charged = external.peek().is_some();
    let is_charged = external.any(|supply| supply.is_online);
    let mut batteries = supplies.iter().filter(|supply| !supply.is_external);
    is_charged || !batteries.any(|battery| battery.is_discharging || could_be_charged)
}

fn percent(supplies: &[Supply]) -> Option<u8> {
    let percents: Vec<u32> = supplies.iter().filter_map(|one| one.percent.map(u32::from)).collect();
    let sum: u32 = percents.iter().sum();
    let mean = sum.checked_div(u32::try_from(percents.len()).ok()?)?;
    u8::try_from(mean).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    /// Each supply is its type, then pairs of file and text.
    fn state(supplies: &[(&str, &[(&str, &str)])]) -> (bool, Option<u8>) {
        let made = MadeUp::new();
        for (number, (kind, files)) in supplies.iter().enumerate() {
            let path = format!("sys/class/power_supply/S{number}");
            made.file(&format!("{path}/type"), format!("{kind}\n"));
            for (file, text) in *files {
                made.file(&format!("{path}/{file}"), format!("{text}\n"));
            }
        }
        let power = read(&made.root());
        (power.on_ac_power, power.battery_percent)
    }

    const UNPLUGGED: (&str, &[(&str, &str)]) = ("Mains", &[("online", "0")]);
    const PLUGGED: (&str, &[(&str, &str)]) = ("Mains", &[("online", "1")]);
    const DRAINING: (&str, &[(&str, &str)]) =
        ("Battery", &[("status", "Discharging"), ("capacity", "40")]);
    const FULL: (&str, &[(&str, &str)]) = ("Battery", &[("status", "Full"), ("capacity", "101")]);

    #[test]
    fn a_machine_without_a_battery_runs_on_mains_power() {
        assert_eq!(state(&[]), (true, None));
        assert_eq!(state(&[UNPLUGGED]), (true, None));
    }

    #[test]
    fn a_charger_that_is_there_counts_even_if_the_battery_drains() {
        assert_eq!(state(&[PLUGGED, DRAINING]), (true, Some(40)));
        assert_eq!(state(&[UNPLUGGED, ("USB", &[("online", "1")]), DRAINING]), (true, Some(40)));
    }

    #[test]
    fn without_one_the_machine_runs_on_its_battery() {
        assert_eq!(state(&[UNPLUGGED, DRAINING]), (false, Some(40)));
        assert_eq!(state(&[DRAINING]), (false, Some(40)));
        assert_eq!(state(&[UNPLUGGED, FULL, DRAINING]), (false, Some(70)));
        assert_eq!(state(&[UNPLUGGED, FULL]), (false, Some(100)));
        assert_eq!(state(&[FULL]), (true, Some(100)));
        assert_eq!(state(&[("UPS", &[("status", "Discharging")])]), (false, None));
    }

    #[test]
    fn the_battery_of_a_mouse_is_not_the_machines() {
        let mouse = [("scope", "Device"), ("status", "Discharging"), ("capacity", "5")];
        assert_eq!(state(&[("Battery", &mouse)]), (true, None));
    }

    #[test]
    fn nonsense_is_no_battery() {
        assert_eq!(state(&[("", &[("capacity", "x")])]), (true, None));
        assert_eq!(state(&[("Battery", &[("capacity", "-3"), ("status", "?")])]), (true, None));
    }
}
