//! The plain form, in which stock peers send a model: chunks of files in any names, with only the total
//! known beforehand, without a hash and without a way to go on after an interruption.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
};

use super::{
    Free,
    error::{ArrivalError, StockError},
    install,
    place::{ArrivalFolder, STOCK},
};
use crate::{
    cache::TreeCache,
    durable,
    manifest::{MAX_FILES, MAX_TOTAL, Manifest, ManifestError, ManifestFile},
    name::{FileName, ModelId},
    system::FileExt,
    tree::{PIECE, Tree, TreeBuilder},
};

/// How many bytes may be missing at the end. A stock peer counts its hidden files into the total and does
/// not send them; they are notes of some kilobytes. Nor may more than a 64th of the total be missing, and only
/// a transfer whose last chunk was called the last may make use of it.
pub const TOLERANCE: u64 = PIECE - 1;

/// A model that comes in the plain form.
#[derive(Debug)]
pub struct StockArrival {
    folder: ArrivalFolder,
    store: PathBuf,
    id: ModelId,
    total: u64,
    arrived: u64,
    files: HashMap<FileName, Arriving>,
    /// The file that the last chunk was for, held open: its number and itself.
    open: Option<(u32, File)>,
    /// Whether the chunk that came last was called the last of its file.
    ended: bool,
}

#[derive(Debug)]
struct Arriving {
    number: u32,
    tree: TreeBuilder,
    closed: bool,
}

impl StockArrival {
    /// Begins a transfer: `transfer` is the id that we gave it, `total` what the peer's answer to the query
    /// told, in bytes. What is left of an earlier one of this id is removed.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Manifest`] when the total is 0 or more than is ever taken,
    /// [`ArrivalError::NoSpace`], [`ArrivalError::Busy`], [`ArrivalError::Disk`] and [`ArrivalError::Full`].
    pub fn open(
        store: &Path,
        transfer: &str,
        id: &ModelId,
        total: u64,
        free: Free<'_>,
    ) -> Result<Self, ArrivalError> {
        match total {
            0 => return Err(ManifestError::Empty.into()),
            1..=MAX_TOTAL => {}
            _ => return Err(ManifestError::TooGreat { limit: MAX_TOTAL }.into()),
        }
        // Ids are the same in upper and in lower case, and may be no fit names of directories.
        let name = blake3::hash(transfer.to_ascii_lowercase().as_bytes()).to_hex();
        let folder = ArrivalFolder::take(store, &format!("{STOCK}{name}"), id)?;
        if let Err(error) = super::check_space(store, total, free) {
            folder.remove()?;
            return Err(error);
        }
        let arrival = Self {
            folder,
            store: store.to_owned(),
            id: id.clone(),
            total,
            arrived: 0,
            files: HashMap::new(),
            open: None,
            ended: false,
        };
        arrival.clear()?;
        Ok(arrival)
    }

    /// Takes a chunk. It must begin where its file ends; one that repeats what is there is passed over, and
    /// told by `false`. `last` is the sender's word that the file ends with it. Stock peers say so only of the
    /// last file.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Stock`] for a chunk that breaks a rule, [`ArrivalError::Manifest`] for too many files,
    /// [`ArrivalError::Disk`] and [`ArrivalError::Full`]. None of them can be mended: abandon it.
    pub fn write(
        &mut self,
        name: &FileName,
        offset: u64,
        bytes: &[u8],
        last: bool,
    ) -> Result<bool, ArrivalError> {
        let expected = self.files.get(name).map_or(0, |file| file.tree.size());
        let end = offset.checked_add(bytes.len() as u64);
        if offset < expected && end.is_some_and(|end| end <= expected) {
            return self.repeated(name, offset, bytes).map(|()| false);
        }
        if offset != expected {
            return Err(StockError::Offset { file: name.clone(), offset, expected }.into());
        }
        if bytes.len() as u64 > self.total - self.arrived {
            return Err(StockError::TooMuch { total: self.total }.into());
        }
        self.append(name, offset, bytes, last)?;
        Ok(true)
    }

    /// How many bytes have arrived.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// How many were announced.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether all has arrived, but for [`TOLERANCE`].
    pub fn is_complete(&self) -> bool {
        let missing = self.total - self.arrived;
        missing == 0 || (self.ended && missing <= TOLERANCE.min(self.total / 64))
    }

