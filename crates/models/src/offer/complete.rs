//! Tells models that are whole from those that are still being fetched, or that broke off.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::Read,
    path::Path,
};

use serde::Deserialize;

use super::OfferedFile;
use crate::{gguf, manifest::MAX_FILES};

/// The endings of files that a program is still writing.
pub(crate) const UNFINISHED: [&str; 9] = [
    ".incomplete",
    ".part",
    ".partial",
    ".tmp",
    ".temp",
    ".download",
    ".downloading",
    ".crdownload",
    ".aria2",
];

/// The longest index and the longest head of a file of tensors that are read, in bytes. Longer ones are
/// taken to be right.
const MAX_HEAD: u64 = 16 << 20;

/// Whether these are all files of a model, as long as they should be. Only what shows missing parts
/// counts: files of unknown forms are taken to be whole.
pub(super) fn is_complete(files: &[OfferedFile]) -> bool {
    let names: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let is_unfinished = |name: &&str| is_unfinished(name);
    !names.iter().any(is_unfinished)
        && has_all_shards(&names)
        && !files.iter().any(|file| is_cut(file) || misses_indexed(file, &names))
}

/// Whether a program is writing files of this directory into one beside it.
pub(super) fn is_being_fetched(beside: &Path) -> bool {
    let Ok(entries) = fs::read_dir(beside) else { return false };
    let names = entries.take(super::walk::MAX_ENTRIES).filter_map(Result::ok);
    names.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| is_unfinished(&name))
}

fn is_unfinished(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    UNFINISHED.iter().any(|ending| name.ends_with(ending))
}

/// A part of a model that is cut into several files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard<'a> {
    /// The name that all its parts share.
    pub model: &'a str,
    /// The text after the numbers.
    ending: &'a str,
    /// From 1 on.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// `MODEL-00001-of-00003.ENDING`.
pub fn shard(name: &str) -> Option<Shard<'_>> {
    let (before, after) = name.rsplit_once("-of-")?;
    let (model, number) = before.rsplit_once('-')?;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let (of, ending) = after.split_at(digits);
    Some(Shard { model, ending, number: number.parse().ok()?, of: of.parse().ok()? })
}

fn has_all_shards(names: &BTreeSet<&str>) -> bool {
    let mut numbers: BTreeMap<(&str, &str, u32), BTreeSet<u32>> = BTreeMap::new();
    for shard in names.iter().filter_map(|name| shard(name)) {
        numbers.entry((shard.model, shard.ending, shard.of)).or_default().insert(shard.number);
    }
    let is_whole = |((_, _, of), numbers): (&(&str, &str, u32), &BTreeSet<u32>)| {
        *of as usize <= MAX_FILES && (1..=*of).all(|number| numbers.contains(&number))
    };
    numbers.iter().all(is_whole)
}

/// `model.safetensors.index.json` and its like.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Whether it is an index that names a file which is not there.
fn misses_indexed(file: &OfferedFile, names: &BTreeSet<&str>) -> bool {
    let name = file.name.as_str();
    if !name.ends_with(".index.json") || file.size > MAX_HEAD {
        return false;
    }
    let folder = name.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
    let read = fs::read(&file.path).ok();
    let index: Option<Index> = read.and_then(|text| serde_json::from_slice(&text).ok());
    let misses = |weights: &String| !names.contains(format!("{folder}{weights}").as_str());
    index.is_some_and(|index| index.weight_map.values().any(misses))
}

/// Whether its head says that it is longer than it is.
fn is_cut(file: &OfferedFile) -> bool {
    let name = file.name.as_str();
    let least = match name.rsplit_once('.') {
        Some((_, "gguf")) => gguf::least_length(&file.path),
        Some((_, "safetensors")) => safetensors_length(&file.path),
        _ => None,
    };
    least.is_some_and(|least| file.size < least)
}

/// A tensor in the head of a file of safetensors.
#[derive(Deserialize)]
struct Tensor {
    data_offsets: Option<(u64, u64)>,
}

