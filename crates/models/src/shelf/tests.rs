//! Which models are found, what they are called, and what is passed over.

use std::{fs, os::unix::fs::symlink};

use tempfile::TempDir;
use testkit::GgufFile;

use super::*;

/// A directory with files.
struct Folder(TempDir);

impl Folder {
    fn of(files: &[(&str, GgufFile)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, file)| folder.put(name, &file.bytes(0)));
        folder
    }

    /// Models with these names.
    fn models(names: &[&str]) -> Self {
        Self::of(&names.iter().map(|name| (*name, GgufFile::model())).collect::<Vec<_>>())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), bytes).unwrap();
    }

    fn shelf(&self) -> Shelf {
        Shelf::new(vec![self.0.path().to_owned()], Sources::default())
    }

    fn scan(&self) -> Scan {
        self.shelf().scan(later())
    }
}

/// When all files of a test are old enough.
fn later() -> SystemTime {
    SystemTime::now() + 10 * SETTLED
}

fn names(scan: &Scan) -> Vec<&str> {
    scan.models.iter().map(|model| model.name.as_str()).collect()
}

/// The only thing that was passed over.
fn reason(scan: &Scan) -> &str {
    assert_eq!(scan.passed_over.len(), 1, "{:?}", scan.passed_over);
    &scan.passed_over[0].reason
}

fn part(number: u16, of: u16) -> GgufFile {
    let part =
        if number == 1 { GgufFile::model() } else { GgufFile::new().tensor("more", &[64, 64]) };
    part.value("split.no", 2, &(number - 1).to_le_bytes()).value(
        "split.count",
        2,
        &of.to_le_bytes(),
    )
}

#[test]
fn a_model_is_called_as_its_file_without_its_quantization() {
    let folder = Folder::models(&["Qwen3-8B-Q4_K_M.gguf", "sub/org/phi.Q8_0.gguf", "plain.gguf"]);
    folder.put("readme.md", b"no model");
    folder.put(".hidden/other.gguf", &GgufFile::model().bytes(0));
    let scan = folder.scan();
    assert_eq!(names(&scan), ["Qwen3-8B", "plain", "phi"]);
    assert_eq!(scan.passed_over, []);
    let found = &scan.models[0];
    assert_eq!(found.file(), &*folder.path("Qwen3-8B-Q4_K_M.gguf"));
    let facts = found.facts();
    assert_eq!((facts.parameters, facts.context_tokens), (Some(4096), Some(512)));
    assert_eq!(facts.file_bytes, Some(fs::metadata(found.file()).unwrap().len()));
}

#[test]
fn two_of_one_name_keep_their_quantization_and_then_their_directory() {
    let two = ["Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B-Q8_0.gguf", "phi-Q4_0.gguf"];
    assert_eq!(names(&Folder::models(&two).scan()), ["Qwen3-8B-Q4_K_M", "Qwen3-8B-Q8_0", "phi"]);
    let same = Folder::models(&["a/phi-Q4_0.gguf", "b/phi-Q4_0.gguf", "b/phi-Q8_0.gguf"]).scan();
    assert_eq!(names(&same), ["a/phi-Q4_0", "b/phi-Q4_0", "phi-Q8_0"]);
    let lost = Folder::models(&["1/x/phi.gguf", "2/x/phi.gguf"]);
    let scan = lost.scan();
    assert_eq!(names(&scan), ["x/phi"]);
    assert_eq!(scan.passed_over[0].path, lost.path("2/x/phi.gguf"));
    assert!(reason(&scan).contains("another model is called x/phi"), "{}", reason(&scan));
    let cased = Folder::models(&["Phi-Q4_0.gguf", "phi-Q8_0.gguf"]).scan();
    assert_eq!(names(&cased), ["Phi-Q4_0", "phi-Q8_0"]);
}

#[test]
fn a_model_in_parts_is_one_when_all_are_there() {
    let folder = Folder::of(&[
        ("big-Q8_0-00001-of-00003.gguf", part(1, 3)),
        ("big-Q8_0-00002-of-00003.gguf", part(2, 3)),
    ]);
    let mut shelf = folder.shelf();
    let scan = shelf.scan(later());
    assert_eq!(names(&scan), [""; 0]);
    assert_eq!(reason(&scan), "its part 3 of 3 is not there yet, or is not whole");
    assert!(scan.passed_over[0].is_arriving);
    let last = part(3, 3).bytes(0);
    folder.put("big-Q8_0-00003-of-00003.gguf", &last[..last.len() - 1]);
    assert_eq!(shelf.scan(later()).models, []);
    folder.put("big-Q8_0-00003-of-00003.gguf", &last);
    let scan = shelf.scan(later());
    assert_eq!((names(&scan), scan.passed_over.len()), (vec!["big"], 0));
    let big = &scan.models[0];
    assert_eq!((big.files.len(), big.head.parameters), (3, 3 * 4096));
    assert!(big.file().ends_with("big-Q8_0-00001-of-00003.gguf"));
    let sum: u64 = big.files.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert_eq!(big.file_bytes, sum);
}

