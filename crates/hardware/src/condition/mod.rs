//! How a machine is doing, and how much it should do because of that.
//!
//! - `thermal`: how hot it is
//! - `power`: what it runs on
//! - `load`: how busy it is

mod load;
mod power;
mod thermal;

pub use base::Thermal;

pub(crate) use power::Power;

use crate::{Root, system};

/// Less of a battery than this is little, in percent.
const HALF: u8 = 50;

/// How a machine is doing at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// How hot it is: the hottest of its parts, each by its own limits. Not of NVIDIA's GPUs: the
    /// system does not tell, and their tool is too slow to be asked every few seconds.
    pub thermal: Thermal,
    /// Whether it runs on mains power; so does what has no battery.
    pub on_ac_power: bool,
    /// How full its battery is, 0 to 100: the mean of several; `None` without one.
    pub battery_percent: Option<u8>,
    /// How many processes have wanted to run in the last minute, for each of its processors: 0 is
    /// idle, 1 busy, more is overloaded.
    pub load: f64,
}

/// An operator's rules for a machine that runs on its battery or is hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerRules {
    /// Do nothing for others on battery.
    pub pause_on_battery: bool,
    /// Do nothing for others while the heat is critical.
    pub pause_when_hot: bool,
}

impl Default for PowerRules {
    fn default() -> Self {
        Self { pause_on_battery: true, pause_when_hot: true }
    }
}

impl Condition {
    /// How the machine is doing now, by these files. Blocks for as long as some tens of small files
    /// take: a few milliseconds. What is not told counts as well: nominal, on mains power, idle.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let power = system::power().unwrap_or_else(|| power::read(root));
        Self {
            thermal: thermal::read(root),
            on_ac_power: power.on_ac_power,
            battery_percent: power.battery_percent,
            load: load::read(root).unwrap_or_default(),
        }
    }

    /// How much of what it can the machine should do for others, as stock peers put it: 100, 75 or
    /// 25 percent, or 0 to pause. The lesser of the two that these give:
    ///
    /// | Heat | | Power | |
    /// | --- | --- | --- | --- |
    /// | nominal | 100 | mains | 100 |
    /// | fair | 75 | battery, half full or more, or not told | 75 |
    /// | serious | 25 | battery, less than half full | 25 |
    /// | critical | 0, or 25 if heat is not to pause it | battery that is to pause it | 0 |
    #[must_use]
    pub fn throttle(&self, rules: PowerRules) -> u8 {
        self.throttle_by_heat(rules).min(self.throttle_by_power(rules))
    }

    const fn throttle_by_heat(&self, rules: PowerRules) -> u8 {
        match self.thermal {
            Thermal::Nominal => 100,
            Thermal::Fair => 75,
            Thermal::Critical if rules.pause_when_hot => 0,
            Thermal::Serious | Thermal::Critical => 25,
        }
    }

    fn throttle_by_power(&self, rules: PowerRules) -> u8 {
        match self.battery_percent {
            _ if self.on_ac_power => 100,
            _ if rules.pause_on_battery => 0,
            Some(percent) if percent < HALF => 25,
            _ => 75,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    const NEVER: PowerRules = PowerRules { pause_on_battery: false, pause_when_hot: false };

    fn condition(thermal: Thermal, on_ac_power: bool, battery_percent: Option<u8>) -> Condition {
        Condition { thermal, on_ac_power, battery_percent, load: 0.0 }
    }

    #[test]
    fn heat_lowers_what_is_done_and_pauses_it_if_it_may() {
        let levels = [Thermal::Nominal, Thermal::Fair, Thermal::Serious, Thermal::Critical];
        let with = |rules| levels.map(|level| condition(level, true, None).throttle(rules));
        assert_eq!(with(PowerRules::default()), [100, 75, 25, 0]);
        assert_eq!(with(NEVER), [100, 75, 25, 25]);
    }

    #[test]
    fn a_battery_pauses_or_lowers_what_is_done() {
        let with = |percent, rules| condition(Thermal::Nominal, false, percent).throttle(rules);
        assert_eq!(with(Some(100), PowerRules::default()), 0);
        let percents = [Some(100), Some(50), Some(49), Some(0), None];
        assert_eq!(percents.map(|percent| with(percent, NEVER)), [75, 75, 25, 25, 75]);
        assert_eq!(condition(Thermal::Nominal, true, Some(3)).throttle(NEVER), 100);
    }

    #[test]
    fn the_lesser_of_heat_and_power_counts() {
        assert_eq!(condition(Thermal::Fair, false, Some(10)).throttle(NEVER), 25);
        assert_eq!(condition(Thermal::Serious, false, Some(90)).throttle(NEVER), 25);
    }

    #[test]
    fn a_machine_that_tells_nothing_is_doing_well() {
        let read = Condition::read(&MadeUp::new().root());
        assert_eq!(read, condition(Thermal::Nominal, true, None));
    }

    #[test]
    fn a_machine_is_read_whole() {
        let made = MadeUp::new();
        made.file("sys/class/thermal/thermal_zone0/temp", "85000\n");
        made.file("sys/class/power_supply/BAT0/type", "Battery\n");
        made.file("sys/class/power_supply/BAT0/status", "Discharging\n");
        made.file("sys/class/power_supply/BAT0/capacity", "64\n");
        made.file("proc/loadavg", "3.00 1.00 0.50 1/123 456\n");
        made.file("sys/devices/system/cpu/online", "0-3\n");
        let read = Condition::read(&made.root());
        let (on_ac_power, battery_percent) = (false, Some(64));
        let expected =
            Condition { thermal: Thermal::Fair, on_ac_power, battery_percent, load: 0.75 };
        assert_eq!(read, expected);
    }
}