/// How long a file of safetensors must be: 8 bytes of length, a head in JSON, and the tensors. `None` when
/// the file is no safetensors.
fn safetensors_length(path: &Path) -> Option<u64> {
    let mut file = File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    let begin = 8u64.checked_add(length).filter(|_| length <= MAX_HEAD)?;
    let mut head = Vec::new();
    file.take(length).read_to_end(&mut head).ok()?;
    if (head.len() as u64) < length {
        // Of what could be such a head.
        return (head.first() == Some(&b'{')).then_some(begin);
    }
    let tensors: BTreeMap<String, Tensor> = serde_json::from_slice(&head).ok()?;
    let ends = tensors.values().filter_map(|tensor| Some(tensor.data_offsets?.1));
    begin.checked_add(ends.max().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::FileName;

    /// These files in a directory, as they would be offered.
    fn files(directory: &Path, files: &[(&str, &[u8])]) -> Vec<OfferedFile> {
        let offered = |(name, bytes): &(&str, &[u8])| {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
            OfferedFile { name: FileName::try_from(*name).unwrap(), size: bytes.len() as u64, path }
        };
        files.iter().map(offered).collect()
    }

    fn is_whole(named: &[(&str, &[u8])]) -> bool {
        let directory = tempfile::tempdir().unwrap();
        is_complete(&files(directory.path(), named))
    }

    fn safetensors(length: usize) -> Vec<u8> {
        let head = br#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
        let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
        bytes.extend(head);
        bytes.extend(vec![0; length]);
        bytes
    }

    #[test]
    fn a_model_without_one_of_its_shards_is_not_whole() {
        let (one, two) = ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf");
        assert!(is_whole(&[(one, b"x"), (two, b"y"), ("README-of-it.md", b"")]));
        assert!(!is_whole(&[(one, b"x")]));
        assert!(!is_whole(&[(two, b"y"), ("m-00001-of-00002.safetensors", b"x")]));
        assert!(!is_whole(&[("m-00001-of-4294967295.gguf", b"x")]));
        let sub = ["q4/m-00001-of-00002.gguf", "q8/m-00002-of-00002.gguf"];
        assert!(!is_whole(&[(sub[0], b"x"), (sub[1], b"x")]), "of two forms");
    }

    #[test]
    fn a_model_without_a_file_of_its_index_is_not_whole() {
        let index: (&str, &[u8]) = (
            "model.safetensors.index.json",
            br#"{"metadata":{},"weight_map":{"a":"w1.safetensors","b":"w2.safetensors"}}"#,
        );
        let weights = safetensors(8);
        assert!(!is_whole(&[index, ("w1.safetensors", &weights)]));
        assert!(is_whole(&[index, ("w1.safetensors", &weights), ("w2.safetensors", &weights)]));
        assert!(is_whole(&[("x.index.json", b"no index")]));
    }

    #[test]
    fn files_that_are_being_written_make_a_model_incomplete() {
        for name in ["m.gguf.part", "m.gguf.incomplete", "M.GGUF.PART", "a/b.tmp", "m.crdownload"] {
            assert!(!is_whole(&[("config.json", b"{}"), (name, b"x")]), "{name}");
        }
        assert!(is_whole(&[("part.bin", b"x"), ("incomplete.md", b"x"), ("m.gguf", b"any form")]));
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_being_fetched(directory.path()));
        fs::write(directory.path().join("0123abcd.incomplete"), b"x").unwrap();
        assert!(is_being_fetched(directory.path()));
    }

    #[test]
    fn a_file_of_safetensors_that_broke_off_is_not_whole() {
        let whole = safetensors(8);
        assert!(is_whole(&[("m.safetensors", &whole)]));
        assert!(is_whole(&[("m.safetensors", b"another form")]));
        for length in 9..whole.len() {
            assert!(!is_whole(&[("m.safetensors", &whole[..length])]), "{length}");
        }
    }
}
