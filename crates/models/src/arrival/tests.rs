//! Arrivals: whole, interrupted anywhere, and fed by hostile peers.

use std::{cell::Cell, fs};

use super::*;
use crate::{
    manifest::{MAX_FILES, MAX_TOTAL, ManifestError, ManifestFile},
    name::{FileName, ModelId},
    offer::{Library, Sources},
};

const BOOT: Option<[u8; 16]> = Some([1; 16]);

fn plenty(_: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

fn name(text: &str) -> FileName {
    FileName::try_from(text).unwrap()
}

fn id(text: &str) -> ModelId {
    ModelId::try_from(text).unwrap()
}

fn bytes(size: u64, seed: u64) -> Vec<u8> {
    (0..size).map(|i| ((i + seed).wrapping_mul(2_654_435_761) >> 9) as u8).collect()
}

/// A model to be sent: its files with their names.
struct Model {
    manifest: Manifest,
    files: Vec<Vec<u8>>,
}

impl Model {
    fn new(model: &str, seed: u64) -> Self {
        let sizes = [("config.json", 20), ("deep/empty", 0), ("weights", 3 * PIECE + 5)];
        let files: Vec<_> = sizes.iter().map(|(_, size)| bytes(*size, seed)).collect();
        let entry = |((name_of, size), bytes): (&(&str, u64), &Vec<u8>)| ManifestFile {
            name: name(name_of),
            size: *size,
            root: blake3::hash(bytes).into(),
        };
        let manifest = Manifest::new(id(model), sizes.iter().zip(&files).map(entry).collect());
        Self { manifest: manifest.unwrap(), files }
    }

    fn tree(&self, file: u32) -> Vec<u8> {
        let go_on = |_| std::ops::ControlFlow::Continue(());
        Tree::of(&self.files[file as usize][..], go_on).unwrap().to_bytes()
    }

    fn piece(&self, piece: PieceId) -> &[u8] {
        let file = &self.files[piece.file as usize];
        file.chunks(PIECE as usize).nth(piece.piece as usize).unwrap()
    }

    fn send_trees(&self, arrival: &Arrival) {
        for file in arrival.files_without_tree() {
            arrival.set_tree(file, &self.tree(file)).unwrap();
        }
    }

    fn send(&self, arrival: &Arrival) {
        self.send_trees(arrival);
        for piece in arrival.missing() {
            assert!(arrival.write(piece, self.piece(piece)).unwrap());
        }
    }

    fn assert_at(&self, path: &Path) {
        for (file, bytes) in self.manifest.files().iter().zip(&self.files) {
            assert!(fs::read(file.name.below(path)).unwrap() == *bytes, "{}", file.name);
        }
    }

    fn arrive(&self, store: &Path) -> PathBuf {
        let arrival = self.open(store);
        self.send(&arrival);
        arrival.finish(false, None).unwrap()
    }

    fn open(&self, store: &Path) -> Arrival {
        Arrival::open_in(store, &self.manifest, &plenty, BOOT).unwrap()
    }

    fn reopen_after_boot(&self, store: &Path) -> Arrival {
        Arrival::open_in(store, &self.manifest, &plenty, Some([2; 16])).unwrap()
    }
}

fn is_tidy(store: &Path) -> bool {
    fs::read_dir(store.join(ARRIVING)).map_or(true, |entries| entries.count() == 0)
}

#[test]
fn a_model_arrives_is_offered_and_need_not_be_hashed_again() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let arrival = model.open(dir.path());
    assert_eq!(arrival.files_without_tree(), [2]);
    model.send_trees(&arrival);
    assert_eq!(arrival.missing().len(), 5);
    model.send(&arrival);
    assert_eq!((arrival.arrived(), arrival.is_complete()), (model.manifest.total(), true));
    assert_eq!(unfinished(dir.path()), std::slice::from_ref(&model.manifest));
    let cache = TreeCache::open(dir.path()).unwrap();
    let path = arrival.finish(false, Some(&cache)).unwrap();
    assert_eq!(path, dir.path().join("org/name"));
    model.assert_at(&path);
    assert!(is_tidy(dir.path()));
    assert_eq!(installed(dir.path(), &id("org/name")), Some(model.manifest.clone()));

    let sources = Sources { store: Some(dir.path().to_owned()), ..Sources::default() };
    let offered = Library::new(sources).scan();
    assert_eq!((offered.len(), offered[0].size()), (1, model.manifest.total()));
    let known = offered[0].files.iter().map(|file| cache.known(file).unwrap().0.root());
    assert!(known.eq(model.manifest.files().iter().map(|file| file.root)));
}

