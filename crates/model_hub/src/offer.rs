//! The models in a repository, by quantization, and which one to take.

use std::collections::BTreeMap;

use models::{
    FileName,
    offer::{Shard, shard},
    shelf,
};

use crate::{HubError, HubFile, Listing};

/// The proposed quantisations, best first: as small as a model can be without losing much.
const PROPOSED: [&str; 12] = [
    "Q4_K_M",
    "UD-Q4_K_XL",
    "Q4_K_S",
    "Q4_0",
    "IQ4_XS",
    "IQ4_NL",
    "MXFP4",
    "MXFP4_MOE",
    "Q5_K_M",
    "Q3_K_M",
    "UD-Q3_K_XL",
    "Q2_K",
];

/// The forms in which a projector may be stored, best first.
const PROJECTORS: [&str; 4] = ["F16", "BF16", "Q8_0", "F32"];

/// The most quantizations that are named where one is not found.
const NAMED: usize = 8;

/// One model in one form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Its name, as `Q4_K_M`; where two would have one name, that of its file.
    pub quantization: String,
    /// The name of its file, without the numbers of parts and `.gguf`.
    pub stem: String,
    /// Its parts in their order.
    pub files: Vec<HubFile>,
}

/// The offer of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The smallest first.
    pub variants: Vec<Variant>,
    projectors: Vec<HubFile>,
    repo: String,
}

impl Variant {
    /// How long its files are together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Whether people mean it by this name.
    fn is_called(&self, name: &str) -> bool {
        let file = name.strip_suffix(".gguf").unwrap_or(name);
        [&self.quantization, &self.stem].iter().any(|own| own.eq_ignore_ascii_case(file))
    }
}

impl Offer {
    /// The models among these files. One that misses a part does not count.
    pub fn of(listing: &Listing) -> Self {
        let is_model = |file: &&HubFile| {
            let name = file_name(&file.path).to_lowercase();
            name.ends_with(".gguf") && !name.contains("imatrix") && file.size > 0
        };
        let files = listing.files.iter().filter(is_model).cloned();
        let (projectors, models): (Vec<_>, Vec<_>) =
            files.partition(|file| file_name(&file.path).to_lowercase().contains("mmproj"));
        let variants = named(variants(models));
        Self { variants, projectors, repo: listing.repo.clone() }
    }

    /// The model of this name.
    ///
    /// # Errors
    ///
    /// [`HubError::NoQuantization`] tells the nearest names.
    pub fn find(&self, wanted: &str) -> Result<&Variant, HubError> {
        if let Some(found) = self.variants.iter().find(|variant| variant.is_called(wanted)) {
            return Ok(found);
        }
        // `Q4_K_XL` where there is only `UD-Q4_K_XL`.
        let ends = |variant: &&Variant| {
            variant.quantization.to_uppercase().ends_with(&format!("-{}", wanted.to_uppercase()))
        };
        let mut ending = self.variants.iter().filter(ends);
        match (ending.next(), ending.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(self.none_called(wanted)),
        }
    }

    /// The one that most people would take, of those that fit; `None` where none does.
    pub fn proposal(&self, fits: impl Fn(&Variant) -> bool) -> Option<&Variant> {
        let fitting: Vec<&Variant> = self.variants.iter().filter(|variant| fits(variant)).collect();
        let proposed = PROPOSED.iter().find_map(|name| {
            fitting.iter().find(|variant| variant.quantization.eq_ignore_ascii_case(name))
        });
        proposed.or(fitting.last()).copied()
    }

    /// The file that makes pictures or sound readable for a model.
    pub fn projector(&self, variant: &Variant) -> Option<&HubFile> {
        let rank = |file: &&HubFile| {
            let kind = shelf::quantization(stem(&file.path)).unwrap_or_default();
            PROJECTORS.iter().position(|known| *known == kind).unwrap_or(PROJECTORS.len())
        };
        let is_for = |file: &&HubFile| {
            let of = shelf::of_projector(stem(&file.path));
            of.is_empty() || variant.stem.to_lowercase().starts_with(&of)
        };
        let all = || self.projectors.iter();
        // Where there is one model only, it is for that, whatever it is called.
        let only = || all().filter(|_| self.has_one_model()).min_by_key(rank);
        all().filter(is_for).min_by_key(rank).or_else(only)
    }

