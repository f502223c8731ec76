//! Downloads that are cut, damaged, or meet a full disk.

use std::{fs, io, os::unix::fs::symlink};

use ring::digest::SHA256;

use super::*;
use crate::{
    offer::{Library, Sources},
    tree::Value,
};

fn plenty(_: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

fn id() -> ModelId {
    ModelId::try_from("org/name:Q4_K_M").unwrap()
}

fn sha256(bytes: &[u8]) -> Sum {
    let digest = ring::digest::digest(&SHA256, bytes);
    Sum::Sha256(digest.as_ref().try_into().unwrap())
}

fn remote(name: &str, bytes: &[u8]) -> RemoteFile {
    let name = FileName::try_from(name).unwrap();
    RemoteFile { name, size: bytes.len() as u64, sum: sha256(bytes) }
}

/// More than a piece, and less than one.
fn contents() -> [Vec<u8>; 2] {
    let long = (0..PIECE + 100).map(|i| (i.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
    [b"short".to_vec(), long]
}

fn files() -> Vec<RemoteFile> {
    let [short, long] = contents();
    vec![remote("m/2.gguf", &long), remote("m/1.gguf", &short)]
}

fn open(store: &Path) -> Download {
    Download::open(store, &id(), files(), &plenty).unwrap()
}

/// Takes the rest of a file.
fn fill(download: &mut Download, number: u32) {
    let bytes = &contents()[number as usize];
    let mut file = download.begin(number).unwrap();
    let there = file.arrived() as usize;
    file.write(&bytes[there..]).unwrap();
    let tree = file.finish().unwrap();
    download.keep(number, tree);
}

#[test]
fn a_whole_model_is_put_into_its_place_and_offered() {
    let store = tempfile::tempdir().unwrap();
    let mut download = open(store.path());
    (0..2).for_each(|number| fill(&mut download, number));
    assert_eq!(download.arrived(), download.total());
    let (path, manifest) = download.finish(false, None).unwrap();
    assert_eq!(path, store.path().join("org/name:Q4_K_M"));
    let [short, long] = contents();
    assert_eq!(fs::read(path.join("m/2.gguf")).unwrap(), long);
    let roots: Vec<Value> = manifest.files().iter().map(|file| file.root).collect();
    assert_eq!(roots, [*blake3::hash(&short).as_bytes(), *blake3::hash(&long).as_bytes()]);
    let sources = Sources { store: Some(store.path().to_owned()), ..Sources::default() };
    let offered = Library::new(sources).find(&id()).unwrap();
    assert_eq!(offered.files.len(), 2, "the notes beside it are not offered");
    assert!(!store.path().join(".arriving").read_dir().unwrap().any(|entry| entry.is_ok()));
}

#[test]
fn a_download_goes_on_from_any_byte() {
    let [_, long] = contents();
    for cut in [1, 100, PIECE as usize - 1, PIECE as usize, long.len() - 1, long.len()] {
        let store = tempfile::tempdir().unwrap();
        open(store.path()).begin(1).unwrap().write(&long[..cut]).unwrap();
        let mut download = open(store.path());
        assert_eq!(download.arrived(), cut as u64);
        assert_eq!(download.begin(1).unwrap().arrived(), cut as u64);
        (0..2).for_each(|number| fill(&mut download, number));
        download.finish(false, None).unwrap();
        assert!(has(store.path(), &id(), &sorted()).unwrap());
    }
}

fn sorted() -> Vec<RemoteFile> {
    let mut files = files();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

#[test]
fn damage_is_found_and_the_file_begins_anew() {
    let store = tempfile::tempdir().unwrap();
    let mut download = open(store.path());
    let [short, _] = contents();
    let mut file = download.begin(0).unwrap();
    file.write(b"shorT").unwrap();
    assert!(
        matches!(file.finish(), Err(ArrivalError::Altered { file }) if file.as_str() == "m/1.gguf")
    );
    let mut second = download.begin(0).unwrap();
    assert_eq!(second.arrived(), 0);
    second.write(&short).unwrap();
    let tree = second.finish().unwrap();
    download.keep(0, tree);
    let (arrived, total) = (5, download.total());
    let unfinished = download.finish(false, None);
    assert!(
        matches!(unfinished, Err(ArrivalError::Incomplete { arrived: a, total: t }) if (a, t) == (arrived, total))
    );
}

#[test]
fn damage_on_the_disk_between_two_starts_is_found() {
    let store = tempfile::tempdir().unwrap();
    let download = open(store.path());
    let [_, long] = contents();
    download.begin(1).unwrap().write(&long[..100]).unwrap();
    let path = download.folder.file(1);
    drop(download);
    fs::write(&path, [0; 100]).unwrap();
    let download = open(store.path());
    let mut file = download.begin(1).unwrap();
    file.write(&long[100..]).unwrap();
    assert!(matches!(file.finish(), Err(ArrivalError::Altered { .. })));
    fs::write(&path, vec![0; long.len() + 1]).unwrap();
    assert_eq!(download.begin(1).unwrap().arrived(), 0, "longer than it may be");
}

#[test]
fn more_bytes_than_a_file_has_are_refused() {
    let store = tempfile::tempdir().unwrap();
    let mut file = open(store.path()).begin(0).unwrap();
    assert!(matches!(file.write(b"longer"), Err(ArrivalError::Altered { .. })));
    assert_eq!(file.arrived(), 0);
}

#[test]
fn a_full_disk_is_seen_before_and_told_while_writing() {
    let store = tempfile::tempdir().unwrap();
    let little = |_: &Path| Ok(crate::space::SPARE + 10);
    let error = Download::open(store.path(), &id(), files(), &little).unwrap_err();
    assert!(matches!(error, ArrivalError::NoSpace { .. }), "{error}");
    let download = open(store.path());
    symlink("/dev/full", download.folder.file(0)).unwrap();
    let mut file = download.begin(0).unwrap();
    assert!(matches!(file.write(b"short"), Err(ArrivalError::Full { .. })));
}

#[test]
fn two_processes_do_not_fetch_one_model() {
    let store = tempfile::tempdir().unwrap();
    let _first = open(store.path());
    let second = Download::open(store.path(), &id(), files(), &plenty);
    assert!(matches!(second, Err(ArrivalError::Busy { .. })));
}

#[test]
fn an_installation_that_was_interrupted_is_done_again() {
    let store = tempfile::tempdir().unwrap();
    let mut download = open(store.path());
    (0..2).for_each(|number| fill(&mut download, number));
    let (model, first) = (download.folder.path("model"), download.folder.file(0));
    fs::create_dir_all(model.join("m")).unwrap();
    fs::rename(first, model.join("m/1.gguf")).unwrap();
    drop(download);
    let mut download = open(store.path());
    assert_eq!(download.arrived(), download.total());
    (0..2).for_each(|number| fill(&mut download, number));
    download.finish(false, None).unwrap();
}

#[test]
fn another_model_of_the_name_is_told_and_replaced_only_if_that_is_wanted() {
    let store = tempfile::tempdir().unwrap();
    assert!(!has(store.path(), &id(), &sorted()).unwrap());
    let mut download = open(store.path());
    (0..2).for_each(|number| fill(&mut download, number));
    let (path, _) = download.finish(false, None).unwrap();
    let other = vec![remote("m/1.gguf", b"other")];
    assert!(matches!(has(store.path(), &id(), &other), Err(ArrivalError::Exists { .. })));
    let fetch = |replace| {
        let mut download = Download::open(store.path(), &id(), other.clone(), &plenty).unwrap();
        let mut file = download.begin(0).unwrap();
        file.write(&b"other"[file.arrived() as usize..]).unwrap();
        let tree = file.finish().unwrap();
        download.keep(0, tree);
        download.finish(replace, None)
    };
    assert!(matches!(fetch(false), Err(ArrivalError::Exists { .. })));
    fetch(true).unwrap();
    assert!(has(store.path(), &id(), &other).unwrap());
    // Without the notes, as when it came from a peer, the bytes themselves decide.
    fs::remove_file(path.join(SUMS)).unwrap();
    assert!(has(store.path(), &id(), &other).unwrap());
    fs::write(path.join("m/1.gguf"), b"0ther").unwrap();
    assert!(has(store.path(), &id(), &other).is_err());
}

#[test]
fn names_that_do_not_go_together_are_refused() {
    let store = tempfile::tempdir().unwrap();
    let refused = |files: &[(&str, &[u8])]| {
        let files = files.iter().map(|(name, bytes)| remote(name, bytes)).collect();
        Download::open(store.path(), &id(), files, &plenty).unwrap_err()
    };
    assert!(matches!(refused(&[]), ArrivalError::Manifest(ManifestError::Empty)));
    let twice = refused(&[("a", b"1"), ("a", b"1")]);
    assert!(matches!(twice, ArrivalError::Manifest(ManifestError::Order(_))));
    let cased = refused(&[("a", b"1"), ("A", b"1")]);
    assert!(matches!(cased, ArrivalError::Manifest(ManifestError::Case(_))));
}

#[test]
fn a_small_file_is_checked_as_git_does() {
    // `printf hello | git hash-object --stdin`
    let sum = Sum::git("b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0").unwrap();
    let name = FileName::try_from("m.gguf").unwrap();
    let store = tempfile::tempdir().unwrap();
    let files = vec![RemoteFile { name, size: 5, sum }];
    let download = Download::open(store.path(), &id(), files, &plenty).unwrap();
    let mut file = download.begin(0).unwrap();
    file.write(b"hello").unwrap();
    file.finish().unwrap();
    assert_eq!(Sum::git("b6fc"), None);
    assert_eq!(Sum::sha256(&"é".repeat(32)), None);
    let written = serde_json::to_string(&sha256(b"")).unwrap();
    assert_eq!(serde_json::from_str::<Sum>(&written).unwrap(), sha256(b""));
    assert!(serde_json::from_str::<Sum>("\"12\"").is_err());
}
