//! A whole model put into its place: `ORG/NAME/` in the store, with a record of what it is.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use super::{
    error::ArrivalError,
    place::{ArrivalFolder, read_manifest},
};
use crate::{
    durable,
    manifest::Manifest,
    name::ModelId,
    system::{swap, sync_directory},
};

/// The record in the directory of each model of our store: its manifest. Hidden, so it is not offered.
pub const RECORD: &str = ".warren.json";

/// The model of this name in the store, if all its files are there with their lengths.
pub fn installed(store: &Path, id: &ModelId) -> Option<Manifest> {
    let folder = id.below(store);
    let manifest = read_manifest(&folder.join(RECORD))?;
    let whole = |file: &crate::ManifestFile| {
        let meta = fs::symlink_metadata(file.name.below(&folder));
        meta.is_ok_and(|meta| meta.is_file() && meta.len() == file.size)
    };
    manifest.files().iter().all(whole).then_some(manifest)
}

/// Moves the files of an arrival into the model's place, whole or not at all; tells the place.
pub(super) fn install(
    folder: &ArrivalFolder,
    store: &Path,
    manifest: &Manifest,
    replace: bool,
) -> Result<PathBuf, ArrivalError> {
    let target = manifest.id().below(store);
    let there = look(store, &target, manifest, replace)?;
    if there == Existing::Same {
        return Ok(target);
    }
    let model = folder.path("model");
    stage(folder, &model, manifest).map_err(ArrivalError::disk(&model))?;
    let swap = || {
        match there {
            Existing::Other => exchange(&model, &target, &folder.path("old"))?,
            _ => fs::rename(&model, &target)?,
        }
        target.parent().map_or(Ok(()), sync_directory)
    };
    swap().map_err(ArrivalError::disk(&target))?;
    Ok(target)
}

/// Puts `new` in the place of `target`, at once where the file system can do that: what was there is then
/// at `new`, else at `old`.
fn exchange(new: &Path, target: &Path, old: &Path) -> io::Result<()> {
    if swap(new, target)? {
        return Ok(());
    }
    fs::rename(target, old)?;
    fs::rename(new, target)
}

/// Undoes an installation that was interrupted: the files go back to their numbers, and a model that was to
/// be replaced to its place. Tells whether there was one; what is there must be checked again then, as it
/// may be the files of a model that was replaced.
pub(super) fn put_back(
    folder: &ArrivalFolder,
    store: &Path,
    manifest: &Manifest,
) -> Result<bool, ArrivalError> {
    let (model, old) = (folder.path("model"), folder.path("old"));
    let interrupted = model.exists() || old.exists();
    let undo = || {
        for (number, file) in (0..).zip(manifest.files()) {
            let staged = file.name.below(&model);
            if staged.is_file() && !folder.file(number).exists() {
                fs::rename(staged, folder.file(number))?;
            }
        }
        let target = manifest.id().below(store);
        if old.exists() && !target.exists() {
            fs::rename(&old, target)?;
        }
        durable::remove(&model)?;
        durable::remove(&old)
    };
    undo().map_err(ArrivalError::disk(&model))?;
    Ok(interrupted)
}

/// The content of the model's folder.
#[derive(PartialEq, Eq)]
enum Existing {
    Nothing,
    /// This very model, whole.
    Same,
    /// A model that will be replaced.
    Other,
}

fn look(
    store: &Path,
    target: &Path,
    manifest: &Manifest,
    replace: bool,
) -> Result<Existing, ArrivalError> {
    make_parent(store, target)?;
    if fs::symlink_metadata(target).is_err() {
        return Ok(Existing::Nothing);
    }
    let same = |there: Manifest| there.same_content(manifest);
    if installed(store, manifest.id()).is_some_and(same) {
        return Ok(Existing::Same);
    }
    let recorded = target.join(RECORD).is_file() && !target.is_symlink();
    // One that lost a file is mended, not kept.
    let damaged = read_manifest(&target.join(RECORD)).is_some_and(same);
    match (recorded, replace || damaged) {
        (false, _) => Err(ArrivalError::InTheWay { path: target.to_owned() }),
        (true, false) => {
            Err(ArrivalError::Exists { model: manifest.id().clone(), path: target.to_owned() })
        }
        (true, true) => Ok(Existing::Other),
    }
}

/// Makes the directories above the model's; none of them may be a model, or a link out of the store.
fn make_parent(store: &Path, target: &Path) -> Result<(), ArrivalError> {
    let above = target.ancestors().skip(1).take_while(|path| *path != store);
    for path in above {
        if path.join(RECORD).exists() || path.is_symlink() {
            return Err(ArrivalError::InTheWay { path: path.to_owned() });
        }
    }
    let parent = target.parent().unwrap_or(store);
    fs::create_dir_all(parent).map_err(ArrivalError::disk(parent))
}

/// Gives the files their names below `model`, and writes all of it through to the disk.
fn stage(folder: &ArrivalFolder, model: &Path, manifest: &Manifest) -> io::Result<()> {
    fs::create_dir_all(model)?;
    let mut directories = BTreeSet::from([model.to_owned()]);
    for (number, file) in (0..).zip(manifest.files()) {
        let (from, to) = (folder.file(number), file.name.below(model));
        // Windows writes through only what is open for writing.
        OpenOptions::new().write(true).open(&from)?.sync_all()?;
        if let Some(parent) = to.parent().filter(|parent| !directories.contains(*parent)) {
            fs::create_dir_all(parent)?;
            directories.insert(parent.to_owned());
        }
        fs::rename(from, to)?;
    }
    durable::write(&model.join(RECORD), &serde_json::to_vec_pretty(manifest)?, true)?;
    directories.iter().try_for_each(|directory| sync_directory(directory))
}
