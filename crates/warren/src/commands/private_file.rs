//! The memory of this user's commands: files of JSON that only their owner can read, and that several processes may
//! change.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{ErrorKind, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use base::system::Rights;
use daemon::options::home_directory;
use serde::{Serialize, de::DeserializeOwned};

/// The longest file, in bytes.
const LONGEST: usize = 32 << 20;

/// The number of attempts to lock while another process holds the lock, and the pause between them.
const TRIES: (u32, Duration) = (100, Duration::from_millis(20));

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    /// A file of this user: `$XDG_STATE_HOME/warren/NAME`, or below `~/.local/state`. `content` says in the
    /// error what would be in the file.
    ///
    /// # Errors
    /// When there is no home directory.
    pub(crate) fn of_user(name: &str, content: &str) -> anyhow::Result<Self> {
        let directory = home_directory("XDG_STATE_HOME", ".local/state").with_context(|| {
            format!("there is no home directory to keep {content} in: set XDG_STATE_HOME")
        })?;
        Ok(Self::at(directory.join(name)))
    }

    pub(crate) const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes its directory if there is none, for code that writes the file by other means.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn make_directory(&self) -> anyhow::Result<()> {
        let directory = self.path.parent().context("it has no directory")?;
        let made = DirBuilder::new().recursive(true).private().create(directory);
        made.with_context(|| format!("{} cannot be made", directory.display()))
    }

    /// Its content; the default if there is no file.
    pub(crate) fn read<T: DeserializeOwned + Default>(&self) -> anyhow::Result<T> {
        let shown = self.path.display();
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(T::default()),
            Err(error) => return Err(error).with_context(|| format!("{shown} cannot be read")),
        };
        let mut text = String::new();
        let read = file.take(LONGEST as u64).read_to_string(&mut text);
        read.with_context(|| format!("{shown} cannot be read"))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{shown} is not as Warren wrote it: move it away"))
    }

    /// Changes the content under a lock, so that no other process changes it meanwhile. Returns what `change`
    /// returns.
    pub(crate) async fn update<T: DeserializeOwned + Default + Serialize, R>(
        &self,
        change: impl FnOnce(&mut T) -> R,
    ) -> anyhow::Result<R> {
        let cannot = || format!("{} cannot be written", self.path.display());
        let _lock = self.lock().await.with_context(cannot)?;
        let mut content = self.read()?;
        let changed = change(&mut content);
        self.replace(&content)?;
        Ok(changed)
    }

    /// Replaces the content, whatever it was.
    ///
    /// # Errors
    /// When the content is longer than 32 MiB, or cannot be written.
    pub(crate) fn replace(&self, content: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(content)?;
        if text.len() >= LONGEST {
            bail!("it is longer than {} MiB", LONGEST >> 20);
        }
        self.make_directory()?;
        // Two processes that write at once do not write into each other's file.
        let temporary = self.path.with_extension(format!("{}.new", std::process::id()));
        let written = private().truncate(true).open(&temporary);
        let written = written.and_then(|mut file| file.write_all(&text));
        let written = written.and_then(|()| fs::rename(&temporary, &self.path));
        written.with_context(|| format!("{} cannot be written", self.path.display()))
    }

    /// Removes the file. Returns whether there was one.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(crate) fn forget(&self) -> anyhow::Result<bool> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => {
                Err(error).with_context(|| format!("{} cannot be removed", self.path.display()))
            }
        }
    }

    /// Locks the file for writing. The lock is a file of its own, because the file itself is replaced.
    async fn lock(&self) -> anyhow::Result<File> {
        self.make_directory()?;
        let lock = private().truncate(false).open(self.path.with_extension("lock"))?;
        for _ in 0..TRIES.0 {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(TRIES.1).await,
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        bail!("another Warren has held it for too long")
    }
}

/// Opens a file for writing; a new one is readable by its owner only.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).private();
    options
}