#[test]
fn an_arrival_goes_on_where_it_was_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let arrival = model.open(dir.path());
    model.send_trees(&arrival);
    let first = arrival.missing()[1];
    arrival.write(first, model.piece(first)).unwrap();
    drop(arrival);
    let arrival = model.open(dir.path());
    assert!(arrival.files_without_tree().is_empty(), "trees are kept");
    assert!(!arrival.wants(first) && arrival.missing().len() == 4);
    assert!(!arrival.write(first, model.piece(first)).unwrap(), "it is there");
    model.send(&arrival);
    model.assert_at(&arrival.finish(false, None).unwrap());
}

#[test]
fn what_was_damaged_on_the_disk_is_noticed_before_the_model_appears() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let arrival = model.open(dir.path());
    model.send(&arrival);
    let written = arrival.folder.file(2);
    drop(arrival);
    // Within one piece, and the same length as before.
    let mut bytes = fs::read(&written).unwrap();
    bytes[PIECE as usize + 7] ^= 1;
    fs::write(&written, bytes).unwrap();
    let arrival = model.open(dir.path());
    assert!(arrival.is_complete(), "the journal says so");
    let damaged = arrival.finish(false, None).unwrap_err();
    assert!(matches!(damaged, ArrivalError::Damaged { bytes: PIECE, .. }), "{damaged:?}");
    assert_eq!(installed(dir.path(), &id("org/name")), None);
    let arrival = model.open(dir.path());
    assert_eq!(arrival.missing(), [PieceId { file: 2, piece: 1 }]);
    model.send(&arrival);
    model.assert_at(&arrival.finish(false, None).unwrap());
}

#[test]
fn a_journal_that_was_cut_off_anywhere_tells_what_came_before() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let arrival = model.open(dir.path());
    let journal = arrival.folder.journal();
    model.send(&arrival);
    drop(arrival);
    let whole = fs::read(&journal).unwrap();
    for length in 0..=whole.len() {
        fs::write(&journal, &whole[..length]).unwrap();
        let arrival = model.open(dir.path());
        let records = length.saturating_sub(64) / 16;
        assert_eq!(arrival.missing().len(), 5 - records, "cut at {length}");
        drop(arrival);
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&journal, &damaged).unwrap();
        let arrival = model.open(dir.path());
        let boot = (48..64).contains(&at);
        let records = if boot { 5 } else { at.saturating_sub(64) / 16 };
        assert_eq!(arrival.missing().len(), 5 - records, "damaged at {at}");
        drop(arrival);
    }
    fs::write(&journal, [&whole[..], &[7; 1000]].concat()).unwrap();
    let arrival = model.open(dir.path());
    assert!(arrival.is_complete());
    model.assert_at(&arrival.finish(false, None).unwrap());
}

#[test]
fn after_a_restart_of_the_machine_what_is_on_disk_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let arrival = model.open(dir.path());
    model.send(&arrival);
    let weights = arrival.folder.file(2);
    drop(arrival);
    // What a loss of power leaves: the journal was written, a piece was not.
    let mut lost = model.files[2].clone();
    lost[PIECE as usize..PIECE as usize + 4096].fill(0);
    fs::write(&weights, lost).unwrap();
    let arrival = model.reopen_after_boot(dir.path());
    assert_eq!(arrival.missing(), [PieceId { file: 2, piece: 1 }]);
    drop(arrival);
    let arrival = model.reopen_after_boot(dir.path());
    assert_eq!(arrival.missing().len(), 1, "the journal was corrected");
    model.send(&arrival);
    model.assert_at(&arrival.finish(false, None).unwrap());
}

