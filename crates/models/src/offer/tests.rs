//! The offered models of each source, and the files that must not be offered.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
};

use super::*;

fn put(root: &Path, name: &str, bytes: &[u8]) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn contents(library: &Library) -> Vec<(String, Vec<(String, u64)>)> {
    let files = |offered: &Offered| {
        offered.files.iter().map(|file| (file.name.to_string(), file.size)).collect()
    };
    library.scan().iter().map(|offered| (offered.id.to_string(), files(offered))).collect()
}

fn folder(path: &Path) -> Library {
    Library::new(Sources { folders: vec![path.to_owned()], ..Sources::default() })
}

fn id(text: &str) -> ModelId {
    ModelId::try_from(text).unwrap()
}

#[test]
fn directories_are_offered_with_all_below_them_but_what_is_hidden() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "org/name/b/c.safetensors", b"12345");
    put(dir.path(), "org/name/config.json", b"{}");
    put(dir.path(), "org/name/empty", b"");
    put(dir.path(), "org/name/.hidden", b"x");
    put(dir.path(), "org/name/.git/x", b"x");
    put(dir.path(), "org/nothing/empty", b"");
    put(dir.path(), ".org/name/x", b"x");
    put(dir.path(), "single.gguf", b"gg");
    put(dir.path(), "readme.md", b"no model");
    let library = folder(dir.path());
    let files = [("b/c.safetensors", 5), ("config.json", 2), ("empty", 0)];
    let files = files.map(|(name, size)| (name.to_owned(), size)).to_vec();
    let single = vec![("single.gguf".to_owned(), 2)];
    let all = vec![("single".to_owned(), single), ("org/name".to_owned(), files)];
    assert_eq!(contents(&library), all);
    assert_eq!(library.find(&id("org/name")).unwrap().size(), 7);
    assert_eq!(library.find(&id("org/nothing")), None);
    assert_eq!(library.find(&id("org/other")), None);
}

#[test]
fn a_model_that_is_cut_into_files_is_one_and_only_offered_whole() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf", "cut-00001-of-00002.gguf"] {
        put(dir.path(), name, b"gg");
    }
    put(dir.path(), "org/cut/model-00001-of-00002.safetensors", b"x");
    put(dir.path(), "org/fetched/model.gguf", b"x");
    put(dir.path(), "org/fetched/.cache/huggingface/download/model.gguf.1a2b.incomplete", b"x");
    put(dir.path(), "org/whole/model.gguf", b"x");
    let sources = Sources { folders: vec![dir.path().to_owned()], ..Sources::default() };
    let offered = Library::new(sources).scan();
    let ids: Vec<_> = offered.iter().map(|offered| offered.id.as_str()).collect();
    assert_eq!(ids, ["big", "org/whole"]);
    assert_eq!((offered[0].files.len(), offered[0].size()), (2, 4));
}

#[test]
fn links_that_lead_out_of_the_directory_are_not_offered() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(out.path(), "secret", b"secret");
    put(out.path(), "name/x", b"secret");
    put(dir.path(), "shared/weights", b"weights");
    put(dir.path(), "org/name/x", b"x");
    let name = dir.path().join("org/name");
    symlink(out.path().join("secret"), name.join("absolute")).unwrap();
    symlink("../../../secret", name.join("relative")).unwrap();
    symlink(out.path(), name.join("directory")).unwrap();
    symlink("..", name.join("loop")).unwrap();
    symlink("nowhere", name.join("dangling")).unwrap();
    symlink("../../shared/weights", name.join("within")).unwrap();
    symlink(out.path().join("name"), dir.path().join("org/linked")).unwrap();
    symlink(out.path(), dir.path().join("linked")).unwrap();
    symlink(out.path().join("secret"), dir.path().join("out.gguf")).unwrap();
    let offered = folder(dir.path()).scan();
    assert_eq!(offered.len(), 1);
    let names: Vec<_> = offered[0].files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["within", "x"]);
    assert_eq!(offered[0].files[0].open().unwrap().read_at(0, 7).unwrap(), b"weights");
}

#[test]
fn the_directory_itself_may_be_a_link() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "real/org/name/x", b"x");
    symlink("real", dir.path().join("link")).unwrap();
    assert_eq!(folder(&dir.path().join("link")).scan().len(), 1);
}

#[test]
fn a_link_that_was_put_in_a_files_place_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "org/name/x", b"123");
    put(dir.path(), "secret", b"456");
    let offered = folder(dir.path()).find(&id("org/name")).unwrap();
    let path = dir.path().join("org/name/x");
    fs::remove_file(&path).unwrap();
    symlink(dir.path().join("secret"), &path).unwrap();
    assert!(offered.files[0].open().is_err());
    fs::remove_file(&path).unwrap();
    assert!(offered.files[0].open().is_err());
    fs::write(&path, "another length").unwrap();
    assert!(offered.files[0].open().is_err());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(offered.files[0].open().is_err());
}