#[test]
fn parts_that_no_disk_has_are_not_waited_for() {
    let folder =
        Folder::of(&[("m-00001-of-4294967295.gguf", part(1, 9)), ("odd.gguf", part(2, 3))]);
    let scan = folder.scan();
    assert_eq!((scan.models.len(), scan.passed_over.len()), (0, 2));
    assert!(scan.passed_over[0].reason.contains("part 2 of 4294967295"));
    assert!(scan.passed_over[1].reason.contains("name it NAME-00001-of-00002.gguf"));
}

#[test]
fn a_projector_goes_with_its_model() {
    let folder = Folder::models(&["vl/See-4B-Q4_0.gguf", "vl/See-4B-Q8_0.gguf", "a/Other-1B.gguf"]);
    folder
        .put("vl/mmproj-F32.gguf", &GgufFile::projector().number("general.file_type", 0).bytes(0));
    folder
        .put("vl/mmproj-F16.gguf", &GgufFile::projector().number("general.file_type", 1).bytes(0));
    let scan = folder.scan();
    assert_eq!(names(&scan), ["Other-1B", "See-4B-Q4_0", "See-4B-Q8_0"]);
    let projector = |model: &LocalModel| model.projector.as_ref().map(|p| p.file.clone());
    let all: Vec<_> = scan.models.iter().map(projector).collect();
    let exact = Some(folder.path("vl/mmproj-F16.gguf"));
    assert_eq!(all, [None, exact.clone(), exact]);
    let capabilities = scan.models[1].facts().capabilities.unwrap();
    assert!(capabilities.contains(Capability::Vision));
    let (with, without) = (scan.models[1].memory(10, 1), scan.models[0].memory(10, 1));
    assert_eq!(with - without, fs::metadata(folder.path("vl/mmproj-F16.gguf")).unwrap().len());
}

#[test]
fn in_a_directory_of_several_models_a_projector_is_found_by_its_name() {
    let folder = Folder::models(&["See-4B-Q4_0.gguf", "Other-1B.gguf"]);
    folder.put("mmproj-see-4b-F16.gguf", &GgufFile::projector().bytes(0));
    folder.put("mmproj-model-f16.gguf", &GgufFile::projector().bytes(0));
    let scan = folder.scan();
    let with: Vec<_> = scan.models.iter().map(|model| model.projector.is_some()).collect();
    assert_eq!((names(&scan), with), (vec!["Other-1B", "See-4B"], vec![false, true]));
    assert!(reason(&scan).contains("is a projector"), "{}", reason(&scan));
}

#[test]
fn what_is_no_model_is_passed_over_with_the_reason() {
    let folder = Folder::of(&[
        ("lora.gguf", GgufFile::model().text("adapter.type", "lora")),
        ("vocab.gguf", GgufFile::new().text("general.architecture", "llama")),
    ]);
    folder.put("web.gguf", b"<html>not found</html>");
    folder.put("newer.gguf", b"GGUF\x09\0\0\0");
    folder.put("-rf.gguf", &GgufFile::model().bytes(0));
    let scan = folder.scan();
    let listed: Vec<_> = scan
        .passed_over
        .iter()
        .map(|passed| (passed.path.file_name().unwrap().to_str().unwrap(), passed.reason.as_str()))
        .collect();
    let expected = [
        ("-rf.gguf", "a segment of the name begins with a dash"),
        ("lora.gguf", "it is an adapter (LoRA), which changes a model and is none"),
        ("newer.gguf", "its head is not understood: it is damaged, or of a newer form"),
        ("vocab.gguf", "it has words, but no weights"),
        ("web.gguf", "it is no GGUF file"),
    ];
    assert_eq!(listed, expected);
    assert!(scan.models.is_empty() && scan.passed_over.iter().all(|passed| !passed.is_arriving));
}

#[test]
fn a_file_that_is_being_written_waits_until_it_is_whole() {
    let folder = Folder::models(&[]);
    let (mut shelf, whole) = (folder.shelf(), GgufFile::model().bytes(0));
    for length in [5, 100, whole.len() - 1] {
        folder.put("m.gguf", &whole[..length]);
        let scan = shelf.scan(later());
        assert!(scan.models.is_empty() && scan.passed_over[0].is_arriving, "{length}");
    }
    folder.put("m.gguf", &whole);
    let scan = shelf.scan(SystemTime::now());
    assert_eq!((reason(&scan), scan.models.len()), ("it was written just now", 0));
    folder.put("m.gguf.aria2", b"note");
    let scan = shelf.scan(later());
    assert!(reason(&scan).contains(".aria2"), "{}", reason(&scan));
    fs::remove_file(folder.path("m.gguf.aria2")).unwrap();
    assert_eq!(names(&shelf.scan(later())), ["m"]);
}

