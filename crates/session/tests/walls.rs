//! The three parts of the crate do not use each other.

#![allow(clippy::unwrap_used, reason = "helpers of tests may stop, too")]

use std::{
    fs,
    path::{Path, PathBuf},
};

const PARTS: [&str; 3] = ["agent", "team", "terminal"];

#[test]
fn no_part_uses_another() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for part in PARTS {
        let files = rust_files(&source.join(part));
        assert!(!files.is_empty(), "{part} has no files");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for other in PARTS.into_iter().filter(|other| *other != part) {
                let path = format!("crate::{other}");
                assert!(!text.contains(&path), "{} uses {path}", file.display());
            }
        }
    }
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| match path.is_dir() {
        true => rust_files(&path),
        false => vec![path],
    });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