#[test]
fn names_that_no_peer_takes_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "org/name/x", b"x");
    put(dir.path(), "org/-rf/x", b"x");
    put(dir.path(), "a\nb/name/x", b"x");
    let name = dir.path().join("org/name");
    fs::write(name.join("back\\slash"), "x").unwrap();
    fs::write(name.join(OsStr::from_bytes(b"\xff\xfe")), "x").unwrap();
    fs::create_dir(dir.path().join(OsStr::from_bytes(b"\xff"))).unwrap();
    put(&name, "1/2/3/4/5/6/7/8", b"deepest");
    put(&name, "1/2/3/4/5/6/7/8_/9", b"too deep");
    let all = contents(&folder(dir.path()));
    let files = vec![("1/2/3/4/5/6/7/8".to_owned(), 7), ("x".to_owned(), 1)];
    assert_eq!(all, [("org/name".to_owned(), files)]);
}

#[test]
fn pipes_and_the_like_are_not_offered() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "org/name/x", b"x");
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("org/name/s")).unwrap();
    assert_eq!(folder(dir.path()).scan()[0].files.len(), 1);
}

#[test]
fn models_and_files_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..=MAX_FILES {
        put(dir.path(), &format!("org/much/{i}"), b"x");
    }
    put(dir.path(), "org/small/x", b"x");
    for i in 0..MAX_MODELS {
        put(dir.path(), &format!("{i}.gguf"), b"x");
    }
    let library = folder(dir.path());
    assert_eq!(library.scan().len(), MAX_MODELS);
    fs::remove_file(dir.path().join("0.gguf")).unwrap();
    fs::remove_file(dir.path().join("1.gguf")).unwrap();
    let ids: Vec<_> = library.scan().into_iter().map(|offered| offered.id).collect();
    assert!(ids.contains(&id("org/small")) && !ids.contains(&id("org/much")));
}

fn ollama(root: &Path, manifest: &str, name: &str) {
    put(root, &format!("manifests/{name}"), manifest.as_bytes());
}

