//! Models on their way.
//!
//! What arrives is kept in `.arriving/` of the store, in files called by number, until it is whole; then it
//! is renamed into its place at once. Each piece is checked against the file's hash tree before it is
//! written, and noted in a journal afterwards, so that an arrival goes on from any interruption.

mod download;
mod error;
mod install;
mod journal;
mod pieces;
mod place;
mod stock;
mod sum;

use std::{
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

pub use download::{Download, FileDownload, RemoteFile, has};
pub use error::{ArrivalError, StockError};
pub use install::{RECORD, installed};
pub use place::{ARRIVING, clear_stock, unfinished};
pub use stock::{StockArrival, TOLERANCE};
pub use sum::Sum;

use self::{journal::Journal, pieces::Pieces, place::ArrivalFolder};
use crate::{
    cache::{self, TreeCache},
    durable,
    manifest::Manifest,
    plan::PieceId,
    space::SPARE,
    system::FileExt,
    tree::{PIECE, Tree, pieces},
};

/// Tells how many bytes may still be written at a path: [`crate::space::free`], but for tests.
pub type Free<'a> = &'a dyn Fn(&Path) -> io::Result<u64>;

/// A model that is fetched piece by piece. Its methods can be called from several threads at once.
#[derive(Debug)]
pub struct Arrival {
    folder: ArrivalFolder,
    store: PathBuf,
    manifest: Manifest,
    /// By file; those of at most one piece are there from the start.
    trees: Vec<OnceLock<Arc<Tree>>>,
    state: Mutex<ArrivalState>,
}

/// The arrived pieces, in memory and on disk.
#[derive(Debug)]
struct ArrivalState {
    pieces: Pieces,
    journal: Journal,
}

impl Arrival {
    /// Begins the arrival of a model, or goes on with it. After a restart of the machine all pieces that
    /// were noted are read and checked again, as their bytes may not have reached the disk.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::NoSpace`] when what is missing does not fit, [`ArrivalError::Busy`] when this model is
    /// arriving already, [`ArrivalError::Disk`] and [`ArrivalError::Full`].
    pub fn open(store: &Path, manifest: &Manifest, free: Free<'_>) -> Result<Self, ArrivalError> {
        Self::open_in(store, manifest, free, journal::boot_id())
    }

    fn open_in(
        store: &Path,
        manifest: &Manifest,
        free: Free<'_>,
        boot: Option<[u8; 16]>,
    ) -> Result<Self, ArrivalError> {
        let folder = ArrivalFolder::take(store, &manifest.digest_hex(), manifest.id())?;
        let interrupted = install::put_back(&folder, store, manifest)?;
        folder.save_manifest(manifest)?;
        let trees = load_trees(&folder, manifest);
        let mut pieces = Pieces::none(manifest);
        let mut journal = Journal::open(&folder.journal(), manifest, boot, &mut pieces)?;
        if let Err(error) = check_space(store, manifest.total() - pieces.arrived(), free) {
            // On Windows an open file keeps its directory.
            drop(journal);
            return if pieces.arrived() > 0 { Err(error) } else { folder.remove().and(Err(error)) };
        }
        let before = pieces.arrived();
        folder.make_files(manifest, &mut pieces)?;
        let doubtful = interrupted || !journal.same_boot();
        if doubtful {
            check_again(&folder, manifest, &trees, &mut pieces);
        }
        if doubtful || pieces.arrived() != before {
            journal = Journal::write_anew(&folder.journal(), manifest, boot, &pieces)?;
        }
        let state = Mutex::new(ArrivalState { pieces, journal });
        Ok(Self { folder, store: store.to_owned(), manifest: manifest.clone(), trees, state })
    }

    /// The manifest of the arriving model.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The files whose hash tree must be asked for before their pieces can be written.
    pub fn files_without_tree(&self) -> Vec<u32> {
        let without = |(file, tree): (u32, &OnceLock<_>)| tree.get().is_none().then_some(file);
        (0..).zip(&self.trees).filter_map(without).collect()
    }

    /// Takes the hash tree of a file, as it travels: its chaining values, one after another.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Tree`] when it does not merge to the file's hash, [`ArrivalError::Outside`] when there
    /// is no such file, [`ArrivalError::Disk`] and [`ArrivalError::Full`].
    pub fn set_tree(&self, file: u32, values: &[u8]) -> Result<(), ArrivalError> {
        let (slot, of) = self.slot(file)?;
        let Some(tree) = Tree::from_bytes(of.size, values, of.root) else {
            return Err(ArrivalError::Tree { file: of.name.clone() });
        };
        let path = self.folder.tree(file);
        durable::write(&path, &cache::encode(&tree), false).map_err(ArrivalError::disk(&path))?;
        // One that is there is the same: both merge to the root.
        _ = slot.set(Arc::new(tree));
        Ok(())
    }

    /// The hash tree of a file, once it is there.
    pub fn tree(&self, file: u32) -> Option<Arc<Tree>> {
        self.trees.get(usize::try_from(file).ok()?)?.get().cloned()
    }

    /// The pieces that are missing, file by file.
    pub fn missing(&self) -> Vec<PieceId> {
        self.lock().pieces.missing()
    }

    /// Whether this piece is still missing.
    pub fn wants(&self, piece: PieceId) -> bool {
        self.lock().pieces.wants(piece)
    }

    /// Checks a piece and writes it. Tells whether it was missing: one that comes a second time is passed
    /// over.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Corrupt`] when these are not the piece's bytes, [`ArrivalError::NoTree`] before
    /// [`set_tree`](Self::set_tree), [`ArrivalError::Outside`] when the file has no such piece,
    /// [`ArrivalError::Disk`] and [`ArrivalError::Full`].
    pub fn write(&self, piece: PieceId, bytes: &[u8]) -> Result<bool, ArrivalError> {
        let (slot, of) = self.slot(piece.file)?;
        if u64::from(piece.piece) >= pieces(of.size) {
            return Err(ArrivalError::Outside { piece });
        }
        let tree = slot.get().ok_or_else(|| ArrivalError::NoTree { file: of.name.clone() })?;
        if !self.wants(piece) {
            return Ok(false);
        }
        if !tree.check(piece.piece.into(), bytes) {
            return Err(ArrivalError::Corrupt { file: of.name.clone(), piece: piece.piece });
        }
        self.write_checked(piece, bytes)?;
        self.lock().note(piece).map_err(ArrivalError::disk(&self.folder.journal()))
    }

    fn write_checked(&self, piece: PieceId, bytes: &[u8]) -> Result<(), ArrivalError> {
        let path = self.folder.file(piece.file);
        let write = || {
            let file = OpenOptions::new().write(true).open(&path)?;
            file.write_all_at(bytes, u64::from(piece.piece) * PIECE)
        };
        write().map_err(ArrivalError::disk(&path))
    }

    /// How many bytes have arrived.
    pub fn arrived(&self) -> u64 {
        self.lock().pieces.arrived()
    }

    /// Whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        self.lock().pieces.is_complete()
    }

    /// Puts the whole model into its place and forgets the arrival; tells the place. All of it is read and
    /// checked once more before, whatever was noted: the disk may have lost or changed what was written. The hash trees go into
    /// the cache, so that the model can be offered at once. A model that is there already with this very
    /// content is left as it is; one with another content is replaced only if `replace` says so.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Incomplete`], [`ArrivalError::Damaged`], [`ArrivalError::Exists`],
    /// [`ArrivalError::InTheWay`], [`ArrivalError::Disk`] and [`ArrivalError::Full`]. What has arrived stays then, for another
    /// [`open`](Self::open).
    pub fn finish(self, replace: bool, cache: Option<&TreeCache>) -> Result<PathBuf, ArrivalError> {
        if !self.is_complete() {
            let (arrived, total) = (self.arrived(), self.manifest.total());
            return Err(ArrivalError::Incomplete { arrived, total });
        }
        self.prove()?;
        let path = install::install(&self.folder, &self.store, &self.manifest, replace)?;
        if let Some(cache) = cache {
            let trees = self.manifest.files().iter().zip(&self.trees);
            let trees =
                trees.filter_map(|(file, tree)| Some((file.name.below(&path), tree.get()?)));
            trees.for_each(|(path, tree)| cache.keep_for(&path, tree));
        }
        self.abandon()?;
        Ok(path)
    }

    /// Reads all that has arrived and checks it. What is damaged is missing afterwards.
    fn prove(&self) -> Result<(), ArrivalError> {
        let mut state = self.lock();
        check_again(&self.folder, &self.manifest, &self.trees, &mut state.pieces);
        if state.pieces.is_complete() {
            return Ok(());
        }
        let path = self.folder.journal();
        state.journal =
            Journal::write_anew(&path, &self.manifest, journal::boot_id(), &state.pieces)?;
        let bytes = self.manifest.total() - state.pieces.arrived();
        Err(ArrivalError::Damaged { path: self.store.clone(), bytes })
    }

    /// Removes all that has arrived.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Disk`].
    pub fn abandon(self) -> Result<(), ArrivalError> {
        let Self { folder, state, .. } = self;
        // The journal: on Windows an open file keeps its directory.
        drop(state);
        folder.remove()
    }

    fn slot(
        &self,
        file: u32,
    ) -> Result<(&OnceLock<Arc<Tree>>, &crate::manifest::ManifestFile), ArrivalError> {
        let outside = ArrivalError::Outside { piece: PieceId { file, piece: 0 } };
        let Ok(at) = usize::try_from(file) else { return Err(outside) };
        self.trees.get(at).zip(self.manifest.files().get(at)).ok_or(outside)
    }

    fn lock(&self) -> MutexGuard<'_, ArrivalState> {
        // Nothing panics while it is held, and each step leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ArrivalState {
    fn note(&mut self, piece: PieceId) -> io::Result<bool> {
        if !self.pieces.wants(piece) {
            return Ok(false);
        }
        self.journal.append(piece)?;
        self.pieces.set(piece);
        Ok(true)
    }
}

