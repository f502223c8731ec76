//! Hash trees of offered files, kept on disk: hashing 100 GB takes a minute and more, reading its tree
//! some milliseconds.

use std::{
    fs, io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    durable,
    offer::{OfferedFile, Reader, Stamp},
    tree::{PIECE, Tree, Value, pieces},
};

/// The directory of the cache in the store of models.
pub const TREES: &str = ".trees";
/// The most trees that are kept; the oldest ones go first.
pub const MAX_TREES: usize = 20_000;

/// The start of an entry.
const MAGIC: &[u8; 16] = b"warren.tree.1\0\0\0";
/// Magic, size and root stand before the values, and a hash of all that after them.
const AROUND: u64 = 16 + 8 + 32 + 32;

/// Trees by what their files were when they were hashed: path, size, times and inode. Files of one piece
/// are not kept, as hashing them again is as fast.
#[derive(Debug, Clone)]
pub struct TreeCache {
    directory: PathBuf,
    most: usize,
}

impl TreeCache {
    /// The cache of a store of models.
    ///
    /// # Errors
    ///
    /// When its directory cannot be made.
    pub fn open(store: &Path) -> io::Result<Self> {
        let directory = store.join(TREES);
        fs::create_dir_all(&directory)?;
        let cache = Self { directory, most: MAX_TREES };
        cache.trim();
        Ok(cache)
    }

    /// The tree of a file as it is now: from the cache, or hashed. `on_progress` is called for each hashed piece
    /// with the bytes so far, and may break the hashing off.
    ///
    /// # Errors
    ///
    /// The error of reading; [`io::ErrorKind::Interrupted`] when it was broken off,
    /// [`io::ErrorKind::InvalidData`] when the file is changing.
    pub fn tree(
        &self,
        file: &OfferedFile,
        on_progress: impl FnMut(u64) -> ControlFlow<()>,
    ) -> io::Result<(Tree, Stamp)> {
        let reader = file.open()?;
        if let Some(tree) = self.load(&file.path, reader.stamp()) {
            return Ok((tree, reader.stamp()));
        }
        let tree = Tree::of(reader.stream(), on_progress)?;
        reader.check_unchanged()?;
        self.keep(&file.path, reader.stamp(), &tree);
        Ok((tree, reader.stamp()))
    }

    /// The tree of a file if it need not be hashed: it is in the cache, or the file has one piece at most.
    pub fn known(&self, file: &OfferedFile) -> Option<(Tree, Stamp)> {
        let reader = file.open().ok()?;
        let tree = if reader.size() <= PIECE {
            of_short(&reader)?
        } else {
            self.load(&file.path, reader.stamp())?
        };
        Some((tree, reader.stamp()))
    }

    /// Keeps a tree that is known already to be that of a file, as it is now.
    pub(crate) fn keep_for(&self, path: &Path, tree: &Tree) {
        if let Ok(meta) = fs::symlink_metadata(path) {
            self.keep(path, Stamp::of(&meta), tree);
        }
    }

    /// A tree that cannot be kept is hashed again; that is worth a line in the log, and no more.
    fn keep(&self, path: &Path, stamp: Stamp, tree: &Tree) {
        if tree.size() <= PIECE || tree.size() != stamp.size {
            return;
        }
        let entry = self.entry(path, stamp);
        if let Err(error) = durable::write(&entry, &encode(tree), false) {
            tracing::warn!(entry = %entry.display(), %error, "a hash tree could not be kept");
        }
        self.trim();
    }

    fn load(&self, path: &Path, stamp: Stamp) -> Option<Tree> {
        let entry = self.entry(path, stamp);
        let meta = fs::metadata(&entry).ok()?;
        if meta.len() != AROUND + pieces(stamp.size) * 32 {
            return None;
        }
        decode(&fs::read(entry).ok()?).filter(|tree| tree.size() == stamp.size)
    }

    fn entry(&self, path: &Path, stamp: Stamp) -> PathBuf {
        let mut hasher = blake3::Hasher::new_derive_key("warren.mesh.tree.1");
        hasher.update(&stamp.size.to_le_bytes());
        stamp.times.iter().for_each(|time| _ = hasher.update(&time.to_le_bytes()));
        stamp.file.iter().for_each(|number| _ = hasher.update(&number.to_le_bytes()));
        hasher.update(path.as_os_str().as_encoded_bytes());
        self.directory.join(hasher.finalize().to_hex().as_str())
    }

    /// Removes the oldest entries over the limit, and a tenth more, so that this is seldom done.
    fn trim(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut entries: Vec<(SystemTime, PathBuf)> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        if entries.len() > self.most {
            entries.sort();
            let gone = entries.len() - self.most + self.most / 10;
            entries.iter().take(gone).for_each(|(_, path)| _ = fs::remove_file(path));
        }
    }
}

