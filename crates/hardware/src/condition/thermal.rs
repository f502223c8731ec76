//! How hot a machine is.

use base::Thermal;

use crate::{Root, root::is_numbered};

/// The most trip points of a zone, and sensors of a chip, that are read.
const MAX_POINTS: usize = 12;
const MAX_SENSORS: usize = 4;

/// Drivers of processors' sensors.
const PROCESSORS: [&str; 6] =
    ["coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal", "macsmc_hwmon"];

/// Drivers of GPUs' sensors.
const GPUS: [&str; 4] = ["amdgpu", "nouveau", "xe", "i915"];

/// The temperatures in °C from which on a part is fair, serious and critical.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limits {
    fair: f64,
    serious: f64,
    critical: f64,
}

impl Limits {
    /// For a part of unknown limits.
    const USUAL: Self = Self { fair: 80.0, serious: 90.0, critical: 100.0 };

    /// Of a part that slows down at one temperature and turns itself off at the other: serious
    /// where it slows down, fair 10 °C before, critical 5 °C before it turns itself off. It is
    /// taken to slow down 15 °C before it turns itself off, and the other way round.
    fn of(slows: Option<f64>, off: Option<f64>) -> Self {
        match (slows.filter(|slows| off.is_none_or(|off| *slows < off)), off) {
            (Some(slows), Some(off)) => Self::at(slows, (off - 5.0).max(slows)),
            (Some(slows), None) => Self::at(slows, slows + 10.0),
            (None, Some(off)) => Self::at(off - 15.0, off - 5.0),
            (None, None) => Self::USUAL,
        }
    }

    fn at(serious: f64, critical: f64) -> Self {
        Self { fair: serious - 10.0, serious, critical }
    }

    fn level(self, temperature: f64) -> Thermal {
        match temperature {
            hot if hot >= self.critical => Thermal::Critical,
            hot if hot >= self.serious => Thermal::Serious,
            warm if warm >= self.fair => Thermal::Fair,
            _ => Thermal::Nominal,
        }
    }
}

/// The level of the machine's hottest part. Where it has no zones, its processors' sensors tell;
/// GPUs have sensors of their own anyway.
pub(super) fn read(root: &Root) -> Thermal {
    let zones = root.children("sys/class/thermal", |name| is_numbered(name, "thermal_zone"));
    let zones = zones.iter().filter_map(|path| zone(root, path)).max();
    let chips = root.children("sys/class/hwmon", |name| is_numbered(name, "hwmon"));
    let hottest = |drivers: &[&str]| {
        let wanted = chips.iter().filter(|path| is_of(root, path, drivers));
        wanted.filter_map(|path| chip(root, path)).max()
    };
    let gpus = hottest(&GPUS);
    zones.or_else(|| hottest(&PROCESSORS)).max(gpus).unwrap_or_default()
}

/// A zone, by its own trip points.
fn zone(root: &Root, path: &str) -> Option<Thermal> {
    let temperature = temperature(root, &format!("{path}/temp"))?;
    let points: Vec<(String, f64)> = (0..MAX_POINTS).map_while(|n| point(root, path, n)).collect();
    let of = |kinds: &[&str]| {
        let wanted =
            points.iter().filter(|(kind, at)| kinds.contains(&kind.as_str()) && is_limit(*at));
        wanted.map(|(_, at)| *at).collect::<Vec<f64>>()
    };
    // Of several points at which it slows down, the first only begins to.
    let slows = of(&["passive"]).into_iter().reduce(f64::max);
    let off = of(&["critical", "hot"]).into_iter().reduce(f64::min);
    Some(Limits::of(slows, off).level(temperature))
}

/// The kind of a zone's trip point, and its temperature; NaN where that is missing.
fn point(root: &Root, path: &str, number: usize) -> Option<(String, f64)> {
    let kind = root.word(&format!("{path}/trip_point_{number}_type"))?;
    let at = root.number(&format!("{path}/trip_point_{number}_temp"));
    Some((kind, at.map_or(f64::NAN, degrees)))
}

fn is_of(root: &Root, path: &str, drivers: &[&str]) -> bool {
    root.word(&format!("{path}/name")).is_some_and(|name| drivers.contains(&name.as_str()))
}

/// The hottest of a chip's first sensors, each by the limit that it names.
fn chip(root: &Root, path: &str) -> Option<Thermal> {
    let sensors =
        (1..=MAX_SENSORS).filter_map(|number| sensor(root, &format!("{path}/temp{number}")));
    sensors.max()
}

fn sensor(root: &Root, path: &str) -> Option<Thermal> {
    let temperature = temperature(root, &format!("{path}_input"))?;
    let off = root.number(&format!("{path}_crit")).map(degrees).filter(|at| is_limit(*at));
    Some(Limits::of(None, off).level(temperature))
}

/// A temperature in °C; `None` for what no machine has: sensors that are off say so.
fn temperature(root: &Root, path: &str) -> Option<f64> {
    root.number(path).map(degrees).filter(|celsius| (-40.0..=150.0).contains(celsius))
}

