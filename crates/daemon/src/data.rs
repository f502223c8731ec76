//! The data directory, its lock and its tokens.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use access::new_token;
use anyhow::{Context, bail};
use base::{
    NoSecret, Secret,
    system::{Rights, Stranger, stranger},
};
use seal::Identity;

use crate::running;

/// The file that a running server locks.
pub(crate) const LOCK: &str = "lock";

/// How often the lock is tried, and the pause between two tries.
const TRIES: u32 = 5;
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// The locked data directory of a server. No other Warren uses it until this is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// Whether an earlier run has locked it; otherwise it is new.
    used: bool,
    _lock: File,
}

impl DataDir {
    /// Locks the directory. If there is none, makes one that only its owner can enter.
    ///
    /// # Errors
    /// When it cannot be made or written, or another Warren uses it.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        make(path).with_context(|| format!("the data directory {shown} cannot be made"))?;
        let lock = path.join(LOCK);
        let used = lock.exists();
        let lock = private().open(lock).with_context(|| {
            format!("the data directory {shown} cannot be written: {}", remedy())
        })?;
        if !taken(&lock)? {
            bail!(
                "another Warren uses the data directory {shown}: stop it with `warren stop`, or give \
                 this one another with --data-dir"
            );
        }
        // If another server's file is there, that server has died: otherwise it would hold the lock.
        running::forget(path);
        Ok(Self { path: path.to_owned(), used, _lock: lock })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The database file. If there is none, makes an empty one that only its owner can read; SQLite gives the
    /// files beside it the same mode. If a database has disappeared, that is logged.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn database(&self) -> anyhow::Result<PathBuf> {
        let path = self.path.join(DATABASE);
        let shown = path.display();
        if self.used && !path.exists() {
            tracing::warn!(
                "the database {shown} is gone: an empty one is made, without keys and usage; if it \
                 was moved by mistake, stop this server and move it back"
            );
        }
        private()
            .open(&path)
            .with_context(|| format!("the database {shown} cannot be written: {}", remedy()))?;
        Ok(path)
    }

    /// The token in a file of the directory. If there is none, makes one of `prefix` and 256 random bits that
    /// only the owner can read.
    ///
    /// # Errors
    /// When it cannot be read or made, or another user may write it.
    pub fn token(&self, name: &str, prefix: &str) -> anyhow::Result<Secret> {
        refuse_others(&self.path.join(name))?;
        match read_token(&self.path, name)? {
            Some(token) => Ok(token),
            None => self.make_token(name, prefix),
        }
    }

    fn make_token(&self, name: &str, prefix: &str) -> anyhow::Result<Secret> {
        let path = self.path.join(name);
        let token = new_token(prefix);
        let mut file = private()
            .truncate(true)
            .open(&path)
            .with_context(|| format!("{} cannot be made", path.display()))?;
        writeln!(file, "{}", token.expose())?;
        Ok(token)
    }
}

/// Takes the lock of a directory. One try is not enough: a command that looks whether the lock is taken holds it for a
/// moment.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing runs yet, and the lock tells nobody that it is free"
)]
fn taken(lock: &File) -> anyhow::Result<bool> {
    for _ in 0..TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(TRY_AGAIN),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Whether a server, or a command that works on a stopped one, has locked a data directory.
pub fn is_in_use(data_dir: &Path) -> bool {
    let Ok(lock) = File::open(data_dir.join(LOCK)) else { return false };
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Whether there is a database in a data directory.
pub fn has_database(data_dir: &Path) -> bool {
    data_dir.join(DATABASE).exists()
}

fn remedy() -> &'static str {
    "make it writable for the user that runs Warren, or give another directory with --data-dir"
}

/// Refuses the token of a file that another user owns or may write: that user could have chosen it.
fn refuse_others(path: &Path) -> anyhow::Result<()> {
    let Ok(file) = fs::metadata(path) else { return Ok(()) };
    let shown = path.display();
    let remedy = "remove the file, and the server makes another; or make it this user's alone, with `chown` \
                  and `chmod 600`";
    match stranger(&file) {
        Some(Stranger::Owns(owner)) => {
            bail!("{shown} belongs to user {owner}, who may know and change this token: {remedy}")
        }
        Some(Stranger::Writes(mode)) => bail!(
            "other users may write {shown} (mode {mode:o}), and so choose this token: {remedy}"
        ),
        None => Ok(()),
    }
}

/// Makes the directory unless it exists. An existing one keeps its mode, since it may be shared, like `/tmp`.
fn make(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    DirBuilder::new().private().create(path)
}

/// Options to open a file for writing. If it does not exist, it is made so that only its owner can read it.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).private();
    options
}