fn of_short(reader: &Reader) -> Option<Tree> {
    Tree::of(reader.stream(), |_| ControlFlow::Continue(())).ok()
}

/// The bytes of an entry.
pub(crate) fn encode(tree: &Tree) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(tree.size().to_le_bytes());
    bytes.extend(tree.root());
    bytes.extend(tree.values().as_flattened());
    let hash = blake3::hash(&bytes);
    bytes.extend(hash.as_bytes());
    bytes
}

/// The tree of an entry; `None` when it is no whole one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Tree> {
    let (bytes, hash) = bytes.split_last_chunk::<32>()?;
    let rest = bytes.strip_prefix(MAGIC).filter(|_| blake3::hash(bytes) == *hash)?;
    let (size, rest) = rest.split_first_chunk()?;
    let (root, values) = rest.split_first_chunk::<32>()?;
    let root: Value = *root;
    Tree::from_bytes(u64::from_le_bytes(*size), values, root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::FileName;

    fn go_on(_: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn never(_: u64) -> ControlFlow<()> {
        panic!("it was hashed again")
    }

    struct CacheDir {
        dir: tempfile::TempDir,
        cache: TreeCache,
    }

    impl CacheDir {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let cache = TreeCache::open(dir.path()).unwrap();
            Self { dir, cache }
        }

        fn file(&self, name: &str, bytes: &[u8]) -> OfferedFile {
            let path = self.dir.path().join(name);
            fs::write(&path, bytes).unwrap();
            let name = FileName::try_from(name).unwrap();
            OfferedFile { name, size: bytes.len() as u64, path }
        }

        fn entries(&self) -> Vec<PathBuf> {
            let entries = fs::read_dir(self.dir.path().join(TREES)).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        }
    }

    fn content(byte: u8) -> Vec<u8> {
        vec![byte; 2 * PIECE as usize + 9]
    }

    #[test]
    fn a_file_is_hashed_once_as_long_as_it_is_not_changed() {
        let place = CacheDir::new();
        let file = place.file("a", &content(1));
        assert!(place.cache.known(&file).is_none());
        let (tree, _) = place.cache.tree(&file, go_on).unwrap();
        assert_eq!(tree.root(), *blake3::hash(&content(1)).as_bytes());
        assert_eq!(place.cache.tree(&file, never).unwrap().0, tree);
        assert_eq!(place.cache.known(&file).unwrap().0, tree);

        fs::remove_file(&file.path).unwrap();
        let file = place.file("a", &content(2));
        assert!(place.cache.known(&file).is_none(), "the same path and size, but another file");
        let (tree, _) = place.cache.tree(&file, go_on).unwrap();
        assert_eq!(tree.root(), *blake3::hash(&content(2)).as_bytes());
    }

    #[test]
    fn entries_that_are_damaged_are_not_believed() {
        let place = CacheDir::new();
        let file = place.file("a", &content(1));
        let (tree, _) = place.cache.tree(&file, go_on).unwrap();
        let entry = place.entries().pop().unwrap();
        let whole = fs::read(&entry).unwrap();
        for at in 0..whole.len() {
            assert_eq!(decode(&whole[..at]), None);
            let mut wrong = whole.clone();
            wrong[at] ^= 4;
            assert_eq!(decode(&wrong), None);
        }
        fs::write(&entry, &whole[..whole.len() - 1]).unwrap();
        assert!(place.cache.known(&file).is_none());
        assert_eq!(place.cache.tree(&file, go_on).unwrap().0, tree);
        assert_eq!(place.cache.known(&file).unwrap().0, tree, "it was kept anew");
    }

    #[test]
    fn short_files_are_known_without_an_entry() {
        let place = CacheDir::new();
        for size in [0, 1, PIECE as usize] {
            let file = place.file("a", &vec![3; size]);
            let (tree, _) = place.cache.known(&file).unwrap();
            assert_eq!(tree.root(), *blake3::hash(&vec![3; size]).as_bytes());
        }
        assert!(place.entries().is_empty());
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut place = CacheDir::new();
        place.cache.most = 10;
        for i in 0..25 {
            let file = place.file(&format!("f{i}"), &content(i));
            place.cache.tree(&file, go_on).unwrap();
            assert!(place.entries().len() <= 10);
        }
        let last = place.file("last", &content(99));
        place.cache.tree(&last, go_on).unwrap();
        assert!(place.cache.known(&last).is_some(), "the newest stays");
    }

    #[test]
    fn hashing_can_be_broken_off() {
        let place = CacheDir::new();
        let file = place.file("a", &content(1));
        let broken = place.cache.tree(&file, |_| ControlFlow::Break(()));
        assert_eq!(broken.unwrap_err().kind(), io::ErrorKind::Interrupted);
    }
}
