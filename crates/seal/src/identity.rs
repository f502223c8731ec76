//! The key that a node keeps, and the id that follows from it.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

use base::{
    NodeId,
    system::{Rights, mode},
};
use curve25519_dalek::montgomery::MontgomeryPoint;
use ed25519_dalek::{Signer, SigningKey};
use rand::RngExt;
use thiserror::Error;
use zeroize::Zeroizing;

/// This node's identity: an Ed25519 key. It is never printed.
#[derive(Clone)]
pub struct Identity(SigningKey);

/// Why the identity could not be loaded or created.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The file cannot be read or made.
    #[error("the node's key {} cannot be {doing}: {source}", path.display())]
    Io {
        /// The key's file.
        path: PathBuf,
        /// The failed operation: "read" or "made".
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The file does not hold a key.
    #[error(
        "{} is not a node's key: it has {found}, not 32 bytes. Restore it from a backup, or move it \
         away to become a new node with a new id",
        path.display()
    )]
    NotAKey {
        /// The key's file.
        path: PathBuf,
        /// A description of its content.
        found: String,
    },
    /// Others can read the key, and be this node.
    #[error(
        "the node's key {} can be read by others (mode {mode:03o}): `chmod 600` it if nobody has, \
         or move it away to become a new node with a new id",
        path.display()
    )]
    Readable {
        /// The key's file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

impl Identity {
    /// Loads the identity from a file, 32 raw bytes that only the owner can read. If there is no
    /// file, creates a new identity and writes it there.
    ///
    /// # Errors
    /// When the file cannot be read or created, has another length, or is readable by others.
    pub fn load_or_create(path: &Path) -> Result<Self, IdentityError> {
        match File::open(path) {
            Ok(file) => load(path, file),
            Err(error) if error.kind() == ErrorKind::NotFound => create(path),
            Err(source) => Err(failed(path, "read", source)),
        }
    }

    /// The identity of these 32 bytes, which have to be random and secret.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&Zeroizing::new(seed)))
    }

    /// The node that has this identity.
    pub fn node_id(&self) -> NodeId {
        NodeId::new(self.0.verifying_key().to_bytes())
    }

    /// The Ed25519 signature over a message. [`crate::sign_hex`] writes it as the wire has it.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// The `wgPublicKey` that stock peers expect of this node: X25519 of the seed itself, which is
    /// not the key that handshakes between Warrens use.
    pub fn stock_wg_public(&self) -> [u8; 32] {
        MontgomeryPoint::mul_base_clamped(self.0.to_bytes()).to_bytes()
    }

    /// The X25519 private key whose public key follows from the node's id.
    pub(crate) fn static_private(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_scalar_bytes())
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.node_id())
    }
}

fn load(path: &Path, mut file: File) -> Result<Identity, IdentityError> {
    let io = |source| failed(path, "read", source);
    let about = file.metadata().map_err(io)?;
    let not_a_key = |found| IdentityError::NotAKey { path: path.to_owned(), found };
    if !about.is_file() {
        return Err(not_a_key("no file's content".to_owned()));
    }
    let mode = mode(&about);
    if mode & 0o077 != 0 {
        return Err(IdentityError::Readable { path: path.to_owned(), mode });
    }
    if about.len() != 32 {
        return Err(not_a_key(format!("{} bytes", about.len())));
    }
    let mut seed = Zeroizing::new([0; 32]);
    file.read_exact(seed.as_mut_slice()).map_err(io)?;
    Ok(Identity::from_seed(*seed))
}

