//! The manifest of a model: its files, their sizes and their hashes.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{
    name::{FileName, ModelId},
    tree::{Tree, Value, pieces},
};

/// The most files of a model.
pub const MAX_FILES: usize = 10_000;
/// The greatest model, in bytes: 8 TiB. Callers may want less.
pub const MAX_TOTAL: u64 = 8 << 40;

/// Why a manifest is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Nothing to fetch.
    #[error("the model has no files, or only empty ones")]
    Empty,
    /// More than [`MAX_FILES`].
    #[error("the model has more than {MAX_FILES} files")]
    TooManyFiles,
    /// The files are counted by their place, so their order must be the same everywhere.
    #[error("the files are not in the order of their names, or one is there twice: {0}")]
    Order(FileName),
    /// The same name but for its case; one would overwrite the other on some disks.
    #[error("two files differ by the case of their names only: {0}")]
    Case(FileName),
    /// A name that is a file's and a directory's at once.
    #[error("{0} is a file and a directory at once")]
    FileAndDirectory(FileName),
    /// The files are greater than what is allowed, together.
    #[error("the model is greater than {limit} bytes, which is the most that is taken")]
    TooGreat {
        /// The bound, in bytes.
        limit: u64,
    },
    /// The hash is not that of a file of this size.
    #[error("{0} is said to be empty, but its hash is another")]
    Hash(FileName),
}

/// A file of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Below the model's directory.
    pub name: FileName,
    /// In bytes.
    pub size: u64,
    /// Its BLAKE3 hash.
    #[serde(rename = "blake3", with = "hex")]
    pub root: Value,
}

/// A model's manifest; only valid ones exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Manifest {
    id: ModelId,
    files: Vec<ManifestFile>,
    #[serde(skip)]
    total: u64,
}

impl Manifest {
    /// The manifest of a model. Its files must come in the order of their names, by bytes.
    ///
    /// # Errors
    ///
    /// [`ManifestError`] names the rule that is broken.
    pub fn new(id: ModelId, files: Vec<ManifestFile>) -> Result<Self, ManifestError> {
        if files.len() > MAX_FILES {
            return Err(ManifestError::TooManyFiles);
        }
        check_order(&files)?;
        check_names(&files)?;
        check_empty_files(&files)?;
        match sum(&files) {
            None => Err(ManifestError::TooGreat { limit: MAX_TOTAL }),
            Some(0) => Err(ManifestError::Empty),
            Some(total) => Self { id, files, total }.at_most(MAX_TOTAL),
        }
    }

    /// The same, unless it is greater than this, in bytes.
    ///
    /// # Errors
    ///
    /// [`ManifestError::TooGreat`].
    pub fn at_most(self, limit: u64) -> Result<Self, ManifestError> {
        if self.total > limit { Err(ManifestError::TooGreat { limit }) } else { Ok(self) }
    }

    /// The model.
    pub fn id(&self) -> &ModelId {
        &self.id
    }

    /// Its files, in the order of their names; peers count them by it.
    pub fn files(&self) -> &[ManifestFile] {
        &self.files
    }

    /// How long they are together, in bytes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many pieces they have together.
    pub fn pieces(&self) -> u64 {
        self.files.iter().map(|file| pieces(file.size)).sum()
    }

    /// Tells models apart by their name and all of their content: two manifests are equal when their
    /// digests are.
    pub fn digest(&self) -> Value {
        let mut hasher = blake3::Hasher::new_derive_key("warren.mesh.manifest.1");
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        add(self.id.as_str());
        self.files.iter().for_each(|file| add(file.name.as_str()));
        for file in &self.files {
            hasher.update(&file.size.to_le_bytes()).update(&file.root);
        }
        *hasher.finalize().as_bytes()
    }

    /// The digest as 64 hex digits.
    pub fn digest_hex(&self) -> String {
        blake3::Hash::from_bytes(self.digest()).to_hex().to_string()
    }

    /// Whether the content is the same, whatever the models are called.
    pub fn same_content(&self, other: &Self) -> bool {
        self.files == other.files
    }
}

fn check_order(files: &[ManifestFile]) -> Result<(), ManifestError> {
    let wrong = files.windows(2).find(|pair| pair[0].name >= pair[1].name);
    wrong.map_or(Ok(()), |pair| Err(ManifestError::Order(pair[1].name.clone())))
}

/// Names must stay apart on disks that do not tell case, as files and as directories.
fn check_names(files: &[ManifestFile]) -> Result<(), ManifestError> {
    let mut names = HashSet::with_capacity(files.len());
    for file in files {
        if !names.insert(file.name.as_str().to_lowercase()) {
            return Err(ManifestError::Case(file.name.clone()));
        }
    }
    let under_a_file = |file: &&ManifestFile| {
        let name = file.name.as_str().to_lowercase();
        name.match_indices('/').any(|(at, _)| names.contains(&name[..at]))
    };
    let wrong = files.iter().find(under_a_file);
    wrong.map_or(Ok(()), |file| Err(ManifestError::FileAndDirectory(file.name.clone())))
}

