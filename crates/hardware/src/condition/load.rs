//! How busy a machine is.

use crate::Root;

/// The load of the last minute for each processor; `None` if it is not known.
pub(super) fn read(root: &Root) -> Option<f64> {
    let load: f64 = root.text("proc/loadavg")?.split_whitespace().next()?.parse().ok()?;
    let online = root.word("sys/devices/system/cpu/online");
    let processors = online.and_then(|list| count(&list)).unwrap_or(1);
    (load.is_finite() && load >= 0.0).then(|| load / f64::from(processors))
}

/// How many processors a list such as `0-3,8` names; `None` for what is no such list.
fn count(list: &str) -> Option<u32> {
    let ranges = list.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.reduce(|sum, range| sum?.checked_add(range?)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    #[test]
    fn load_is_told_for_each_processor() {
        let made = MadeUp::new();
        made.file("proc/loadavg", "6.00 1.00 0.50 1/123 456\n");
        assert_eq!(read(&made.root()), Some(6.0));
        made.file("sys/devices/system/cpu/online", "0-3,8,10-10\n");
        assert_eq!(read(&made.root()), Some(1.0));
    }

    #[test]
    fn the_load_of_this_machine_is_told_where_the_system_has_it() {
        let is_told = std::path::Path::new("/proc/loadavg").exists();
        assert_eq!(read(&Root::system()).is_some(), is_told);
    }

    #[test]
    fn nonsense_is_no_load() {
        let lists = ["", "3-1", "a", "0-4294967295", "0-1,x", "0-4294967294,0-4294967294"];
        assert!(lists.iter().all(|list| count(list).is_none()));
        for load in ["NaN 1", "-1.0", "inf", "", "x"] {
            let made = MadeUp::new();
            made.file("proc/loadavg", load);
            assert_eq!(read(&made.root()), None, "{load}");
        }
    }
}
