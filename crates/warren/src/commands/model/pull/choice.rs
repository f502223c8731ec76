//! The choice of a model in a repository: the memory that each takes, and whether this machine has it.

use anyhow::anyhow;
use hardware::Machine;
use model_hub::{Hub, Listing, Offer, Variant};
use models::{
    Gguf,
    gguf::{Needs, PROGRAM},
};
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::failed;
use crate::commands::{
    note, prompt,
    table::{plain, table},
    words::{bytes, count},
};

/// The assumed context in tokens, unless the model was made for less.
const CONTEXT: u64 = 8_192;

const GIB: f64 = (1_u64 << 30) as f64;

/// Whether a model fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Fit {
    /// In the GPU's memory; without a GPU in the machine's.
    Yes,
    /// Only with the machine's memory beside the GPU's, so that it is slow.
    Partly,
    No,
    /// The memory of the machine is not known.
    Unknown,
}

/// The models of a repository, on this machine.
pub(super) struct Choosing<'a> {
    offer: &'a Offer,
    /// The needs of all models, which differ in their weights only; `None` if no head could be read.
    needs: Option<Needs>,
    context: u64,
    room: Room,
}

/// The memory for models, in bytes; 0 if it is not known.
#[derive(Debug, Clone, Copy)]
struct Room {
    fast: u64,
    all: u64,
}

/// A model, as JSON.
#[derive(Serialize)]
struct Row<'a> {
    quantization: &'a str,
    files: usize,
    bytes: u64,
    memory_bytes: u64,
    fits: Fit,
    proposed: bool,
}

/// All models, as JSON.
#[derive(Serialize)]
pub(super) struct Rows<'a> {
    repo: &'a str,
    context_tokens: u64,
    quantizations: Vec<Row<'a>>,
}

/// The head of the smallest file, if all are one model. Without it memory is estimated by size alone, so that a
/// failure does not end the pull.
pub(super) async fn head(hub: &Hub, listing: &Listing, offer: &Offer) -> Option<Gguf> {
    let smallest = offer.variants.first().filter(|_| offer.has_one_model())?.files.first()?;
    hub.head(listing, smallest).await.ok().flatten()
}

impl<'a> Choosing<'a> {
    /// The choice, with the head of one of the models if it is known.
    pub(super) async fn new(offer: &'a Offer, head: Option<Gguf>) -> Self {
        let machine = spawn_blocking(Machine::detect).await;
        let room = machine.as_ref().map_or(Room { fast: 0, all: 0 }, Room::of);
        let made_for = head.as_ref().and_then(|head| head.context_tokens).unwrap_or(CONTEXT);
        let needs = head.map(|head| head.needs);
        Self { offer, needs, context: made_for.min(CONTEXT), room }
    }

    /// The named model, or the proposed one if the user agrees.
    ///
    /// # Errors
    /// When no model has this name, the user does not agree, or no model fits and none is named.
    pub(super) fn choose(&self, named: Option<&str>, yes: bool) -> anyhow::Result<&'a Variant> {
        if let Some(named) = named {
            let variant = self.offer.find(named).map_err(failed)?;
            self.warn(variant);
            return Ok(variant);
        }
        if let [only] = &self.offer.variants[..] {
            self.warn(only);
            return Ok(only);
        }
        let proposal = self.proposal();
        if !yes && prompt::is_attended() {
            return self.ask(proposal);
        }
        let proposal = proposal.ok_or_else(|| {
            anyhow!(
                "no quantization fits this machine's memory: name one to take it all the same\n{}",
                self.table()
            )
        })?;
        note(&format!(
            "taking {}, {}: `--list` shows the others, and :QUANT after the name chooses one",
            plain(&proposal.quantization),
            bytes(proposal.bytes())
        ));
        Ok(proposal)
    }

    pub(super) fn table(&self) -> String {
        let header = ["quantization", "fits", "files", "size", "memory"];
        let proposal = self.proposal();
        let row = |variant: &Variant| {
            let fits = match proposal {
                Some(proposed) if proposed == variant => {
                    format!("{}, proposed", self.fit(variant).words())
                }
                _ => self.fit(variant).words().to_owned(),
            };
            vec![
                plain(&variant.quantization),
                fits,
                variant.files.len().to_string(),
                bytes(variant.bytes()),
                bytes(self.memory(variant)),
            ]
        };
        let rows: Vec<Vec<String>> = self.offer.variants.iter().map(row).collect();
        format!("{}\n{}", table(&header, &rows, 3), self.reckoning())
    }

    pub(super) fn json<'b>(&'b self, repo: &'b str) -> Rows<'b> {
        let proposal = self.proposal();
        let row = |variant: &'b Variant| Row {
            quantization: &variant.quantization,
            files: variant.files.len(),
            bytes: variant.bytes(),
            memory_bytes: self.memory(variant),
            fits: self.fit(variant),
            proposed: proposal == Some(variant),
        };
        let quantizations = self.offer.variants.iter().map(row).collect();
        Rows { repo, context_tokens: self.context, quantizations }
    }

    fn ask(&self, proposal: Option<&'a Variant>) -> anyhow::Result<&'a Variant> {
        let first = proposal.or(self.offer.variants.first());
        let others = self.offer.variants.iter().filter(|variant| Some(*variant) != first);
        let variants: Vec<&Variant> = first.into_iter().chain(others).collect();
        let line = |variant: &&Variant| {
            let name = plain(&variant.quantization);
            let (size, memory) = (bytes(variant.bytes()), bytes(self.memory(variant)));
            format!("{name:<16} {size:>10}, {memory:>10} of memory: {}", self.fit(variant).words())
        };
        let lines: Vec<String> = variants.iter().map(line).collect();
        let chosen = prompt::choose(&format!("{}\nWhich one?", self.reckoning()), &lines)?;
        // The prompt returns the index of one of the lines.
        variants.get(chosen).copied().ok_or_else(|| anyhow!("nothing was chosen"))
    }

    fn warn(&self, variant: &Variant) {
        let words = match self.fit(variant) {
            Fit::Yes | Fit::Unknown => return,
            Fit::Partly => "more than the GPU has, so that it will be slow",
            Fit::No => "more than this machine has for it, so that it may not load",
        };
        note(&format!("it takes about {} of memory, {words}", bytes(self.memory(variant))));
    }

    fn proposal(&self) -> Option<&'a Variant> {
        let fast =
            self.offer.proposal(|variant| matches!(self.fit(variant), Fit::Yes | Fit::Unknown));
        fast.or_else(|| self.offer.proposal(|variant| self.fit(variant) != Fit::No))
    }

    fn fit(&self, variant: &Variant) -> Fit {
        self.room.fit(self.memory(variant))
    }

    fn memory(&self, variant: &Variant) -> u64 {
        let projector = self.offer.projector(variant).map_or(0, |file| file.size);
        let files = variant.bytes().saturating_add(projector);
        match self.needs {
            Some(needs) => needs.memory(files, self.context, 1),
            None => files.saturating_add(files / 5).saturating_add(PROGRAM),
        }
    }

    /// The memory with which the fit is judged, in words.
    fn reckoning(&self) -> String {
        let room = match self.room {
            Room { all: 0, .. } => "this machine does not tell its memory".to_owned(),
            Room { fast, all } if fast == all => {
                format!("this machine has {} for models", bytes(all))
            }
            Room { fast, all } => {
                format!(
                    "this machine has {} for models, {} of it on the GPU",
                    bytes(all),
                    bytes(fast)
                )
            }
        };
        format!("Memory is for a context of {}; {room}.", count(self.context, "token"))
    }
}

