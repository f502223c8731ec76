//! The GPUs of a Linux machine.

use super::{GIB, amd, nvidia, pci_ids};
use crate::{
    Gpu, Root, Tools, Vendor,
    root::{is_numbered, name},
};

/// The least memory of its own that makes a GPU one to run models on, in GiB. Those that are a part
/// of a processor are given less, from the machine's memory.
const LEAST_VRAM: f64 = 2.0;

/// Largest memory of a GPU that is believed, in bytes: 4 TiB.
const MOST_VRAM: u64 = 4 << 40;

/// Every GPU that a tool or the kernel reports, in no order.
pub(super) fn gpus(root: &Root, tools: &impl Tools) -> Vec<Gpu> {
    let mut gpus = nvidia::gpus(root, tools);
    let driven = !gpus.is_empty();
    let cards = cards(root);
    let wanted = |card: &&Card| card.vendor != Vendor::Nvidia || !driven;
    let others: Vec<&Card> = cards.iter().filter(wanted).collect();
    let mut named = names_by_amd(root, tools, &others);
    gpus.extend(others.into_iter().map(|card| gpu(root, card, &mut named)));
    gpus
}

/// AMD's tool takes a second: it is asked only where there is something to name.
fn names_by_amd(root: &Root, tools: &impl Tools, cards: &[&Card]) -> Vec<amd::NamedCard> {
    let is_unnamed = |card: &&Card| card.vendor == Vendor::Amd && card.name(root).is_none();
    if cards.iter().any(is_unnamed) { amd::cards(tools) } else { Vec::new() }
}

/// A card of `/sys/class/drm`.
struct Card {
    device: String,
    vendor: Vendor,
    /// The ids of maker and device: four hexadecimal digits each.
    ids: (String, String),
    vram: Option<u64>,
}

fn cards(root: &Root) -> Vec<Card> {
    let cards = root.children("sys/class/drm", |name| is_numbered(name, "card"));
    cards.iter().filter_map(|card| read_card(root, format!("{card}/device"))).collect()
}

/// `None` for a card of another maker: those of virtual machines, and of servers' consoles.
fn read_card(root: &Root, device: String) -> Option<Card> {
    let id = |file: &str| {
        let word = root.word(&format!("{device}/{file}"))?;
        word.strip_prefix("0x").map(str::to_lowercase)
    };
    let ids = (id("vendor")?, id("device").unwrap_or_default());
    let vendor = match ids.0.as_str() {
        "10de" => Vendor::Nvidia,
        "1002" => Vendor::Amd,
        "8086" => Vendor::Intel,
        _ => return None,
    };
    let vram = vram(root, &device, vendor);
    Some(Card { device, vendor, ids, vram })
}

fn vram(root: &Root, device: &str, vendor: Vendor) -> Option<u64> {
    let vram = match vendor {
        Vendor::Amd => root.word(&format!("{device}/mem_info_vram_total"))?.parse().ok()?,
        Vendor::Intel => largest_window(&root.text(&format!("{device}/resource"))?)?,
        Vendor::Nvidia | Vendor::Apple => return None,
    };
    (vram > 0 && vram <= MOST_VRAM).then_some(vram)
}

/// Intel's driver does not tell a card's memory; the largest window that the card has in the
/// machine's addresses is all of it, where the firmware allows so large a one. Smaller ones than
/// 2 GiB are windows only. Lines are `0xFIRST 0xLAST 0xFLAGS`.
fn largest_window(resource: &str) -> Option<u64> {
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let size = |line: &str| {
        let mut numbers = line.split_whitespace().map_while(number);
        numbers.next().zip(numbers.next()).and_then(|(first, last)| last.checked_sub(first))
    };
    let largest = resource.lines().take(16).filter_map(size).max()?.checked_add(1)?;
    (largest >= 2 << 30).then_some(largest)
}

impl Card {
    /// The name that the card itself reports; few do.
    fn name(&self, root: &Root) -> Option<String> {
        root.text(&format!("{}/product_name", self.device)).and_then(|text| name(&text))
    }

    fn vram_gb(&self) -> Option<f64> {
        self.vram.map(|bytes| bytes as f64 / GIB)
    }

    /// Whether it has memory enough of its own, and the driver for it. The kernel
    /// alone reports a GPU of NVIDIA only if the GPU lacks the driver that models need.
    fn runs_models(&self) -> bool {
        self.vram_gb().is_some_and(|vram| vram >= LEAST_VRAM) && self.vendor != Vendor::Nvidia
    }
}

fn gpu(root: &Root, card: &Card, named: &mut Vec<amd::NamedCard>) -> Gpu {
    let by_tool = || {
        let same = named.iter().position(|gpu| Some(gpu.vram) == card.vram)?;
        Some(named.swap_remove(same).name)
    };
    let (maker, device) = (&card.ids.0, &card.ids.1);
    let name = card.name(root).or_else(by_tool).or_else(|| pci_ids::name_of(root, maker, device));
    Gpu {
        name: name
            .map_or_else(|| unnamed(card.vendor).to_owned(), |name| branded(card.vendor, name)),
        vendor: card.vendor,
        vram_gb: card.vram_gb(),
        backend: backend(root, card.vendor),
        runs_models: card.runs_models(),
    }
}

/// Lists name the product without its maker.
fn branded(vendor: Vendor, name: String) -> String {
    let maker = maker(vendor);
    if name.to_lowercase().contains(&maker.to_lowercase()) {
        name
    } else {
        format!("{maker} {name}")
    }
}

const fn maker(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "NVIDIA",
        Vendor::Amd => "AMD",
        Vendor::Intel => "Intel",
        Vendor::Apple => "Apple",
    }
}

const fn unnamed(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "NVIDIA GPU",
        Vendor::Amd => "AMD GPU",
        Vendor::Intel => "Intel GPU",
        Vendor::Apple => "Apple GPU",
    }
}

/// The backend for models: the maker's own where it is there, else the one that every GPU has.
fn backend(root: &Root, vendor: Vendor) -> &'static str {
    match vendor {
        // The device that AMD's compute driver makes.
        Vendor::Amd if root.has("dev/kfd") => "rocm",
        Vendor::Intel => "sycl",
        _ => "vulkan",
    }
}
