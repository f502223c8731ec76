//! Backups of directories, and what is refused of archives.

use std::{
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use base::Scope;
use store::{ModelStore, SeenModel, SqliteStore};
use tempfile::TempDir;

use super::{write::Archive, *};
use crate::data::DataDir;

/// A data directory that was used, and room for archives.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { root: tempfile::tempdir().unwrap() };
        let data = DataDir::open(&place.data()).unwrap();
        let store = SqliteStore::open(&data.database().unwrap()).unwrap();
        store.save_models(&[seen("m")], 0).unwrap();
        for (name, text) in [
            ("admin.token", "wa_1\n"),
            ("mesh.key", "key"),
            ("models/big.gguf", "weights"),
            ("workspace/node.id", "id"),
            ("workspace/history/s1/turns", "turn"),
            ("workspace/agents/s1/auth.json", "theirs"),
        ] {
            let path = place.data().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(place.path("warren.toml"), "log = 'info'").unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn data(&self) -> PathBuf {
        self.path("data")
    }

    fn source(&self) -> Source {
        let outside = vec![self.path("warren.toml"), self.path("none.pem")];
        Source { data_dir: self.data(), workspace_dir: None, outside, history: true }
    }

    /// A backup of it.
    fn saved(&self) -> PathBuf {
        backup(&self.source(), &self.path("b.tar.gz"), true).unwrap().path
    }

    fn restored(&self, archive: &Path, to: &str, force: bool) -> Result<Restoration, String> {
        restore(archive, &self.path(to), force).map_err(|error| format!("{error:#}"))
    }
}

fn seen(name: &str) -> SeenModel {
    SeenModel { scope: Scope::server(), model: name.into(), first: 1, last: 2 }
}

/// The files below a directory, with their modes.
fn files(directory: &Path) -> Vec<(String, u32)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            all.extend(
                files(&entry.path())
                    .into_iter()
                    .map(|(rest, mode)| (format!("{name}/{rest}"), mode)),
            );
        } else {
            all.push((name, entry.metadata().unwrap().permissions().mode() & 0o777));
        }
    }
    all.sort();
    all
}

fn paths(of: &[FileEntry]) -> Vec<&str> {
    of.iter().map(|file| file.path.as_str()).collect()
}

const SAVED: [&str; 6] = [
    "data/warren.db",
    "data/admin.token",
    "data/mesh.key",
    "data/workspace/history/s1/turns",
    "data/workspace/node.id",
    "outside/warren.toml",
];

#[test]
fn files_elsewhere_that_have_one_name_are_all_in_it_and_each_once() {
    let place = Place::new();
    for (name, text) in [("cert/server.pem", "certificate"), ("key/server.pem", "key")] {
        fs::create_dir(place.path(name).parent().unwrap()).unwrap();
        fs::write(place.path(name), text).unwrap();
    }
    let names = ["none/server.pem", "cert/server.pem", "key/server.pem", "cert/server.pem"];
    let source = Source { outside: names.map(|name| place.path(name)).to_vec(), ..place.source() };
    let made = backup(&source, &place.path("b.tar.gz"), false).unwrap();
    let back = place.restored(&made.path, "new", false).unwrap().outside.unwrap();
    assert_eq!(
        files(&back).iter().map(|(name, _)| name).collect::<Vec<_>>(),
        ["2-server.pem", "server.pem"]
    );
    assert_eq!(fs::read_to_string(back.join("server.pem")).unwrap(), "certificate");
    assert_eq!(fs::read_to_string(back.join("2-server.pem")).unwrap(), "key");
}