    /// All files of a model, its projector among them, by the names that they get here, in their order: without the
    /// hub's directories, so that they lie together.
    ///
    /// # Errors
    ///
    /// [`HubError::Strange`] for a name that no disk should have.
    pub fn files(&self, variant: &Variant) -> Result<Vec<(FileName, HubFile)>, HubError> {
        let named = |file: &HubFile| {
            let name = FileName::try_from(file_name(&file.path)).map_err(|error| {
                let reason = format!("{}: {error}", file.path);
                HubError::Strange { host: self.repo.clone(), reason }
            })?;
            Ok((name, file.clone()))
        };
        let files = variant.files.iter().chain(self.projector(variant));
        let mut files: Vec<_> = files.map(named).collect::<Result<_, HubError>>()?;
        files.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(files)
    }

    /// Whether all are one model in several forms.
    pub fn has_one_model(&self) -> bool {
        let short = |variant: &Variant| shelf::short(&variant.stem).to_lowercase();
        self.variants.windows(2).all(|pair| short(&pair[0]) == short(&pair[1]))
    }

    fn none_called(&self, wanted: &str) -> HubError {
        let wanted_upper = wanted.to_uppercase();
        let mut near: Vec<String> =
            self.variants.iter().map(|variant| variant.quantization.clone()).collect();
        near.sort_by_key(|name| strsim::levenshtein(&name.to_uppercase(), &wanted_upper));
        near.truncate(NAMED);
        HubError::NoQuantization { repo: self.repo.clone(), wanted: wanted.to_owned(), near }
    }
}

/// A model's name, and how many parts it has.
type Model = (String, Option<u32>);

/// The parts of a model, by their number.
type Parts = Vec<(u32, HubFile)>;

/// The models that have all their parts, the smallest first.
fn variants(files: Vec<HubFile>) -> Vec<Variant> {
    let mut models: BTreeMap<Model, Parts> = BTreeMap::new();
    for file in files {
        let (stem, of, number) = match shard(file_name(&file.path)) {
            Some(Shard { model, number, of, .. }) => (model.to_owned(), Some(of), number),
            None => (stem(&file.path).to_owned(), None, 1),
        };
        models.entry((stem, of)).or_default().push((number, file));
    }
    let variant = |((stem, of), mut parts): (Model, Parts)| {
        parts.sort_by_key(|(number, _)| *number);
        let numbers = parts.iter().map(|(number, _)| *number);
        let is_whole = numbers.eq(1..=of.unwrap_or(1));
        let files = parts.into_iter().map(|(_, file)| file).collect();
        is_whole.then_some(Variant { quantization: String::new(), stem, files })
    };
    let mut variants: Vec<Variant> = models.into_iter().filter_map(variant).collect();
    variants.sort_by_key(Variant::bytes);
    variants
}

/// With names, each of its own.
fn named(mut variants: Vec<Variant>) -> Vec<Variant> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for variant in &mut variants {
        variant.quantization = label(&variant.stem);
        *counts.entry(variant.quantization.to_uppercase()).or_default() += 1;
    }
    for variant in &mut variants {
        if counts.get(&variant.quantization.to_uppercase()) != Some(&1) {
            variant.quantization.clone_from(&variant.stem);
        }
    }
    variants
}

