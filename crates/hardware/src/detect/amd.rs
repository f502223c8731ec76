//! Readings of AMD's tool: names, which the kernel seldom knows.

use crate::{Tools, root::name};

const QUERY: [&str; 4] = ["--showproductname", "--showmeminfo", "vram", "--csv"];

const MAX_CARDS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedCard {
    pub(super) name: String,
    /// Its memory in bytes, as the kernel has it, too.
    pub(super) vram: u64,
}

pub(super) fn cards(tools: &impl Tools) -> Vec<NamedCard> {
    let output = tools.run("rocm-smi", &QUERY).unwrap_or_default();
    // Warnings may come first.
    let mut lines = output.lines().skip_while(|line| !line.starts_with("device,"));
    let Some(header) = lines.next() else { return Vec::new() };
    let column = |wanted: &[&str]| {
        header.split(',').position(|title| wanted.contains(&title.trim().to_lowercase().as_str()))
    };
    let Some((series, vram)) =
        column(&["card series", "card model"]).zip(column(&["vram total memory (b)"]))
    else {
        return Vec::new();
    };
    lines.take(MAX_CARDS).filter_map(|line| card(line, series, vram)).collect()
}

/// No field of the tool's holds a comma.
fn card(line: &str, series: usize, vram: usize) -> Option<NamedCard> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let called = name(fields.get(series)?).filter(|name| name != "N/A")?;
    Some(NamedCard { name: called, vram: fields.get(vram)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Says;

    #[test]
    fn cards_are_read_by_the_titles_of_their_columns() {
        let tools = Says::nothing().of(
            "rocm-smi",
            "WARNING: AMD GPU device(s) is/are in a low-power state\n\
             device,VRAM Total Memory (B),VRAM Total Used Memory (B),Card Series,Card Model\n\
             card0,25753026560,27504640,Radeon RX 7900 XTX,0x744c\n\
             card1,536870912,27504640,N/A,0x164e\n\n",
        );
        let vram = 25_753_026_560;
        assert_eq!(cards(&tools), [NamedCard { name: "Radeon RX 7900 XTX".to_owned(), vram }]);
    }

    #[test]
    fn other_words_are_no_cards() {
        for text in ["", "device,Card\ncard0,1", "device,", "device,Card Series\nx"] {
            assert!(cards(&Says::nothing().of("rocm-smi", text)).is_empty(), "{text}");
        }
    }
}
