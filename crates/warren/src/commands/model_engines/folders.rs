//! Models that are no GGUF files: a folder with a `config.json` and weights, or a file of another kind. Each is
//! one model; its name is that of the folder or file.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// A folder or a file that is one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The bytes of all its files together.
    pub(crate) bytes: u64,
}

/// The models at these paths, and those directly below a path that is a folder of models.
pub(crate) fn look(paths: &[PathBuf]) -> Vec<Whole> {
    let mut all: Vec<Whole> = paths.iter().flat_map(|path| at(path)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all.dedup_by(|a, b| a.name == b.name);
    all
}

fn at(path: &Path) -> Vec<Whole> {
    if path.is_file() {
        let is_other = path.extension().is_none_or(|kind| !kind.eq_ignore_ascii_case("gguf"));
        return is_other.then(|| whole(path)).flatten().into_iter().collect();
    }
    if is_model(path) {
        return whole(path).into_iter().collect();
    }
    entries(path).filter(|below| is_model(below)).filter_map(|below| whole(&below)).collect()
}

fn is_model(path: &Path) -> bool {
    path.join("config.json").is_file()
}

fn whole(path: &Path) -> Option<Whole> {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    let name = name?.to_str()?.to_owned();
    let length = |path: &Path| fs::metadata(path).map_or(0, |facts| facts.len());
    let bytes = if path.is_dir() {
        entries(path).filter(|file| file.is_file()).map(|file| length(&file)).sum()
    } else {
        length(path)
    };
    Some(Whole { name, path: path.to_owned(), bytes })
}

fn entries(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().take(MAX_ENTRIES).flatten();
    let visible = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    visible.map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_a_configuration_and_files_of_other_kinds_are_models() {
        let place = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        put("all/qwen/config.json", b"{}");
        put("all/qwen/model.safetensors", b"12345678");
        put("all/nothing/readme", b"x");
        put("all/.hidden/config.json", b"{}");
        put("ggml-base.bin", b"123");
        put("m.gguf", b"GGUF");
        let paths = ["all", "ggml-base.bin", "m.gguf", "nowhere"].map(|it| place.path().join(it));
        let found = look(&paths);
        let models: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.bytes)).collect();
        assert_eq!(models, [("ggml-base", 3), ("qwen", 10)]);
        let itself = look(&[place.path().join("all/qwen")]);
        assert_eq!(itself[0].name, "qwen");
    }
}