#[test]
fn the_journal_of_a_missing_file_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    for spoil in [|path: &Path| fs::remove_file(path), |path: &Path| fs::write(path, "short")] {
        let arrival = model.open(dir.path());
        model.send(&arrival);
        let weights = arrival.folder.file(2);
        drop(arrival);
        spoil(&weights).unwrap();
        let arrival = model.open(dir.path());
        assert_eq!(arrival.missing().len(), 4);
    }
}

#[test]
fn wrong_trees_and_pieces_are_refused_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let arrival = model.open(dir.path());
    let piece = PieceId { file: 2, piece: 1 };
    let good = model.piece(piece);
    assert!(matches!(arrival.write(piece, good), Err(ArrivalError::NoTree { .. })));
    let mut tree = model.tree(2);
    tree[40] ^= 1;
    assert!(matches!(arrival.set_tree(2, &tree), Err(ArrivalError::Tree { .. })));
    assert!(matches!(arrival.set_tree(2, &[0; 31]), Err(ArrivalError::Tree { .. })));
    for outside in [3, u32::MAX] {
        assert!(matches!(arrival.set_tree(outside, &tree), Err(ArrivalError::Outside { .. })));
    }
    model.send_trees(&arrival);
    let mut wrong = good.to_vec();
    wrong[17] ^= 1;
    let cut = &good[..good.len() - 1];
    for bad in [&wrong[..], cut, &[], &[good, b"x"].concat()] {
        assert!(matches!(arrival.write(piece, bad), Err(ArrivalError::Corrupt { .. })));
    }
    let outside = [(2, 4), (2, u32::MAX), (1, 0), (3, 0), (u32::MAX, u32::MAX)];
    for (file, piece) in outside {
        let error = arrival.write(PieceId { file, piece }, good).unwrap_err();
        assert!(matches!(error, ArrivalError::Outside { .. }), "{file}, {piece}");
    }
    assert_eq!(arrival.arrived(), 0);
    assert!(matches!(arrival.finish(false, None), Err(ArrivalError::Incomplete { .. })));
    assert!(!dir.path().join("org").exists());
}

#[test]
fn pieces_can_come_from_several_threads() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let arrival = model.open(dir.path());
    model.send_trees(&arrival);
    let missing = arrival.missing();
    let new = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for piece in &missing {
                    let first = arrival.write(*piece, model.piece(*piece)).unwrap();
                    new.fetch_add(usize::from(first), std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(new.into_inner(), missing.len(), "each was new once");
    model.assert_at(&arrival.finish(false, None).unwrap());
}

#[test]
fn room_is_asked_for_first_and_only_for_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let total = model.manifest.total();
    let looks = Cell::new(0);
    let free = |room: u64| {
        let looks = &looks;
        move |_: &Path| {
            looks.set(looks.get() + 1);
            Ok(room)
        }
    };
    let error = Arrival::open(dir.path(), &model.manifest, &free(total + SPARE - 1)).unwrap_err();
    let ArrivalError::NoSpace { needed, free: there, .. } = &error else { panic!("{error}") };
    assert_eq!((*needed, *there), (total + SPARE, total + SPARE - 1));
    assert!(error.to_string().contains("bytes are needed in"), "{error}");
    assert!(is_tidy(dir.path()) && looks.get() == 1);
    let arrival = Arrival::open(dir.path(), &model.manifest, &free(total + SPARE)).unwrap();
    model.send_trees(&arrival);
    let weights: Vec<_> = arrival.missing().into_iter().filter(|piece| piece.file == 2).collect();
    weights.iter().for_each(|piece| _ = arrival.write(*piece, model.piece(*piece)).unwrap());
    drop(arrival);
    let error = Arrival::open(dir.path(), &model.manifest, &free(SPARE)).unwrap_err();
    assert!(matches!(error, ArrivalError::NoSpace { needed, .. } if needed == SPARE + 20));
    assert!(!is_tidy(dir.path()), "what has arrived stays");
    Arrival::open(dir.path(), &model.manifest, &free(SPARE + 20)).unwrap();
    let fails = |_: &Path| Err(io::Error::other("no such disk"));
    assert!(Arrival::open(dir.path(), &model.manifest, &fails).is_err());
}