/// Creates a new identity and writes it to the file before it is used. The file appears with its
/// content or not at all: otherwise a node that lost power in between would refuse to start.
fn create(path: &Path) -> Result<Identity, IdentityError> {
    let seed = Zeroizing::new(rand::rng().random::<[u8; 32]>());
    let draft = draft(path);
    let made = write(&draft, &*seed).and_then(|()| fs::hard_link(&draft, path));
    let made = made.or_else(|error| match error.kind() {
        ErrorKind::AlreadyExists => Err(error),
        // Not every file system has hard links.
        _ => write(path, &*seed),
    });
    // The draft may not exist; the earlier error is more useful.
    let _ = fs::remove_file(&draft);
    match made {
        Ok(()) => Ok(Identity::from_seed(*seed)),
        // Another process was faster: this node is who that one made.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            load(path, File::open(path).map_err(|source| failed(path, "read", source))?)
        }
        Err(source) => Err(failed(path, "made", source)),
    }
}

/// A name beside the file that no other process uses.
fn draft(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}", rand::rng().random::<u64>()));
    name.into()
}

fn write(path: &Path, seed: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).private().open(path)?;
    file.write_all(seed)?;
    file.sync_all()
}

fn failed(path: &Path, doing: &'static str, source: io::Error) -> IdentityError {
    IdentityError::Io { path: path.to_owned(), doing, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(content: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mesh.key");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (directory, path)
    }

    #[test]
    fn a_seed_makes_the_keys_that_stock_peers_make_of_it() {
        let identity = Identity::from_seed([0x11; 32]);
        let id = "d04ab232742bb4ab3a1368bd4615e4e6d0224ab71a016baf8520a332c9778737";
        let wg = "7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13";
        assert_eq!(identity.node_id().to_string(), id);
        assert_eq!(hex::encode(identity.stock_wg_public()), wg);
    }

    #[test]
    fn the_key_of_handshakes_follows_from_the_id() {
        let identity = Identity::from_seed([7; 32]);
        let public = MontgomeryPoint::mul_base_clamped(*identity.static_private()).to_bytes();
        assert_eq!(crate::curve::static_public(&identity.node_id()), Ok(public));
    }

    #[test]
    fn an_identity_is_made_once_and_kept_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mesh.key");
        let made = Identity::load_or_create(&path).unwrap();
        let about = fs::metadata(&path).unwrap();
        assert_eq!((about.len(), about.permissions().mode() & 0o777), (32, 0o600));
        let second = Identity::load_or_create(&path).unwrap();
        assert_eq!(second.node_id(), made.node_id());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let other = Identity::load_or_create(&directory.path().join("other.key")).unwrap();
        assert_ne!(other.node_id(), made.node_id());
    }

    #[test]
    fn processes_that_start_together_are_the_same_node() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mesh.key");
        let ids: Vec<_> = std::thread::scope(|scope| {
            let load = || Identity::load_or_create(&path).unwrap().node_id();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(load)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        for mode in [0o604, 0o640, 0o660, 0o602] {
            let (_directory, path) = file(&[7; 32], mode);
            let error = Identity::load_or_create(&path).unwrap_err();
            assert!(matches!(error, IdentityError::Readable { .. }), "{mode:o}: {error}");
            assert!(error.to_string().contains(&format!("{mode:03o}")), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_key_is_refused_and_kept() {
        for length in [0, 31, 33, 64] {
            let (_directory, path) = file(&vec![7; length], 0o600);
            let error = Identity::load_or_create(&path).unwrap_err();
            assert!(error.to_string().contains(&format!("{length} bytes")), "{error}");
            assert_eq!(fs::read(&path).unwrap().len(), length);
        }
        let directory = tempfile::tempdir().unwrap();
        let error = Identity::load_or_create(directory.path()).unwrap_err();
        assert!(matches!(error, IdentityError::NotAKey { .. }), "{error}");
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Identity::load_or_create(Path::new("/nowhere/mesh.key")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/mesh.key cannot be made"), "{error}");
    }

    #[test]
    fn an_identity_shows_its_id_and_not_its_seed() {
        let identity = Identity::from_seed([0x11; 32]);
        let shown = format!("{identity:?}");
        assert_eq!(shown, format!("Identity({})", identity.node_id()));
    }
}