#[test]
fn models_of_ollama_are_offered_by_their_manifests() {
    let dir = tempfile::tempdir().unwrap();
    let (weights, config) = ("ab".repeat(32), "cd".repeat(32));
    put(dir.path(), &format!("blobs/sha256-{weights}"), b"weights");
    put(dir.path(), &format!("blobs/sha256-{config}"), b"{}");
    let layer =
        |digest: &str, size: u64| format!(r#"{{"digest":"sha256:{digest}","size":{size}}}"#);
    let layers = |layers: &[String]| {
        format!(
            r#"{{"schemaVersion":2,"config":{},"layers":[{}]}}"#,
            layer(&config, 2),
            layers.join(",")
        )
    };
    let good = layers(&[layer(&weights, 7), layer(&weights, 7)]);
    ollama(dir.path(), &good, "registry.ollama.ai/library/llama3/8b");
    ollama(dir.path(), &good, "registry.ollama.ai/me/mine/latest");
    ollama(dir.path(), &good, "hf.co/org/name/Q4");
    ollama(dir.path(), &layers(&[layer(&weights, 8)]), "registry.ollama.ai/library/a/partial");
    ollama(
        dir.path(),
        &layers(&[layer(&"00".repeat(32), 1)]),
        "registry.ollama.ai/library/b/missing",
    );
    ollama(
        dir.path(),
        &layers(&[layer("../../secret", 1)]),
        "registry.ollama.ai/library/c/hostile",
    );
    ollama(dir.path(), "no json", "registry.ollama.ai/library/d/broken");
    let library =
        Library::new(Sources { ollama: Some(dir.path().to_owned()), ..Sources::default() });
    let all = library.scan();
    let ids: Vec<_> = all.iter().map(|offered| offered.id.as_str()).collect();
    assert_eq!(ids, ["hf.co/org/name:Q4", "llama3:8b", "me/mine:latest"]);
    let names: Vec<_> = all[1].files.iter().map(|file| file.name.to_string()).collect();
    assert_eq!(names, ["manifest.json", &format!("sha256-{weights}"), &format!("sha256-{config}")]);
    assert_eq!(all[1].source, "ollama");
}

#[test]
fn a_blob_that_is_a_link_out_of_ollamas_directory_is_not_offered() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(out.path(), "secret", b"secret");
    let digest = "ab".repeat(32);
    fs::create_dir(dir.path().join("blobs")).unwrap();
    symlink(out.path().join("secret"), dir.path().join(format!("blobs/sha256-{digest}"))).unwrap();
    let manifest = format!(r#"{{"layers":[{{"digest":"sha256:{digest}","size":6}}]}}"#);
    ollama(dir.path(), &manifest, "registry.ollama.ai/library/a/b");
    let sources = Sources { ollama: Some(dir.path().to_owned()), ..Sources::default() };
    assert!(Library::new(sources).scan().is_empty());
}

#[test]
fn the_cache_of_hugging_face_is_offered_in_its_main_revision() {
    let (hub, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(out.path(), "secret", b"secret");
    let model = hub.path().join("models--org--a--b");
    put(&model, "blobs/one", b"one");
    put(&model, "blobs/two", b"two");
    put(&model, "refs/main", b"rev1\n");
    for (revision, blob) in [("rev1", "one"), ("rev2", "two")] {
        fs::create_dir_all(model.join("snapshots").join(revision)).unwrap();
        let link = model.join("snapshots").join(revision).join("model.safetensors");
        symlink(format!("../../blobs/{blob}"), link).unwrap();
    }
    put(hub.path(), "models--org--other/blobs/x", b"other's");
    let snapshot = model.join("snapshots/rev1");
    symlink("../../../models--org--other/blobs/x", snapshot.join("others")).unwrap();
    symlink(out.path().join("secret"), snapshot.join("secret")).unwrap();
    put(hub.path(), "datasets--org--data/snapshots/rev/x", b"x");
    put(hub.path(), "models--gpt2/snapshots/rev/x", b"x");
    let sources = Sources { hugging_face: Some(hub.path().to_owned()), ..Sources::default() };
    let all = contents(&Library::new(sources.clone()));
    let one = |name: &str, size| vec![(name.to_owned(), size)];
    let expected =
        [("gpt2".to_owned(), one("x", 1)), ("org/a--b".to_owned(), one("model.safetensors", 3))];
    assert_eq!(all, expected);
    let file = Library::new(sources).find(&id("org/a--b")).unwrap().files.remove(0);
    assert_eq!(file.open().unwrap().read_at(0, 3).unwrap(), b"one");
}

#[test]
fn programs_are_believed_where_their_environment_says_that_they_keep_models_elsewhere() {
    let said = |names: &'static [(&str, &str)]| {
        Sources::of_home(Path::new("/home")).as_said_by(|name| {
            names.iter().find(|(known, _)| *known == name).map(|(_, said)| said.into())
        })
    };
    let hub = |names| said(names).hugging_face.unwrap().to_str().unwrap().to_owned();
    assert_eq!(hub(&[]), "/home/.cache/huggingface/hub");
    assert_eq!(hub(&[("XDG_CACHE_HOME", "/x")]), "/x/huggingface/hub");
    assert_eq!(hub(&[("XDG_CACHE_HOME", "/x"), ("HF_HOME", "/h")]), "/h/hub");
    assert_eq!(hub(&[("HF_HOME", "/h"), ("HF_HUB_CACHE", "/c")]), "/c");
    assert_eq!(hub(&[("HF_HOME", ""), ("HF_HUB_CACHE", "")]), "/home/.cache/huggingface/hub");
    assert_eq!(said(&[("HF_HOME", "/h")]).ollama, Some("/home/.ollama/models".into()));
    assert_eq!(said(&[("OLLAMA_MODELS", "/o")]).ollama, Some("/o".into()));
}

#[test]
fn of_two_models_of_one_name_the_users_own_is_offered() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(first.path(), "org/name/x", b"first");
    put(second.path(), "org/name/x", b"second");
    put(second.path(), "org/more/x", b"more");
    let sources = Sources {
        folders: vec![first.path().to_owned()],
        lm_studio: vec![second.path().to_owned(), first.path().join("nowhere")],
        ..Sources::default()
    };
    let all = Library::new(sources).scan();
    let all: Vec<_> = all.iter().map(|o| (o.id.as_str(), o.source, o.size())).collect();
    assert_eq!(all, [("org/name", "folder", 5), ("org/more", "lm-studio", 4)]);
}

#[test]
fn reading_is_bounded_and_notices_changes() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "a.gguf", b"0123456789");
    let reader = folder(dir.path()).scan()[0].files[0].open().unwrap();
    assert_eq!(reader.read_at(8, 2).unwrap(), b"89");
    assert_eq!(reader.read_at(10, 0).unwrap(), b"");
    for (offset, len) in [(9, 2), (11, 0), (u64::MAX, 2), (0, u64::MAX), (0, MAX_READ + 1)] {
        let error = reader.read_at(offset, len).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{offset}, {len}");
    }
    assert_eq!(reader.piece(0).unwrap().len(), 10);
    assert!(reader.piece(1).unwrap().is_empty() && reader.piece(u64::MAX).unwrap().is_empty());
    put(dir.path(), "a.gguf", b"01234567890");
    assert_eq!(reader.read_at(0, 1).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
}