/// The token in a file of a data directory; `None` without such a file, and if it is empty.
///
/// # Errors
/// When the file is there and cannot be read, or has several lines.
pub fn read_token(data_dir: &Path, name: &str) -> anyhow::Result<Option<Secret>> {
    let path = data_dir.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => match Secret::from(text).usable() {
            Ok(token) => Ok(Some(token)),
            Err(NoSecret::Empty) => Ok(None),
            Err(why) => bail!("the token in {} {why}", path.display()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// The token in a file of a data directory that no other user may write; `None` without such a file, and if it is
/// empty.
///
/// # Errors
/// As [`read_token`]; and when another user could have chosen the token.
pub(crate) fn kept_token(data_dir: &Path, name: &str) -> anyhow::Result<Option<Secret>> {
    refuse_others(&data_dir.join(name))?;
    read_token(data_dir, name)
}

/// The identity of a data directory's node in the mesh. Makes the key, and the directory, if there is none.
/// It does not disturb a server that runs there.
///
/// # Errors
/// When the key cannot be read or made, or others can read it.
pub fn mesh_identity(data_dir: &Path) -> anyhow::Result<Identity> {
    let shown = data_dir.display();
    make(data_dir).with_context(|| format!("the data directory {shown} cannot be made"))?;
    Ok(Identity::load_or_create(&data_dir.join(MESH_KEY))?)
}

/// The file of the node's key in the mesh.
pub const MESH_KEY: &str = "mesh.key";
/// The directory of models that were fetched from peers.
pub const MODELS: &str = "models";
/// The file of the nodes that have answered a challenge of the mesh relay.
pub(crate) const MESH_PROOFS: &str = "mesh.proofs";
/// The file of the database.
pub(crate) const DATABASE: &str = "warren.db";
/// The file of the administrator's token.
pub const ADMIN_TOKEN: &str = "admin.token";
/// The file of the workers' secret.
pub const WORKER_SECRET: &str = "worker.secret";
/// The file of the server's id.
pub(crate) const SERVER_ID: &str = "server.id";
/// The file of the consumers' key that `warren up` makes.
pub const CLIENT_TOKEN: &str = "client.token";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn tokens_are_made_once_and_for_the_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDir::open(directory.path()).unwrap();
        let token = data.token(ADMIN_TOKEN, "wa_").unwrap();
        assert_eq!(data.token(ADMIN_TOKEN, "wa_").unwrap(), token);
        assert_eq!(mode(&directory.path().join(ADMIN_TOKEN)), 0o600);
    }

    #[test]
    fn a_token_that_a_person_wrote_is_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            fs::write(directory.path().join(ADMIN_TOKEN), text).unwrap();
            read_token(directory.path(), ADMIN_TOKEN)
        };
        assert_eq!(read(" tok\r\n").unwrap().unwrap().expose(), "tok");
        assert_eq!(read("\n").unwrap(), None);
        let error = read("a\nb\n").unwrap_err().to_string();
        assert!(error.contains("admin.token has a line break"), "{error}");
    }

    #[test]
    fn a_token_that_others_may_write_or_own_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDir::open(directory.path()).unwrap();
        let path = directory.path().join(ADMIN_TOKEN);
        let token = data.token(ADMIN_TOKEN, "wa_").unwrap();
        for (mode, is_taken) in [(0o620, false), (0o602, false), (0o640, true), (0o600, true)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = data.token(ADMIN_TOKEN, "wa_");
            assert_eq!(read.is_ok(), is_taken, "{mode:o}");
            if let Err(error) = read {
                assert!(error.to_string().contains("admin.token"), "{error}");
            }
        }
        assert_eq!(data.token(ADMIN_TOKEN, "wa_").unwrap(), token);
        // Only root may give a file away.
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            let error = data.token(ADMIN_TOKEN, "wa_").unwrap_err().to_string();
            assert!(error.contains("belongs to user 65534"), "{error}");
        }
    }

    #[test]
    fn a_directory_that_is_there_keeps_its_mode_and_a_new_one_is_the_owners() {
        let shared = tempfile::tempdir().unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = DataDir::open(shared.path()).unwrap();
        assert_eq!(mode(shared.path()), 0o755);
        assert_eq!(mode(&data.database().unwrap()), 0o600);
        assert_eq!(mode(&shared.path().join("lock")), 0o600);
        let new = shared.path().join("a/b");
        DataDir::open(&new).unwrap();
        assert_eq!(mode(&new), 0o700);
    }

    #[test]
    fn a_node_has_its_key_whether_a_server_runs_there_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let made = mesh_identity(&path).unwrap().node_id();
        let _running = DataDir::open(&path).unwrap();
        assert_eq!(mesh_identity(&path).unwrap().node_id(), made);
        assert_eq!((mode(&path), mode(&path.join(MESH_KEY))), (0o700, 0o600));
    }

    #[test]
    fn a_directory_in_use_is_refused_until_it_is_free() {
        let directory = tempfile::tempdir().unwrap();
        let first = DataDir::open(directory.path()).unwrap();
        let error = DataDir::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains("another Warren"), "{error}");
        drop(first);
        DataDir::open(directory.path()).unwrap();
    }
}