impl Room {
    fn of(machine: &Machine) -> Self {
        let bytes = |gib: f64| (gib * GIB) as u64;
        let fast = bytes(machine.max_model_size_gb());
        let without_gpu = Machine { gpu_vram_gb: None, ..machine.clone() };
        let more = machine.gpu_vram_gb.map_or(0, |_| bytes(without_gpu.max_model_size_gb()));
        Self { fast, all: fast.saturating_add(more) }
    }

    const fn fit(self, memory: u64) -> Fit {
        match self {
            Self { all: 0, .. } => Fit::Unknown,
            Self { fast, .. } if memory <= fast => Fit::Yes,
            Self { all, .. } if memory <= all => Fit::Partly,
            _ => Fit::No,
        }
    }
}

impl Fit {
    const fn words(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Partly => "not all on the GPU",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use model_hub::HubFile;
    use models::arrival::Sum;

    use super::*;

    fn offer() -> Offer {
        let file = |(path, gib): (&str, u64)| HubFile {
            path: path.to_owned(),
            size: gib << 30,
            sum: Sum::Sha256([0; 32]),
        };
        let files = [("m-Q2_K.gguf", 2), ("m-Q4_K_M.gguf", 4), ("m-Q8_0.gguf", 8)];
        let files = files.map(file).to_vec();
        Offer::of(&Listing { repo: "a/b".into(), commit: "c".into(), files })
    }

    fn choosing(offer: &Offer, fast: u64, all: u64) -> Choosing<'_> {
        let room = Room { fast: fast << 30, all: all << 30 };
        Choosing { offer, needs: Some(Needs::default()), context: 512, room }
    }

    #[test]
    fn what_fits_is_proposed_and_the_table_says_why() {
        let offer = offer();
        let proposed = |fast, all| {
            let choosing = choosing(&offer, fast, all);
            choosing.proposal().map(|variant| variant.quantization.clone())
        };
        assert_eq!(proposed(16, 16).as_deref(), Some("Q4_K_M"));
        assert_eq!(proposed(3, 3).as_deref(), Some("Q2_K"));
        assert_eq!(proposed(1, 12).as_deref(), Some("Q4_K_M"), "slow is better than not at all");
        assert_eq!(proposed(1, 1), None);
        assert_eq!(proposed(0, 0).as_deref(), Some("Q4_K_M"), "nothing is known of the machine");
        let table = choosing(&offer, 5, 10).table();
        let rows: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["QUANTIZATION", "FITS", "FILES", "SIZE", "MEMORY"]);
        assert_eq!(rows[2], ["Q4_K_M", "yes,", "proposed", "1", "4.0", "GiB", "4.1", "GiB"]);
        assert!(table.contains("not all on the GPU"), "{table}");
        assert!(table.ends_with("this machine has 10.0 GiB for models, 5.0 GiB of it on the GPU."));
    }

    #[test]
    fn a_named_one_is_taken_even_if_it_does_not_fit_and_none_is_taken_unnamed() {
        let offer = offer();
        let small = choosing(&offer, 1, 1);
        assert_eq!(small.choose(Some("q8_0"), true).unwrap().quantization, "Q8_0");
        let error = small.choose(None, true).unwrap_err().to_string();
        assert!(error.contains("no quantization fits"), "{error}");
        assert!(small.choose(Some("Q3_K"), true).unwrap_err().to_string().contains("it has"));
    }
}
