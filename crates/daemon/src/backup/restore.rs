//! Puts a backup back.

use std::{
    fs::{self, DirBuilder},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use base::system::Rights;
use jiff::Timestamp;

use super::{Contents, PartialDir, contents::DATABASES, read::read};
use crate::{
    data::{DataDir, LOCK, MODELS, private},
    system::{give_all, owner},
};

/// The beginning of the name of the directory into which the former data is moved. The time follows it.
const BEFORE: &str = "before-restore-";
/// The beginning of the names of directories with files that are being restored.
const UNFINISHED: &str = ".restoring-";
/// The directory for files that were outside of the data directory.
const OUTSIDE: &str = "restored";

/// A data directory that was restored.
#[derive(Debug)]
pub struct Restoration {
    /// The directory.
    pub data_dir: PathBuf,
    /// The content that was put into it.
    pub contents: Contents,
    /// The directory with the former data, if there was any.
    pub before: Option<PathBuf>,
    /// The directory with the files that were outside of the data directory, if there are any.
    pub outside: Option<PathBuf>,
}

/// Restores a backup into a data directory that no server uses. The whole backup is read and checked before anything
/// in the directory changes. With `force`, former data is moved aside; models stay. Blocks.
///
/// # Errors
/// When a server uses the directory, it has data and `force` is not set, the backup is damaged or newer than this
/// Warren, or files cannot be written. Then the directory is as before.
pub fn restore(archive: &Path, data_dir: &Path, force: bool) -> anyhow::Result<Restoration> {
    let data = DataDir::open(data_dir).context("only a stopped server's data can be restored")?;
    // If the directory is given as a link, the link stays: the files go to its target.
    let target = data_dir.canonicalize()?;
    let former = former(&target)?;
    remove_unfinished(&target)?;
    if !former.is_empty() && !force {
        bail!(
            "there is data in {}: restore into an empty directory, or have it moved aside with --force",
            data_dir.display()
        );
    }
    let staging = PartialDir::new(&target, "restoring")
        .with_context(|| format!("{} cannot be written", data_dir.display()))?;
    let contents = read(archive, |path, content| put(staging.path(), path, content))?;
    check_databases(staging.path())?;
    give_to_owner(&target, staging.path())?;
    let before = move_aside(&target, &former)?;
    if let Err(error) = move_all(staging.path(), &target) {
        if let Some(before) = &before {
            move_all(before, &target)?;
            let _ = fs::remove_dir(before);
        }
        return Err(error.context(format!("{} cannot be written", data_dir.display())));
    }
    drop(data);
    let outside = Some(target.join(OUTSIDE)).filter(|outside| outside.exists());
    Ok(Restoration { data_dir: data_dir.to_owned(), contents, before, outside })
}

/// The names of former data in a directory. Models do not count, nor does what an earlier restore has moved aside.
fn former(directory: &Path) -> io::Result<Vec<String>> {
    let stays = |name: &str| {
        matches!(name, LOCK | MODELS) || name.starts_with(BEFORE) || name.starts_with(UNFINISHED)
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !stays(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Removes the files of restores that were killed.
fn remove_unfinished(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Writes a file of the backup to its place below `staging`. The path was checked.
fn put(staging: &Path, path: &str, content: &mut dyn io::Read) -> anyhow::Result<()> {
    let place = match path.split_once('/') {
        Some(("outside", name)) => staging.join(OUTSIDE).join(name),
        Some((_, name)) => staging.join(name),
        None => bail!("it has no place"),
    };
    if let Some(parent) = place.parent() {
        DirBuilder::new().recursive(true).private().create(parent)?;
    }
    let mut file = private().create_new(true).open(&place)?;
    io::copy(content, &mut file)?;
    file.sync_all()?;
    Ok(())
}

/// Refuses databases that this Warren cannot use.
fn check_databases(staging: &Path) -> anyhow::Result<()> {
    for name in DATABASES {
        let path = staging.join(name);
        if path.exists() {
            store::sqlite::copy::check(&path)?;
        }
    }
    Ok(())
}

/// Gives the restored files to the user who owns the data directory: root restores for that user.
fn give_to_owner(target: &Path, staging: &Path) -> anyhow::Result<()> {
    let Some((uid, gid)) = owner(&fs::metadata(target)?) else { return Ok(()) };
    let gave = give_all(staging, uid, gid);
    gave.with_context(|| {
        format!("the files cannot be given to user {uid}, who owns {}", target.display())
    })
}

/// Moves the former data into a directory of its own. If that fails, the data is moved back.
fn move_aside(target: &Path, former: &[String]) -> anyhow::Result<Option<PathBuf>> {
    if former.is_empty() {
        return Ok(None);
    }
    let before = new_place(target).context("the former data cannot be moved aside")?;
    for name in former {
        if let Err(error) = fs::rename(target.join(name), before.join(name)) {
            move_all(&before, target)?;
            let _ = fs::remove_dir(&before);
            return Err(error).context(format!("{name} cannot be moved aside"));
        }
    }
    Ok(Some(before))
}

/// A new directory for former data, with the time in its name.
fn new_place(target: &Path) -> io::Result<PathBuf> {
    let now = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let names = (1..100).map(|number| match number {
        1 => format!("{BEFORE}{now}"),
        _ => format!("{BEFORE}{now}-{number}"),
    });
    for name in names {
        let place = target.join(name);
        match DirBuilder::new().private().create(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| place),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Moves everything in a directory into another one on the same disk. If that fails, all is moved back.
fn move_all(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut moved = Vec::new();
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        if let Err(error) = fs::rename(from.join(&name), to.join(&name)) {
            for name in moved {
                fs::rename(to.join(&name), from.join(&name))?;
            }
            return Err(error.into());
        }
        moved.push(name);
    }
    Ok(())
}