#[test]
fn what_a_server_must_not_lose_goes_there_and_back() {
    let place = Place::new();
    let made = backup(&place.source(), &place.path("b.tar.gz"), false).unwrap();
    assert_eq!(paths(&made.contents.files), SAVED);
    assert!(!made.running && !made.shares);
    let mode = fs::metadata(&made.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(check(&made.path).unwrap(), made.contents);
    let back = place.restored(&made.path, "new", false).unwrap();
    assert_eq!((back.contents, back.before), (made.contents, None));
    let expected = [
        ("admin.token", 0o600),
        ("lock", 0o600),
        ("mesh.key", 0o600),
        ("restored/warren.toml", 0o600),
        ("warren.db", 0o600),
        ("workspace/history/s1/turns", 0o600),
        ("workspace/node.id", 0o600),
    ];
    let expected: Vec<_> = expected.map(|(name, mode)| (name.to_owned(), mode)).to_vec();
    assert_eq!(files(&place.path("new")), expected);
    let store = SqliteStore::open(&place.path("new/warren.db")).unwrap();
    assert_eq!(store.load_models().unwrap().len(), 1);
    let left: Vec<_> =
        fs::read_dir(place.root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "nothing is left beside it: {left:?}");
}

#[test]
fn output_of_sessions_may_stay_behind_and_a_directory_gets_a_name() {
    let place = Place::new();
    let source = Source { history: false, ..place.source() };
    let made = backup(&source, place.root.path(), false).unwrap();
    assert!(!paths(&made.contents.files).contains(&"data/workspace/history/s1/turns"));
    let name = made.path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("warren-2") && name.ends_with("Z.tar.gz"), "{name}");
    let error = backup(&source, &made.path, false).unwrap_err().to_string();
    assert!(error.contains("--force"), "{error}");
    backup(&source, &made.path, true).unwrap();
    let nothing = Source { data_dir: place.path("none"), ..Source::default() };
    assert!(backup(&nothing, &place.path("c"), false).is_err());
}

#[test]
fn what_waits_for_a_shared_database_goes_along() {
    let place = Place::new();
    drop(SqliteStore::open(&place.data().join("shared.db")).unwrap());
    let made = backup(&place.source(), &place.path("b.tar.gz"), false).unwrap();
    assert!(made.shares && paths(&made.contents.files).contains(&"data/shared.db"));
    place.restored(&made.path, "new", false).unwrap();
    SqliteStore::open(&place.path("new/shared.db")).unwrap();
}

#[test]
fn data_is_replaced_only_if_that_is_asked_for_and_kept_beside() {
    let place = Place::new();
    let archive = place.saved();
    fs::write(place.data().join("admin.token"), "wa_2\n").unwrap();
    let error = place.restored(&archive, "data", false).unwrap_err();
    assert!(error.contains("--force"), "{error}");
    let back = place.restored(&archive, "data", true).unwrap();
    let token = |directory: &Path| fs::read_to_string(directory.join("admin.token")).unwrap();
    assert_eq!(token(&place.data()), "wa_1\n");
    let before = back.before.unwrap();
    assert_eq!(token(&before), "wa_2\n");
    assert!(before.join("workspace/agents/s1/auth.json").exists());
    assert!(place.data().join("models/big.gguf").exists(), "models stay");
    let earlier: Vec<_> =
        (0..3).map(|_| place.restored(&archive, "data", true).unwrap().before.unwrap()).collect();
    assert!(earlier.iter().chain([&before]).all(|path| path.exists()), "none replaces another");
}

#[test]
fn a_running_server_is_not_restored_and_can_be_saved() {
    let place = Place::new();
    let running = DataDir::open(&place.data()).unwrap();
    let made = backup(&place.source(), &place.path("b.tar.gz"), false).unwrap();
    assert!(made.running);
    let error = place.restored(&made.path, "data", true).unwrap_err();
    assert!(error.contains("another Warren uses") && error.contains("stopped"), "{error}");
    drop(running);
    place.restored(&made.path, "data", true).unwrap();
}

