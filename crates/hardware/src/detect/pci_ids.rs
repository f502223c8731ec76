//! The names of devices, by the list of PCI ids that systems come with.

use crate::{Root, root::name};

const LISTS: [&str; 3] =
    ["usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids", "usr/share/pci.ids"];

/// The name of a device: what it is sold as where the list tells, else its chip. `vendor` and
/// `device` are four lower-case hexadecimal digits.
pub(super) fn name_of(root: &Root, vendor: &str, device: &str) -> Option<String> {
    let list = LISTS.iter().find_map(|path| root.text(path))?;
    let mut lines = list.lines().skip_while(|line| !is_of(line, vendor)).skip(1);
    // The devices of a maker are set in by one tab, cards that they are built into by two.
    let entry =
        lines.by_ref().take_while(|line| line.starts_with(['\t', '#'])).find_map(|line| {
            let device_line = line.strip_prefix('\t').filter(|line| !line.starts_with('\t'))?;
            device_line.strip_prefix(device).filter(|rest| rest.starts_with(' '))
        })?;
    name(sold_as(entry))
}

fn is_of(line: &str, vendor: &str) -> bool {
    line.strip_prefix(vendor).is_some_and(|rest| rest.starts_with(' '))
}

/// `Navi 31 [Radeon RX 7900 XT/7900 XTX]` is sold as what stands in brackets.
fn sold_as(entry: &str) -> &str {
    let inside = entry.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(entry, |(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    const LIST: &str = "# comment\n1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\t7448  Navi 31 \
                        [Radeon Pro W7900]\n# more\n\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]\n\
                        \t\t1002 0e3b  A card\n\t744d  Plain\n8086  Intel Corporation\n\t56a0  DG2 \
                        [Arc A770]\n\t744e  Other\n";

    #[test]
    fn a_device_is_called_what_it_is_sold_as() {
        let made = MadeUp::new();
        made.file(LISTS[1], LIST);
        let name = |vendor, device| name_of(&made.root(), vendor, device);
        assert_eq!(name("1002", "744c").as_deref(), Some("Radeon RX 7900 XT/7900 XTX"));
        assert_eq!(name("1002", "744d").as_deref(), Some("Plain"));
        assert_eq!(name("8086", "56a0").as_deref(), Some("Arc A770"));
        assert_eq!(
            (name("1002", "744e"), name("10de", "56a0"), name("1002", "")),
            Default::default()
        );
    }

    #[test]
    fn without_the_list_there_are_no_names() {
        assert_eq!(name_of(&MadeUp::new().root(), "1002", "744c"), None);
    }
}
