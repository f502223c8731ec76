//! A model that comes in whole files whose hashes are known: from a hub of models.
//!
//! Each file grows from its beginning. After an interruption it goes on where it ends; what is there is then
//! read again for the hash, so nothing has to be noted. The hash tree, by which peers fetch the model from here,
//! is made on the way.

use std::{
    fs::{File, OpenOptions},
    io::Read,
    path::{Path, PathBuf},
};

use ring::digest::Context;
use serde::{Deserialize, Serialize};

use super::{
    Free,
    error::ArrivalError,
    install::{self, RECORD},
    place::{ArrivalFolder, DOWNLOAD, MAX_MANIFEST},
    sum::Sum,
};
use crate::{
    cache::TreeCache,
    durable,
    manifest::{Manifest, ManifestError, ManifestFile},
    name::{FileName, ModelId},
    system::FileExt,
    tree::{PIECE, Tree, TreeBuilder},
};

/// The name of the file with the sums of fetched files, beside the record of a model: it saves fetching them again.
const SUMS: &str = ".sums.json";

/// A file that is to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteFile {
    /// Its name in the model.
    pub name: FileName,
    /// In bytes.
    pub size: u64,
    /// Its hash.
    pub sum: Sum,
}

/// A model on its way.
#[derive(Debug)]
pub struct Download {
    folder: ArrivalFolder,
    store: PathBuf,
    files: Vec<RemoteFile>,
    /// The manifest, but for its hashes, which are those of other hashes.
    wanted: Manifest,
    /// Of the files that are whole.
    trees: Vec<Option<Tree>>,
}

/// A file of it.
pub struct FileDownload {
    file: File,
    path: PathBuf,
    remote: RemoteFile,
    arrived: u64,
    hash: Context,
    tree: TreeBuilder,
}

/// Whether the store has exactly these files under this name: as they were fetched, or as their hashes prove.
/// Reads all of a model that came another way.
///
/// # Errors
///
/// [`ArrivalError::Exists`] when it has others.
pub fn has(store: &Path, id: &ModelId, files: &[RemoteFile]) -> Result<bool, ArrivalError> {
    let folder = id.below(store);
    if !folder.join(RECORD).is_file() {
        return Ok(false);
    }
    let Some(there) = install::installed(store, id) else { return Ok(false) };
    let same_names = there.files().len() == files.len()
        && there.files().iter().zip(files).all(|(a, b)| (&a.name, a.size) == (&b.name, b.size));
    let same = same_names
        && match sums(&folder) {
            Some(sums) => sums == files,
            None => files.iter().all(|file| file.sum.is_of(&file.name.below(&folder), file.size)),
        };
    if same { Ok(true) } else { Err(ArrivalError::Exists { model: id.clone(), path: folder }) }
}

impl Download {
    /// Begins with a model, or goes on with it.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Manifest`] when the names of the files do not go together or they are too great,
    /// [`ArrivalError::NoSpace`] when what is missing does not fit, [`ArrivalError::Busy`] when another process
    /// is at it, [`ArrivalError::Disk`] and [`ArrivalError::Full`].
    pub fn open(
        store: &Path,
        id: &ModelId,
        mut files: Vec<RemoteFile>,
        free: Free<'_>,
    ) -> Result<Self, ArrivalError> {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let wanted = wanted(id, &files)?;
        let name = format!("{DOWNLOAD}{}", wanted.digest_hex());
        let folder = ArrivalFolder::take(store, &name, id)?;
        install::put_back(&folder, store, &wanted)?;
        let trees = files.iter().map(|_| None).collect();
        let download = Self { folder, store: store.to_owned(), files, wanted, trees };
        let missing = download.wanted.total().saturating_sub(download.arrived());
        if let Err(error) = super::check_space(store, missing, free) {
            return match download.arrived() {
                0 => download.folder.remove().and(Err(error)),
                _ => Err(error),
            };
        }
        Ok(download)
    }

    /// The files that are to come, in the order of the names.
    pub fn files(&self) -> &[RemoteFile] {
        &self.files
    }

    /// How many bytes there will be.
    pub fn total(&self) -> u64 {
        self.wanted.total()
    }

    /// How many bytes are there. They were not checked yet.
    pub fn arrived(&self) -> u64 {
        let length = |(number, file): (u32, &RemoteFile)| {
            let meta = std::fs::metadata(self.folder.file(number));
            meta.map_or(0, |meta| meta.len().min(file.size))
        };
        (0..).zip(&self.files).map(length).sum()
    }

    /// Opens a file, and reads what is there of it already.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Disk`].
    pub fn begin(&self, number: u32) -> Result<FileDownload, ArrivalError> {
        let at = number as usize;
        let Some(remote) = self.files.get(at) else {
            let piece = crate::plan::PieceId { file: number, piece: 0 };
            return Err(ArrivalError::Outside { piece });
        };
        FileDownload::open(self.folder.file(number), remote.clone())
    }

    /// Notes that a file is whole: the tree is what [`FileDownload::finish`] gave.
    pub fn keep(&mut self, number: u32, tree: Tree) {
        if let Some(slot) = self.trees.get_mut(number as usize) {
            *slot = Some(tree);
        }
    }