/// The quantization of a file's name, with the mark of a maker who measured where more bits are needed.
fn label(stem: &str) -> String {
    let Some(quantization) = shelf::quantization(stem) else { return stem.to_owned() };
    let before = &stem[..stem.len() - quantization.len()];
    match before.to_uppercase().ends_with("-UD-") {
        true => format!("UD-{quantization}"),
        false => quantization,
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn stem(path: &str) -> &str {
    let name = file_name(path);
    name.strip_suffix(".gguf").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use models::arrival::Sum;

    use super::*;

    fn offer(files: &[(&str, u64)]) -> Offer {
        let file = |(path, size): &(&str, u64)| HubFile {
            path: (*path).to_owned(),
            size: *size,
            sum: Sum::Sha256([0; 32]),
        };
        let files = files.iter().map(file).collect();
        Offer::of(&Listing { repo: "org/repo".into(), commit: "main".into(), files })
    }

    fn names(offer: &Offer) -> Vec<&str> {
        offer.variants.iter().map(|variant| variant.quantization.as_str()).collect()
    }

    fn usual() -> Offer {
        offer(&[
            ("README.md", 1),
            ("imatrix_unsloth.gguf", 1),
            ("See-4B-Q8_0.gguf", 80),
            ("See-4B-Q4_K_M.gguf", 40),
            ("See-4B-UD-Q4_K_XL.gguf", 41),
            ("BF16/See-4B-BF16-00001-of-00002.gguf", 90),
            ("BF16/See-4B-BF16-00002-of-00002.gguf", 70),
            ("cut/See-4B-Q2_K-00001-of-00002.gguf", 10),
            ("mmproj-F32.gguf", 8),
            ("mmproj-F16.gguf", 4),
        ])
    }

    #[test]
    fn models_are_told_by_quantization_with_their_parts_and_without_what_is_not_whole() {
        let offer = usual();
        assert_eq!(names(&offer), ["Q4_K_M", "UD-Q4_K_XL", "Q8_0", "BF16"]);
        let plain = offer.find("bf16").unwrap();
        assert_eq!((plain.bytes(), plain.files.len()), (160, 2));
        let files = offer.files(plain).unwrap();
        let here: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "See-4B-BF16-00001-of-00002.gguf",
            "See-4B-BF16-00002-of-00002.gguf",
            "mmproj-F16.gguf",
        ];
        assert_eq!(here, expected);
    }

    #[test]
    fn a_model_is_found_by_its_quantization_or_its_file() {
        let offer = usual();
        let found = |name: &str| offer.find(name).unwrap().quantization.clone();
        assert_eq!(found("q4_k_m"), "Q4_K_M");
        assert_eq!(found("Q4_K_XL"), "UD-Q4_K_XL");
        assert_eq!(found("See-4B-Q8_0.gguf"), "Q8_0");
        let error = offer.find("Q4_K_S").unwrap_err().to_string();
        assert_eq!(error, "org/repo has no Q4_K_S; it has Q4_K_M, Q8_0, UD-Q4_K_XL, BF16");
    }

    #[test]
    fn several_models_of_one_quantization_are_called_as_their_files() {
        let offer = offer(&[("tiny/a-Q8_0.gguf", 1), ("tiny/b-Q8_0.gguf", 2), ("c.gguf", 3)]);
        assert_eq!(names(&offer), ["a-Q8_0", "b-Q8_0", "c"]);
        assert!(!offer.has_one_model() && usual().has_one_model());
        assert_eq!(offer.find("b-q8_0").unwrap().bytes(), 2);
    }

    #[test]
    fn the_usual_one_is_proposed_if_it_fits() {
        let offer = usual();
        let proposed = |most: u64| {
            let proposal = offer.proposal(|variant| variant.bytes() <= most);
            proposal.map(|variant| variant.quantization.as_str())
        };
        assert_eq!(proposed(1_000), Some("Q4_K_M"));
        assert_eq!(proposed(39), None);
        let large = super::tests::offer(&[("m-Q8_0.gguf", 8), ("m-F16.gguf", 16)]);
        let proposal = large.proposal(|_| true).map(|variant| variant.bytes());
        assert_eq!(proposal, Some(16), "the greatest that fits, where none is usual");
    }

    #[test]
    fn a_projector_goes_with_the_model_that_it_names() {
        let offer =
            offer(&[("a-1B-Q8_0.gguf", 1), ("b-1B-Q8_0.gguf", 2), ("mmproj-b-1B-Q8_0.gguf", 3)]);
        let of = |name: &str| offer.projector(offer.find(name).unwrap()).map(|file| file.size);
        assert_eq!((of("a-1B-Q8_0"), of("b-1B-Q8_0")), (None, Some(3)));
    }

    #[test]
    fn names_that_no_disk_should_have_are_refused() {
        let offer = offer(&[("a/..gguf", 1), ("b\\c.gguf", 2)]);
        assert!(offer.variants.iter().all(|variant| offer.files(variant).is_err()));
    }
}