fn check_empty_files(files: &[ManifestFile]) -> Result<(), ManifestError> {
    let wrong = files
        .iter()
        .find(|file| file.size == 0 && Tree::of_one_piece(file.size, file.root).is_none());
    wrong.map_or(Ok(()), |file| Err(ManifestError::Hash(file.name.clone())))
}

fn sum(files: &[ManifestFile]) -> Option<u64> {
    files.iter().try_fold(0_u64, |total, file| total.checked_add(file.size))
}

#[derive(Deserialize)]
struct Unchecked {
    id: ModelId,
    files: Vec<ManifestFile>,
}

impl TryFrom<Unchecked> for Manifest {
    type Error = ManifestError;

    fn try_from(read: Unchecked) -> Result<Self, ManifestError> {
        Self::new(read.id, read.files)
    }
}

/// Hashes as 64 hex digits.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &[u8; 32], s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&blake3::Hash::from_bytes(*value).to_hex())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(d)?;
        blake3::Hash::from_hex(text).map(Into::into).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ModelId {
        ModelId::try_from("org/name").unwrap()
    }

    fn file(name: &str, size: u64) -> ManifestFile {
        let root = if size == 0 { blake3::hash(b"").into() } else { [7; 32] };
        ManifestFile { name: FileName::try_from(name).unwrap(), size, root }
    }

    fn manifest(files: &[(&str, u64)]) -> Result<Manifest, ManifestError> {
        Manifest::new(id(), files.iter().map(|(name, size)| file(name, *size)).collect())
    }

    #[test]
    fn a_good_manifest_is_taken_and_summed_up() {
        let good = manifest(&[("a", 3), ("b/c", 0), ("b/d", 1 << 21)]).unwrap();
        assert_eq!((good.total(), good.pieces()), (3 + (1 << 21), 3));
        let json = serde_json::to_string(&good).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&json).unwrap(), good);
    }

    #[test]
    fn each_rule_is_checked() {
        let name = |text| FileName::try_from(text).unwrap();
        assert_eq!(manifest(&[]), Err(ManifestError::Empty));
        assert_eq!(manifest(&[("a", 0)]), Err(ManifestError::Empty));
        assert_eq!(manifest(&[("b", 1), ("a", 1)]), Err(ManifestError::Order(name("a"))));
        assert_eq!(manifest(&[("a", 1), ("a", 1)]), Err(ManifestError::Order(name("a"))));
        assert_eq!(manifest(&[("A", 1), ("a", 1)]), Err(ManifestError::Case(name("a"))));
        let both = manifest(&[("A/b", 1), ("a", 1)]);
        assert_eq!(both, Err(ManifestError::FileAndDirectory(name("A/b"))));
        let great = Err(ManifestError::TooGreat { limit: MAX_TOTAL });
        assert_eq!(manifest(&[("a", u64::MAX), ("b", 2)]), great, "the sum overflows");
        assert_eq!(manifest(&[("a", MAX_TOTAL + 1)]), great);
        let limit = manifest(&[("a", 11)]).unwrap().at_most(10);
        assert_eq!(limit, Err(ManifestError::TooGreat { limit: 10 }));
        let mut lie = file("a", 0);
        lie.root = [7; 32];
        let lie = Manifest::new(id(), vec![lie, file("b", 1)]);
        assert_eq!(lie, Err(ManifestError::Hash(name("a"))));
    }

    #[test]
    fn files_are_counted() {
        let many = |count: usize| (0..count).map(|i| file(&format!("{i:05}"), 1)).collect();
        assert!(Manifest::new(id(), many(MAX_FILES)).is_ok());
        let over = Manifest::new(id(), many(MAX_FILES + 1));
        assert_eq!(over, Err(ManifestError::TooManyFiles));
    }

    #[test]
    fn the_digest_tells_all_that_differs() {
        let base = manifest(&[("a", 3), ("b", 4)]).unwrap();
        let mut other = base.files().to_vec();
        other[0].root = [8; 32];
        let others = [
            manifest(&[("a", 3), ("c", 4)]).unwrap(),
            manifest(&[("a", 4), ("b", 3)]).unwrap(),
            Manifest::new(id(), other).unwrap(),
            Manifest::new(ModelId::try_from("org/other").unwrap(), base.files().to_vec()).unwrap(),
        ];
        assert!(others.iter().all(|other| other.digest() != base.digest()));
        assert!(base.same_content(&others[3]) && !base.same_content(&others[0]));
        assert_eq!(base.digest_hex().len(), 64);
    }

    #[test]
    fn json_that_breaks_a_rule_is_refused() {
        let json = |name: &str| {
            let root = "07".repeat(32);
            format!(r#"{{"id":"a","files":[{{"name":"{name}","size":1,"blake3":"{root}"}}]}}"#)
        };
        assert!(serde_json::from_str::<Manifest>(&json("a")).is_ok());
        assert!(serde_json::from_str::<Manifest>(&json("../a")).is_err());
        assert!(serde_json::from_str::<Manifest>(r#"{"id":"a","files":[]}"#).is_err());
    }
}
