//! What commands keep for this user between two runs: files in `$XDG_STATE_HOME/warren`, or below
//! `~/.local/state`, which only their owner can read.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
};

use anyhow::{Context, bail};
use daemon::options::home_directory;
use serde::{Serialize, de::DeserializeOwned};

/// The longest file, in bytes.
const LONGEST: usize = 32 << 20;

/// The path of such a file. Its directory exists afterwards.
///
/// # Errors
/// When there is no home directory, or the directory cannot be made.
pub(super) fn path(name: &str) -> anyhow::Result<PathBuf> {
    let directory = home_directory("XDG_STATE_HOME", ".local/state")
        .context("there is no home directory to keep it in: set XDG_STATE_HOME")?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.with_context(|| format!("{} cannot be made", directory.display()))?;
    Ok(directory.join(name))
}

/// What a file holds; `None` where there is none that can be read.
pub(super) fn read<T: DeserializeOwned>(name: &str) -> Option<T> {
    let file = File::open(path(name).ok()?).ok()?;
    let mut text = String::new();
    file.take(LONGEST as u64).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Replaces a file.
///
/// # Errors
/// When the value is longer than may be kept, or the file cannot be written.
pub(super) fn write(name: &str, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_vec(value)?;
    if text.len() >= LONGEST {
        bail!("it is longer than {} MiB", LONGEST >> 20);
    }
    let path = path(name)?;
    // Two processes that write at once do not write into each other's file.
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(0o600);
    let written = options.open(&temporary).and_then(|mut file| file.write_all(&text));
    let written = written.and_then(|()| fs::rename(&temporary, &path));
    written.with_context(|| format!("{} cannot be written", path.display()))
}

/// Removes a file. Whether there was one.
///
/// # Errors
/// When it cannot be removed.
pub(super) fn forget(name: &str) -> anyhow::Result<bool> {
    let path = path(name)?;
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("{} cannot be removed", path.display())),
    }
}