/// The trees that were saved, and those that follow from the manifest. One that is damaged is asked for
/// again.
fn load_trees(folder: &ArrivalFolder, manifest: &Manifest) -> Vec<OnceLock<Arc<Tree>>> {
    let load = |(number, file): (u32, &crate::ManifestFile)| {
        let saved = || cache::decode(&std::fs::read(folder.tree(number)).ok()?);
        let tree = Tree::of_one_piece(file.size, file.root).or_else(saved);
        let tree = tree.filter(|tree| (tree.size(), tree.root()) == (file.size, file.root));
        tree.map_or_else(OnceLock::new, |tree| OnceLock::from(Arc::new(tree)))
    };
    (0..).zip(manifest.files()).map(load).collect()
}

fn check_space(store: &Path, missing: u64, free: Free<'_>) -> Result<(), ArrivalError> {
    let needed = missing.saturating_add(SPARE);
    let free = free(store).map_err(ArrivalError::disk(store))?;
    if missing > 0 && free < needed {
        return Err(ArrivalError::NoSpace { path: store.to_owned(), needed, free });
    }
    Ok(())
}

/// Drops the pieces whose bytes on disk are not what they should be.
fn check_again(
    folder: &ArrivalFolder,
    manifest: &Manifest,
    trees: &[OnceLock<Arc<Tree>>],
    arrived: &mut Pieces,
) {
    for ((number, file), tree) in (0..).zip(manifest.files()).zip(trees) {
        let all = 0..u32::try_from(pieces(file.size)).unwrap_or(u32::MAX);
        let there = all.map(|piece| PieceId { file: number, piece });
        let there: Vec<_> = there.filter(|piece| !arrived.wants(*piece)).collect();
        let wrong = |piece: &PieceId| !tree.get().is_some_and(|tree| holds(folder, tree, *piece));
        there.into_iter().filter(wrong).for_each(|piece| arrived.clear(piece));
    }
}

fn holds(folder: &ArrivalFolder, tree: &Tree, piece: PieceId) -> bool {
    let number = u64::from(piece.piece);
    // At most a piece: it fits.
    let mut bytes = vec![0; crate::tree::piece_len(tree.size(), number) as usize];
    let file = std::fs::File::open(folder.file(piece.file));
    let read = file.and_then(|file| file.read_exact_at(&mut bytes, number * PIECE));
    read.is_ok() && tree.check(number, &bytes)
}

#[cfg(test)]
mod tests;