/// A restore that is refused leaves the directory as it was.
#[track_caller]
fn assert_refused(place: &Place, archive: &Path, words: &str) {
    let before = files(&place.data());
    let error = place.restored(archive, "data", true).unwrap_err();
    assert!(error.contains(words), "{words}: {error}");
    assert_eq!(files(&place.data()), before);
    if !words.contains("database") {
        let error = format!("{:#}", check(archive).unwrap_err());
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// The content of a compressed file, if that is whole.
fn unpacked(file: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut text).ok()?;
    Some(text)
}

#[test]
fn a_damaged_archive_is_refused_wherever_it_is_damaged() {
    let place = Place::new();
    let archive = place.saved();
    let good = fs::read(&archive).unwrap();
    let bad = place.path("bad.tar.gz");
    for cut in [0, 1, 20, good.len() / 2, good.len() - 9, good.len() - 1] {
        fs::write(&bad, &good[..cut]).unwrap();
        assert_refused(&place, &bad, "cannot be restored");
    }
    // The first bytes tell the time and the system, which nobody reads.
    for at in (10..good.len()).step_by(good.len() / 150) {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        // A few bits only fill bytes up between two blocks: whatever they are, the same comes out.
        if unpacked(&flipped) == unpacked(&good) {
            continue;
        }
        fs::write(&bad, flipped).unwrap();
        assert_refused(&place, &bad, "cannot be restored");
    }
    fs::write(&bad, "no archive at all").unwrap();
    assert_refused(&place, &bad, "no backup of a Warren");
}

/// An archive with these files, whatever they are called.
fn crafted(place: &Place, format: u32, paths: &[&str]) -> PathBuf {
    let path = place.path("crafted.tar.gz");
    let _before = fs::remove_file(&path);
    let mut archive = Archive::create(&path).unwrap();
    let head = Head { format, version: "9.9.9".to_owned(), made_at: String::new() };
    archive.add_text(HEAD, &serde_json::to_vec(&head).unwrap()).unwrap();
    for path in paths {
        archive.add(path, 2, &b"hi"[..]).unwrap();
    }
    archive.finish().unwrap();
    path
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    let place = Place::new();
    for path in [
        "../evil",
        "/etc/evil",
        "data/../../evil",
        "data/./evil",
        "data//evil",
        "data/a/../b",
        "elsewhere/evil",
        "evil",
        "data",
        "data/",
        "outside/../evil",
    ] {
        assert_refused(&place, &crafted(&place, FORMAT, &[path]), "leads elsewhere");
    }
    assert!(!place.path("evil").exists());
    let twice = crafted(&place, FORMAT, &["data/a", "data/a"]);
    assert_refused(&place, &twice, "one twice");
}

#[test]
fn newer_archives_and_newer_databases_are_refused() {
    let place = Place::new();
    let newer = crafted(&place, FORMAT + 1, &["data/a"]);
    assert_refused(&place, &newer, "newer version of Warren (9.9.9)");
    let no_database = crafted(&place, FORMAT, &["data/warren.db"]);
    assert_refused(&place, &no_database, "database");
}

#[test]
fn an_archive_without_its_list_or_with_another_is_refused() {
    let place = Place::new();
    let path = place.path("listless.tar.gz");
    let build = |manifest: Option<Manifest>| {
        let _before = fs::remove_file(&path);
        let mut archive = Archive::create(&path).unwrap();
        let head = Head { format: FORMAT, version: "1".to_owned(), made_at: String::new() };
        archive.add_text(HEAD, &serde_json::to_vec(&head).unwrap()).unwrap();
        archive.add("data/a", 2, &b"hi"[..]).unwrap();
        if let Some(manifest) = manifest {
            archive.add_text(MANIFEST, &serde_json::to_vec(&manifest).unwrap()).unwrap();
        }
        // A list of its own follows behind the one that counts.
        archive.finish().unwrap();
    };
    let entry = FileEntry { path: "data/a".to_owned(), bytes: 2, sha256: hex([0; 32]) };
    build(Some(Manifest { files: vec![entry] }));
    assert_refused(&place, &path, "not those of its list");
    build(Some(Manifest { files: Vec::new() }));
    assert_refused(&place, &path, "not those of its list");
    build(None);
    assert_eq!(check(&path).unwrap().files.len(), 1);
}
