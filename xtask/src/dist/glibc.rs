//! Which version of the GNU C library a binary needs.

use std::fmt;

/// A version of glibc.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Glibc(pub(super) u32, pub(super) u32);

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "glibc {}.{}", self.0, self.1)
    }
}

/// How the names of versions begin, among the strings of the dynamic symbols.
const PREFIX: &[u8] = b"GLIBC_";

/// The newest version that a binary names; `None` when it names none, as a static one does.
///
/// The whole file is searched, and not only its table of versions: a name elsewhere can make the answer too high, never
/// too low.
pub(super) fn newest(binary: &[u8]) -> Option<Glibc> {
    let starts = binary.windows(PREFIX.len()).enumerate().filter(|(_, part)| *part == PREFIX);
    starts.filter_map(|(at, _)| version(&binary[at + PREFIX.len()..])).max()
}

/// `2.17`, or `2.2.5` as 2.2, ended by a NUL.
fn version(text: &[u8]) -> Option<Glibc> {
    let end = text.iter().take(16).position(|byte| *byte == 0)?;
    let mut numbers = std::str::from_utf8(&text[..end]).ok()?.split('.').map(str::parse::<u32>);
    Some(Glibc(numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_named_version_counts_as_a_number_and_not_as_text() {
        let binary = b"\x7fELF\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.9\0memcpy\0";
        assert_eq!(newest(binary), Some(Glibc(2, 17)));
        assert_eq!(Glibc(2, 17).to_string(), "glibc 2.17");
    }

    #[test]
    fn what_is_no_version_is_left_out() {
        let binary = b"GLIBC_PRIVATE\0GLIBC_\0GLIBC_2\0GLIBC_2.34 is needed\0GLIBC_2.9";
        assert_eq!(newest(binary), None);
    }

    #[test]
    fn this_very_program_needs_some_version_if_it_was_built_with_glibc() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(newest(&own).is_some(), cfg!(target_env = "gnu"));
    }
}