    /// Puts the whole model into its place, as [`super::Arrival::finish`] does; tells the place, and what
    /// the model is made of. Its hashes are those of what has arrived: nobody sent others.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Incomplete`], [`ArrivalError::Exists`], [`ArrivalError::InTheWay`],
    /// [`ArrivalError::Manifest`] when the names of the files do not go together, [`ArrivalError::Disk`] and
    /// [`ArrivalError::Full`]. What has arrived is gone then.
    pub fn finish(
        mut self,
        replace: bool,
        cache: Option<&TreeCache>,
    ) -> Result<(PathBuf, Manifest), ArrivalError> {
        if !self.is_complete() {
            let (arrived, total) = (self.arrived, self.total);
            self.abandon()?;
            return Err(ArrivalError::Incomplete { arrived, total });
        }
        // On Windows an open file keeps its directory from being moved and removed.
        self.open = None;
        let done = self.install(replace, cache);
        let removed = self.folder.remove();
        done.and_then(|done| removed.map(|()| done))
    }

    /// Removes all that has arrived.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::Disk`].
    pub fn abandon(self) -> Result<(), ArrivalError> {
        drop(self.open);
        self.folder.remove()
    }

    fn install(
        &mut self,
        replace: bool,
        cache: Option<&TreeCache>,
    ) -> Result<(PathBuf, Manifest), ArrivalError> {
        let (files, trees) = self.number_by_name()?;
        let manifest = Manifest::new(self.id.clone(), files)?;
        let path = install::install(&self.folder, &self.store, &manifest, replace)?;
        for (file, tree) in manifest.files().iter().zip(&trees) {
            cache.iter().for_each(|cache| cache.keep_for(&file.name.below(&path), tree));
        }
        Ok((path, manifest))
    }

    /// Gives the files the numbers that they have in a manifest.
    fn number_by_name(&mut self) -> Result<(Vec<ManifestFile>, Vec<Tree>), ArrivalError> {
        let mut files: Vec<_> = self.files.drain().collect();
        files.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (from, to) = (self.folder.path("files"), self.folder.path("named"));
        std::fs::create_dir_all(&to).map_err(ArrivalError::disk(&to))?;
        let (mut manifest, mut trees) = (Vec::new(), Vec::new());
        for (number, (name, file)) in files.into_iter().enumerate() {
            let to = to.join(number.to_string());
            std::fs::rename(self.folder.file(file.number), &to).map_err(ArrivalError::disk(&to))?;
            let tree = file.tree.finish();
            manifest.push(ManifestFile { name, size: tree.size(), root: tree.root() });
            trees.push(tree);
        }
        let swap = || durable::remove(&from).and_then(|()| std::fs::rename(&to, &from));
        swap().map_err(ArrivalError::disk(&from))?;
        Ok((manifest, trees))
    }

    fn repeated(&mut self, name: &FileName, at: u64, bytes: &[u8]) -> Result<(), ArrivalError> {
        let Some(number) = self.files.get(name).map(|file| file.number) else { return Ok(()) };
        let mut there = vec![0; bytes.len()];
        let path = self.folder.file(number);
        let file = self.file(number)?;
        file.read_exact_at(&mut there, at).map_err(ArrivalError::disk(&path))?;
        if there == bytes {
            return Ok(());
        }
        Err(StockError::Overwrites { file: name.clone(), offset: at }.into())
    }

    fn append(
        &mut self,
        name: &FileName,
        offset: u64,
        bytes: &[u8],
        last: bool,
    ) -> Result<(), ArrivalError> {
        let number = self.number(name)?;
        let path = self.folder.file(number);
        self.file(number)?.write_all_at(bytes, offset).map_err(ArrivalError::disk(&path))?;
        if let Some(file) = self.files.get_mut(name) {
            file.tree.update(bytes);
            file.closed = last;
        }
        self.arrived += bytes.len() as u64;
        self.ended = last;
        Ok(())
    }

    /// The number of a file, which may be a new one.
    fn number(&mut self, name: &FileName) -> Result<u32, ArrivalError> {
        if let Some(file) = self.files.get(name) {
            let closed = StockError::Closed { file: name.clone() };
            return if file.closed { Err(closed.into()) } else { Ok(file.number) };
        }
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        if self.files.len() >= MAX_FILES {
            return Err(ManifestError::TooManyFiles.into());
        }
        let file = Arriving { number, tree: TreeBuilder::default(), closed: false };
        self.files.insert(name.clone(), file);
        Ok(number)
    }

    fn file(&mut self, number: u32) -> Result<&File, ArrivalError> {
        let path = self.folder.file(number);
        let file = match self.open.take() {
            Some((open, file)) if open == number => file,
            _ => OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(ArrivalError::disk(&path))?,
        };
        Ok(&self.open.insert((number, file)).1)
    }

    fn clear(&self) -> Result<(), ArrivalError> {
        let path = self.folder.path("files");
        let clear = || durable::remove(&path).and_then(|()| std::fs::create_dir(&path));
        ["model", "old", "named"].into_iter().try_for_each(|name| {
            let path = self.folder.path(name);
            durable::remove(&path).map_err(ArrivalError::disk(&path))
        })?;
        clear().map_err(ArrivalError::disk(&path))
    }
}