#[test]
fn a_disk_that_is_full_is_told_apart_from_one_that_fails() {
    let failure = |kind: io::ErrorKind| ArrivalError::disk(Path::new("/models"))(kind.into());
    let full = failure(io::ErrorKind::StorageFull);
    assert_eq!(full.to_string(), "the disk of /models is full");
    assert!(matches!(failure(io::ErrorKind::QuotaExceeded), ArrivalError::Full { .. }));
    assert!(matches!(failure(io::ErrorKind::PermissionDenied), ArrivalError::Disk { .. }));
}

#[test]
fn one_transfer_at_a_time_is_at_an_arrival() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let arrival = model.open(dir.path());
    let second = Arrival::open(dir.path(), &model.manifest, &plenty).unwrap_err();
    assert_eq!(second.to_string(), "org/name is arriving already");
    drop(arrival);
    model.open(dir.path()).abandon().unwrap();
    assert!(is_tidy(dir.path()));
}

#[test]
fn an_installed_model_is_kept_unless_replacing_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (Model::new("org/name", 1), Model::new("org/name", 2));
    let place = first.arrive(dir.path());
    first.arrive(dir.path());
    first.assert_at(&place);
    assert!(is_tidy(dir.path()), "the same content again is fine");

    let arrival = second.open(dir.path());
    second.send(&arrival);
    let error = arrival.finish(false, None).unwrap_err();
    assert!(matches!(error, ArrivalError::Exists { .. }));
    assert!(error.to_string().contains("org/name is there already with other content"));
    first.assert_at(&place);
    let arrival = second.open(dir.path());
    assert!(arrival.is_complete(), "nothing was lost");
    arrival.finish(true, None).unwrap();
    second.assert_at(&place);
    assert!(is_tidy(dir.path()));
}

#[test]
fn a_model_that_lost_a_file_is_mended() {
    let dir = tempfile::tempdir().unwrap();
    let model = Model::new("org/name", 1);
    let place = model.arrive(dir.path());
    fs::remove_file(place.join("weights")).unwrap();
    assert_eq!(installed(dir.path(), &id("org/name")), None);
    model.arrive(dir.path());
    model.assert_at(&place);
}

#[test]
fn a_directory_that_is_not_our_model_is_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let out = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("org/name")).unwrap();
    fs::write(dir.path().join("org/name/mine"), "mine").unwrap();
    fs::write(dir.path().join("file"), "mine").unwrap();
    std::os::unix::fs::symlink(out.path(), dir.path().join("link")).unwrap();
    Model::new("model", 1).arrive(dir.path());
    for place in ["org/name", "org", "file", "link", "link/name", "model/below"] {
        let model = Model::new(place, 3);
        let arrival = model.open(dir.path());
        model.send(&arrival);
        let error = arrival.finish(true, None).unwrap_err();
        assert!(matches!(error, ArrivalError::InTheWay { .. }), "{place}: {error}");
    }
    assert_eq!(fs::read(dir.path().join("org/name/mine")).unwrap(), b"mine");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn an_installation_that_was_interrupted_is_undone_and_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (Model::new("org/name", 1), Model::new("org/name", 2));
    let place = old.arrive(dir.path());
    let arrival = new.open(dir.path());
    new.send(&arrival);
    let staged = arrival.folder.path("model");
    // Killed while files got their names, and the old model was out of its place.
    fs::create_dir_all(&staged).unwrap();
    fs::rename(arrival.folder.file(0), staged.join("config.json")).unwrap();
    fs::rename(&place, arrival.folder.path("old")).unwrap();
    drop(arrival);
    let arrival = new.open(dir.path());
    old.assert_at(&place);
    assert!(arrival.is_complete());
    // Killed after the new model was in its place, but before the arrival was removed: the files of the old
    // one, of the same lengths, must not be taken for the new ones'.
    for file in 0..3 {
        fs::remove_file(arrival.folder.file(file)).unwrap();
    }
    fs::rename(&place, arrival.folder.path("model")).unwrap();
    drop(arrival);
    let arrival = new.open(dir.path());
    assert_eq!(arrival.arrived(), 0);
    new.send(&arrival);
    new.assert_at(&arrival.finish(true, None).unwrap());
}