#[test]
fn a_head_is_read_again_only_when_its_file_has_changed() {
    let folder = Folder::models(&["m.gguf"]);
    let mut shelf = folder.shelf();
    shelf.scan(later());
    let (path, stamp) = (folder.path("m.gguf").canonicalize().unwrap(), |path: &Path| {
        crate::offer::Stamp::of(&fs::metadata(path).unwrap())
    });
    // What is known of the same file is believed.
    let head = Gguf { context_tokens: Some(7), ..Gguf::read(&path).unwrap() };
    shelf.heads.know(&path, stamp(&path), head);
    assert_eq!(shelf.scan(later()).models[0].head.context_tokens, Some(7));
    folder.put("m.gguf", &GgufFile::model().number("llama.context_length", 9).bytes(0));
    assert_eq!(shelf.scan(later()).models[0].head.context_tokens, Some(9));
    fs::remove_file(&path).unwrap();
    shelf.scan(later());
    assert!(shelf.heads.is_empty(), "what went away is forgotten");
}

#[test]
fn a_directory_that_goes_away_takes_its_models_along_and_brings_them_back() {
    let folder = Folder::models(&["models/m.gguf"]);
    let (place, aside) = (folder.path("models"), folder.path("aside"));
    let mut shelf = Shelf::new(vec![place.clone()], Sources::default());
    assert_eq!(names(&shelf.scan(later())), ["m"]);
    fs::rename(&place, &aside).unwrap();
    let scan = shelf.scan(later());
    assert!(scan.models.is_empty() && reason(&scan).contains("is not there"));
    fs::rename(&aside, &place).unwrap();
    assert_eq!(names(&shelf.scan(later())), ["m"]);
}

#[test]
fn links_are_followed_once_and_in_a_circle_never() {
    let folder = Folder::models(&["real/m.gguf"]);
    fs::create_dir(folder.path("shelf")).unwrap();
    let link = |to: &str, name: &str| symlink(folder.path(to), folder.path(name)).unwrap();
    link("real", "shelf/linked");
    link("shelf", "shelf/circle");
    link("real/m.gguf", "shelf/again-Q4_0.gguf");
    link("nowhere", "shelf/broken.gguf");
    let scan = Shelf::new(vec![folder.path("shelf")], Sources::default()).scan(later());
    assert_eq!(names(&scan), ["again"], "by the name that comes first");
    assert_eq!(scan.models[0].file(), folder.path("shelf/again-Q4_0.gguf"));
    assert_eq!(reason(&scan), "it is a link to nothing");
}

#[test]
fn a_named_file_comes_with_its_parts_and_its_projector_only() {
    let folder = Folder::of(&[
        ("big-00001-of-00002.gguf", part(1, 2)),
        ("big-00002-of-00002.gguf", part(2, 2)),
        ("mmproj-big-f16.gguf", GgufFile::projector()),
        ("other.gguf", GgufFile::model()),
        ("blob", GgufFile::model()),
    ]);
    folder.put("broken.gguf", b"broken");
    let named = |name: &str| Shelf::new(vec![folder.path(name)], Sources::default()).scan(later());
    let scan = named("big-00001-of-00002.gguf");
    assert_eq!((names(&scan), scan.passed_over.len()), (vec!["big"], 0));
    assert!(scan.models[0].projector.is_some());
    assert_eq!(names(&named("blob")), ["blob"], "without an ending");
    assert_eq!(reason(&named("broken.gguf")), "it is no GGUF file");
    assert!(reason(&named("nothing.gguf")).contains("is not there"));
}

#[test]
fn models_of_the_store_have_the_names_by_which_they_arrived() {
    let folder = Folder::models(&["org/repo:Q8_0/phi-Q8_0.gguf", "org/strange/x.gguf"]);
    folder.put("org/repo:Q8_0/.warren.json", b"{}");
    folder.put(".arriving/1/files/0.gguf", &GgufFile::model().bytes(0));
    let store = Sources { store: Some(folder.0.path().to_owned()), ..Sources::default() };
    let scan = Shelf::new(Vec::new(), store).scan(SystemTime::now());
    assert_eq!(names(&scan), ["phi"], "whole from the beginning, and found at once");
    assert_eq!(
        scan.models[0].id.as_ref().map(ToString::to_string).as_deref(),
        Some("org/repo:Q8_0")
    );
}

#[test]
fn ollamas_blobs_are_called_as_ollama_calls_them() {
    let folder = Folder::models(&[]);
    let digests = ["ab", "cd", "ef"].map(|digest| digest.repeat(32));
    let blobs = [GgufFile::model().bytes(0), GgufFile::projector().bytes(0), b"{}".to_vec()];
    let mut layers = Vec::new();
    for (digest, blob) in digests.iter().zip(&blobs) {
        folder.put(&format!("blobs/sha256-{digest}"), blob);
        layers.push(format!(r#"{{"digest":"sha256:{digest}","size":{}}}"#, blob.len()));
    }
    let manifest = format!(r#"{{"layers":[{}]}}"#, layers.join(","));
    folder.put("manifests/registry.ollama.ai/library/llava/7b", manifest.as_bytes());
    let sources = Sources { ollama: Some(folder.0.path().to_owned()), ..Sources::default() };
    let scan = Shelf::new(Vec::new(), sources).scan(later());
    assert_eq!((names(&scan), scan.passed_over.len()), (vec!["llava:7b"], 0));
    assert!(scan.models[0].projector.is_some());
}
