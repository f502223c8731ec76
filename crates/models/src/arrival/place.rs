//! Where an arrival is kept: `.arriving/NAME/`, and `.arriving/NAME.lock`, which says that a process is at it.
//!
//! In it are `manifest.json`, `journal`, `files/NUMBER`, `trees/NUMBER`; and while the model is put into its
//! place `model/`, and `old/` if one is replaced.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read},
    path::{Path, PathBuf},
};

use base::system::file_id;

use super::{error::ArrivalError, pieces::Pieces};
use crate::{durable, manifest::Manifest, name::ModelId};

/// The directory of arrivals in the store of models.
pub const ARRIVING: &str = ".arriving";

/// The prefix of the folders of transfers in the plain form.
pub(super) const STOCK: &str = "stock-";
/// The prefix of the folders of models that come from a hub.
pub(super) const DOWNLOAD: &str = "download-";
/// The longest manifest that is read, in bytes.
pub(super) const MAX_MANIFEST: u64 = 32 << 20;
/// The most arrivals that are looked at.
const MAX_ARRIVALS: usize = 1_000;

/// The models whose arrival was interrupted and can go on. Those that are arriving are among them.
pub fn unfinished(store: &Path) -> Vec<Manifest> {
    let names = names(store).into_iter().filter(|name| !name.starts_with(STOCK));
    let read = |name: String| {
        let manifest = read_manifest(&store.join(ARRIVING).join(&name).join("manifest.json"))?;
        (manifest.digest_hex() == name).then_some(manifest)
    };
    names.filter_map(read).collect()
}

/// Removes what transfers in the plain form left behind that no process is at: they cannot go on.
pub fn clear_stock(store: &Path) {
    for name in names(store).iter().filter(|name| name.starts_with(STOCK)) {
        let removed = lock(&store.join(ARRIVING), name).map(|_lock| {
            durable::remove(&store.join(ARRIVING).join(name))?;
            durable::remove(&lock_path(&store.join(ARRIVING), name))
        });
        if let Ok(Err(error)) = removed {
            tracing::warn!(transfer = name, %error, "what is left of a transfer cannot be removed");
        }
    }
}

fn names(store: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(store.join(ARRIVING)) else { return Vec::new() };
    let directories = entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> =
        directories.filter_map(|e| e.file_name().into_string().ok()).take(MAX_ARRIVALS).collect();
    names.sort();
    names
}

pub(super) fn read_manifest(path: &Path) -> Option<Manifest> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_MANIFEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A place that this process is at.
#[derive(Debug)]
pub(super) struct ArrivalFolder {
    arriving: PathBuf,
    name: String,
    _lock: File,
}

impl ArrivalFolder {
    /// Takes the place of this name, and makes it if it is not there.
    pub(super) fn take(store: &Path, name: &str, model: &ModelId) -> Result<Self, ArrivalError> {
        let arriving = store.join(ARRIVING);
        fs::create_dir_all(&arriving).map_err(ArrivalError::disk(&arriving))?;
        let lock = match lock(&arriving, name) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(ArrivalError::Busy { model: model.clone() });
            }
            lock => lock.map_err(ArrivalError::disk(&arriving))?,
        };
        let folder = Self { arriving, name: name.to_owned(), _lock: lock };
        for below in ["files", "trees"] {
            let path = folder.path(below);
            fs::create_dir_all(&path).map_err(ArrivalError::disk(&path))?;
        }
        Ok(folder)
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.arriving.join(&self.name).join(below)
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path("journal")
    }

    pub(super) fn file(&self, number: u32) -> PathBuf {
        self.path("files").join(number.to_string())
    }

    pub(super) fn tree(&self, number: u32) -> PathBuf {
        self.path("trees").join(number.to_string())
    }

    /// By it the arrival is found again after a restart.
    pub(super) fn save_manifest(&self, manifest: &Manifest) -> Result<(), ArrivalError> {
        let path = self.path("manifest.json");
        if read_manifest(&path).as_ref() == Some(manifest) {
            return Ok(());
        }
        let save = || durable::write(&path, &serde_json::to_vec(manifest)?, true);
        save().map_err(ArrivalError::disk(&path))
    }

    /// Makes the files as long as they will be, without taking room. Of one that had to be made, or has
    /// another length, nothing has arrived, whatever the journal says.
    pub(super) fn make_files(
        &self,
        manifest: &Manifest,
        pieces: &mut Pieces,
    ) -> Result<(), ArrivalError> {
        for (number, file) in (0..).zip(manifest.files()) {
            let path = self.file(number);
            if fs::symlink_metadata(&path).is_ok_and(|m| m.is_file() && m.len() == file.size) {
                continue;
            }
            pieces.clear_file(number);
            let make = || {
                durable::remove(&path)?;
                OpenOptions::new().write(true).create_new(true).open(&path)?.set_len(file.size)
            };
            make().map_err(ArrivalError::disk(&path))?;
        }
        Ok(())
    }

    pub(super) fn remove(self) -> Result<(), ArrivalError> {
        for path in [self.arriving.join(&self.name), lock_path(&self.arriving, &self.name)] {
            durable::remove(&path).map_err(ArrivalError::disk(&path))?;
        }
        Ok(())
    }
}

fn lock_path(arriving: &Path, name: &str) -> PathBuf {
    arriving.join(format!("{name}.lock"))
}

/// Locks a place; [`io::ErrorKind::WouldBlock`] when another is at it.
fn lock(arriving: &Path, name: &str) -> io::Result<File> {
    let path = lock_path(arriving, name);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    // The previous holder may have removed the file meanwhile: then this lock guards nothing.
    let same = fs::metadata(&path).is_ok_and(|meta| Some(file_id(&meta)) == id(&file));
    if same { Ok(file) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

fn id(file: &File) -> Option<[u64; 2]> {
    Some(file_id(&file.metadata().ok()?))
}