#[test]
fn unfinished_arrivals_are_told_but_not_what_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    assert!(unfinished(dir.path()).is_empty());
    let model = Model::new("org/name", 1);
    drop(model.open(dir.path()));
    let damaged = dir.path().join(ARRIVING).join("00");
    fs::create_dir(&damaged).unwrap();
    fs::write(damaged.join("manifest.json"), "{").unwrap();
    assert_eq!(unfinished(dir.path()), [model.manifest]);
}

mod stock {
    use super::*;

    fn open(store: &Path, total: u64) -> StockArrival {
        StockArrival::open(store, "ABC", &id("org/name"), total, &plenty).unwrap()
    }

    fn stock_error(result: Result<bool, ArrivalError>) -> StockError {
        match result {
            Err(ArrivalError::Stock(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_model_arrives_in_chunks_and_is_recorded_with_its_hashes() {
        let dir = tempfile::tempdir().unwrap();
        let weights = bytes(2 * PIECE + 9, 4);
        let mut arrival = open(dir.path(), weights.len() as u64 + 2);
        for (i, chunk) in weights.chunks(PIECE as usize).enumerate() {
            let at = i as u64 * PIECE;
            assert!(arrival.write(&name("weights"), at, chunk, false).unwrap());
        }
        assert!(!arrival.is_complete());
        assert!(arrival.write(&name("a/config.json"), 0, b"{}", true).unwrap());
        assert!(arrival.is_complete() && arrival.arrived() == arrival.total());
        let cache = TreeCache::open(dir.path()).unwrap();
        let (path, manifest) = arrival.finish(false, Some(&cache)).unwrap();
        assert!(fs::read(path.join("weights")).unwrap() == weights);
        assert_eq!(fs::read(path.join("a/config.json")).unwrap(), b"{}");
        assert_eq!(manifest.files()[1].root, *blake3::hash(&weights).as_bytes());
        assert_eq!(installed(dir.path(), &id("org/name")), Some(manifest));
        assert!(is_tidy(dir.path()));
    }

    #[test]
    fn chunks_go_on_where_the_file_ends() {
        let dir = tempfile::tempdir().unwrap();
        let mut arrival = open(dir.path(), 100);
        let file = name("weights");
        assert!(arrival.write(&file, 0, b"0123", false).unwrap());
        let gap = stock_error(arrival.write(&file, 5, b"x", false));
        assert_eq!(gap.to_string(), "a chunk of weights begins at 5, but 4 bytes of it are there");
        let first = stock_error(arrival.write(&name("b"), u64::MAX, b"x", false));
        assert_eq!(first, StockError::Offset { file: name("b"), offset: u64::MAX, expected: 0 });
        for (at, overlap) in [(2, "2345"), (0, "01234")] {
            let error = stock_error(arrival.write(&file, at, overlap.as_bytes(), false));
            assert!(matches!(error, StockError::Offset { .. }), "{error}");
        }
        assert!(!arrival.write(&file, 1, b"12", false).unwrap(), "a repetition is passed over");
        let other = stock_error(arrival.write(&file, 0, b"x", false));
        assert_eq!(other, StockError::Overwrites { file: file.clone(), offset: 0 });
        assert!(arrival.write(&name("b"), 0, b"b", false).unwrap());
        assert!(arrival.write(&file, 4, b"4", true).unwrap(), "files may take turns");
        let closed = stock_error(arrival.write(&file, 5, b"5", false));
        assert_eq!(closed, StockError::Closed { file });
        assert_eq!(arrival.arrived(), 6);
    }

    #[test]
    fn more_than_was_announced_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut arrival = open(dir.path(), 10);
        arrival.write(&name("a"), 0, b"12345678", false).unwrap();
        let more = stock_error(arrival.write(&name("b"), 0, b"123", false));
        assert_eq!(more, StockError::TooMuch { total: 10 });
        for total in [0, MAX_TOTAL + 1, u64::MAX] {
            let error = StockArrival::open(dir.path(), "x", &id("a"), total, &plenty).unwrap_err();
            assert!(matches!(error, ArrivalError::Manifest(_)));
        }
        let full = |_: &Path| Ok(SPARE + 9);
        let error = StockArrival::open(dir.path(), "x", &id("a"), 10, &full).unwrap_err();
        assert!(matches!(error, ArrivalError::NoSpace { .. }));
    }

    #[test]
    fn files_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut arrival = open(dir.path(), 10);
        for i in 0..MAX_FILES {
            arrival.write(&name(&i.to_string()), 0, b"", true).unwrap();
        }
        let error = arrival.write(&name("more"), 0, b"", true).unwrap_err();
        assert!(matches!(error, ArrivalError::Manifest(ManifestError::TooManyFiles)));
    }

    #[test]
    fn a_little_may_be_missing_if_the_sender_said_that_it_is_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let content = bytes(640, 1);
        for (missing, last, complete) in
            [(0, false, true), (9, true, true), (9, false, false), (11, true, false)]
        {
            let mut arrival = open(dir.path(), 640 + missing);
            arrival.write(&name("a"), 0, &content, last).unwrap();
            assert_eq!(arrival.is_complete(), complete, "{missing}, {last}");
            let finished = arrival.finish(true, None);
            assert_eq!(finished.is_ok(), complete);
            assert!(is_tidy(dir.path()));
        }
        let (chunk, mut arrival) = (vec![0; PIECE as usize], open(dir.path(), 70 * PIECE));
        for at in 0..69 {
            arrival.write(&name("a"), at * PIECE, &chunk, false).unwrap();
        }
        arrival.write(&name("b"), 0, b"", true).unwrap();
        assert!(!arrival.is_complete(), "a whole chunk is too much");
        arrival.write(&name("c"), 0, b"c", true).unwrap();
        assert!(arrival.is_complete());
    }

    #[test]
    fn names_that_do_not_go_together_are_refused() {
        for names in [["a", "A"], ["a", "a/b"]] {
            let dir = tempfile::tempdir().unwrap();
            let mut arrival = open(dir.path(), 2);
            names.iter().for_each(|n| _ = arrival.write(&name(n), 0, b"x", false).unwrap());
            let error = arrival.finish(false, None).unwrap_err();
            assert!(matches!(error, ArrivalError::Manifest(_)), "{error}");
            assert!(is_tidy(dir.path()) && !dir.path().join("org/name").exists());
        }
    }

    #[test]
    fn a_transfer_begins_anew_and_what_is_left_of_others_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let mut arrival = open(dir.path(), 10);
        arrival.write(&name("a"), 0, b"12345", false).unwrap();
        let busy = StockArrival::open(dir.path(), "abc", &id("org/name"), 10, &plenty);
        assert!(matches!(busy, Err(ArrivalError::Busy { .. })), "ids are the same in any case");
        clear_stock(dir.path());
        arrival.write(&name("a"), 5, b"6", false).unwrap();
        drop(arrival);
        let mut arrival = open(dir.path(), 10);
        assert!(arrival.write(&name("a"), 0, b"other", false).unwrap());
        drop(arrival);
        assert!(!is_tidy(dir.path()));
        drop(Model::new("org/other", 1).open(dir.path()));
        clear_stock(dir.path());
        assert_eq!(unfinished(dir.path()).len(), 1, "others are left alone");
        let names = fs::read_dir(dir.path().join(ARRIVING)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names.into_iter().all(|name| !name.starts_with("stock-")));
    }

    #[test]
    fn another_model_of_the_name_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let model = Model::new("org/name", 1);
        let place = model.arrive(dir.path());
        let mut arrival = open(dir.path(), 1);
        arrival.write(&name("weights"), 0, b"x", true).unwrap();
        assert!(matches!(arrival.finish(false, None), Err(ArrivalError::Exists { .. })));
        model.assert_at(&place);
    }
}