    /// Puts the whole model into its place, as [`super::Arrival::finish`] does; tells the place, and what the
    /// model is made of.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Incomplete`], [`ArrivalError::Exists`], [`ArrivalError::InTheWay`],
    /// [`ArrivalError::Disk`] and [`ArrivalError::Full`]. What has arrived stays then.
    pub fn finish(
        self,
        replace: bool,
        cache: Option<&TreeCache>,
    ) -> Result<(PathBuf, Manifest), ArrivalError> {
        let trees: Option<Vec<Tree>> = self.trees.iter().cloned().collect();
        let Some(trees) = trees else {
            let (arrived, total) = (self.arrived(), self.total());
            return Err(ArrivalError::Incomplete { arrived, total });
        };
        let file = |(file, tree): (&RemoteFile, &Tree)| ManifestFile {
            name: file.name.clone(),
            size: tree.size(),
            root: tree.root(),
        };
        let files = self.files.iter().zip(&trees).map(file).collect();
        let manifest = Manifest::new(self.wanted.id().clone(), files)?;
        self.write_sums()?;
        let path = install::install(&self.folder, &self.store, &manifest, replace)?;
        for (file, tree) in self.files.iter().zip(&trees) {
            cache.iter().for_each(|cache| cache.keep_for(&file.name.below(&path), tree));
        }
        self.folder.remove()?;
        Ok((path, manifest))
    }

    /// Removes all that has arrived.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Disk`].
    pub fn abandon(self) -> Result<(), ArrivalError> {
        self.folder.remove()
    }

    fn write_sums(&self) -> Result<(), ArrivalError> {
        let model = self.folder.path("model");
        let path = model.join(SUMS);
        let write = || {
            std::fs::create_dir_all(&model)?;
            durable::write(&path, &serde_json::to_vec(&self.files)?, true)
        };
        write().map_err(ArrivalError::disk(&path))
    }
}

impl FileDownload {
    fn open(path: PathBuf, remote: RemoteFile) -> Result<Self, ArrivalError> {
        let open =
            || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = open().map_err(ArrivalError::disk(&path))?;
        let hash = remote.sum.context(remote.size);
        let mut begun = Self { file, path, remote, arrived: 0, hash, tree: TreeBuilder::default() };
        begun.read_again()?;
        Ok(begun)
    }

    /// How many bytes are there: where the next one goes.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Altered`] when there are more than the file has, [`ArrivalError::Disk`] and
    /// [`ArrivalError::Full`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ArrivalError> {
        if bytes.len() as u64 > self.remote.size - self.arrived {
            return Err(ArrivalError::Altered { file: self.remote.name.clone() });
        }
        let written = self.file.write_all_at(bytes, self.arrived);
        written.map_err(ArrivalError::disk(&self.path))?;
        self.take(bytes);
        Ok(())
    }

    /// Forgets what is there.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Disk`].
    pub fn restart(&mut self) -> Result<(), ArrivalError> {
        self.file.set_len(0).map_err(ArrivalError::disk(&self.path))?;
        self.arrived = 0;
        self.hash = self.remote.sum.context(self.remote.size);
        self.tree = TreeBuilder::default();
        Ok(())
    }

    /// The hash tree of the file, once all of it is there as it should be.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Incomplete`]; [`ArrivalError::Altered`] when its hash is another: all of it is forgotten
    /// then.
    pub fn finish(mut self) -> Result<Tree, ArrivalError> {
        let (arrived, total) = (self.arrived, self.remote.size);
        if arrived < total {
            return Err(ArrivalError::Incomplete { arrived, total });
        }
        if self.hash.clone().finish().as_ref() == self.remote.sum.bytes() {
            return Ok(self.tree.finish());
        }
        self.restart()?;
        Err(ArrivalError::Altered { file: self.remote.name })
    }

    fn read_again(&mut self) -> Result<(), ArrivalError> {
        let there = self.file.metadata().map_err(ArrivalError::disk(&self.path))?.len();
        if there > self.remote.size {
            return self.restart();
        }
        let mut piece = vec![0; there.min(PIECE) as usize];
        while self.arrived < there {
            let length = (there - self.arrived).min(PIECE) as usize;
            let read = self.file.read_exact_at(&mut piece[..length], self.arrived);
            read.map_err(ArrivalError::disk(&self.path))?;
            self.take(&piece[..length]);
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.tree.update(bytes);
        self.arrived += bytes.len() as u64;
    }
}

/// By its rules the names are checked, and by its digest the folder is called.
fn wanted(id: &ModelId, files: &[RemoteFile]) -> Result<Manifest, ManifestError> {
    let file = |file: &RemoteFile| ManifestFile {
        name: file.name.clone(),
        size: file.size,
        root: match file.size {
            0 => blake3::hash(b"").into(),
            _ => blake3::hash(file.sum.bytes()).into(),
        },
    };
    Manifest::new(id.clone(), files.iter().map(file).collect())
}

fn sums(model: &Path) -> Option<Vec<RemoteFile>> {
    let mut text = Vec::new();
    File::open(model.join(SUMS)).ok()?.take(MAX_MANIFEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests;