/// Files tell thousandths of a degree.
fn degrees(thousandths: i64) -> f64 {
    thousandths as f64 / 1000.0
}

/// Whether a limit can be one: unset ones are 0, or far beyond what a machine endures.
fn is_limit(at: f64) -> bool {
    (50.0..=150.0).contains(&at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    fn zone_of(made: &MadeUp, number: usize, temp: &str, points: &[(&str, &str)]) {
        let path = format!("sys/class/thermal/thermal_zone{number}");
        made.file(&format!("{path}/temp"), temp);
        for (number, (kind, at)) in points.iter().enumerate() {
            made.file(&format!("{path}/trip_point_{number}_type"), format!("{kind}\n"));
            made.file(&format!("{path}/trip_point_{number}_temp"), format!("{at}\n"));
        }
    }

    fn level(temp: &str, points: &[(&str, &str)]) -> Thermal {
        let made = MadeUp::new();
        zone_of(&made, 0, temp, points);
        read(&made.root())
    }

    fn chip_of(made: &MadeUp, number: usize, driver: &str, files: &[(&str, &str)]) {
        let path = format!("sys/class/hwmon/hwmon{number}");
        made.file(&format!("{path}/name"), format!("{driver}\n"));
        for (file, text) in files {
            made.file(&format!("{path}/{file}"), text);
        }
    }

    #[test]
    fn a_zone_without_trip_points_is_judged_by_usual_limits() {
        let levels = ["79999", "80000\n", "90000", "100000"].map(|temp| level(temp, &[]));
        use Thermal::{Critical, Fair, Nominal, Serious};
        assert_eq!(levels, [Nominal, Fair, Serious, Critical]);
    }

    #[test]
    fn a_zone_with_trip_points_is_judged_by_them() {
        let points = [
            ("active", "50000"),
            ("passive", "75000"),
            ("passive", "85000"),
            ("critical", "115000"),
        ];
        let levels =
            ["74000", "75000", "85000", "109999", "110000"].map(|temp| level(temp, &points));
        use Thermal::{Critical, Fair, Nominal, Serious};
        assert_eq!(levels, [Nominal, Fair, Serious, Serious, Critical]);
        let off_only = ["79000", "80000", "90000", "100000"]
            .map(|temp| level(temp, &[("critical", "105000"), ("hot", "119000")]));
        assert_eq!(off_only, [Nominal, Fair, Serious, Critical]);
        let slows_only =
            ["60000", "70000", "80000"].map(|temp| level(temp, &[("passive", "70000")]));
        assert_eq!(slows_only, [Fair, Serious, Critical]);
    }

    #[test]
    fn limits_and_temperatures_that_cannot_be_are_passed_over() {
        let unset = [("passive", "0"), ("critical", "-274000"), ("hot", "x")];
        assert_eq!(level("85000", &unset), Thermal::Fair);
        assert_eq!(
            level("85000", &[("passive", "120000"), ("critical", "95000")]),
            Thermal::Serious
        );
        for temp in ["-274000", "2147483647", "", "hot"] {
            assert_eq!(level(temp, &[]), Thermal::Nominal, "{temp}");
        }
    }

    #[test]
    fn the_hottest_zone_counts_among_as_many_as_are_read() {
        let made = MadeUp::new();
        zone_of(&made, 0, "30000", &[]);
        zone_of(&made, 1, "95000", &[]);
        assert_eq!(read(&made.root()), Thermal::Serious);
        zone_of(&made, 5000, "120000", &[]);
        (2..100).for_each(|number| zone_of(&made, number, "30000", &[]));
        assert_eq!(read(&made.root()), Thermal::Serious);
    }

    #[test]
    fn without_zones_the_processors_sensors_tell() {
        let made = MadeUp::new();
        let files = [("temp1_input", "60000"), ("temp3_input", "88000"), ("temp3_crit", "100000")];
        chip_of(&made, 0, "coretemp", &files);
        chip_of(&made, 1, "nvme", &[("temp1_input", "99000")]);
        assert_eq!(read(&made.root()), Thermal::Serious);
        zone_of(&made, 0, "40000", &[]);
        assert_eq!(read(&made.root()), Thermal::Nominal);
    }

    #[test]
    fn a_hot_gpu_counts_beside_cool_zones() {
        let made = MadeUp::new();
        zone_of(&made, 0, "40000", &[]);
        let junction = [("temp2_input", "106000"), ("temp2_crit", "110000")];
        chip_of(&made, 3, "amdgpu", &junction);
        assert_eq!(read(&made.root()), Thermal::Critical);
    }

    #[test]
    fn levels_have_stock_peers_words_and_an_order() {
        let levels = [Thermal::Nominal, Thermal::Fair, Thermal::Serious, Thermal::Critical];
        assert!(levels.is_sorted());
        assert_eq!(levels.map(Thermal::as_str), ["nominal", "fair", "serious", "critical"]);
    }
}
