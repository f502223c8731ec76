//! Manifests of offered models, made in the background, one model at a time.

use std::{
    collections::VecDeque,
    fmt, io,
    ops::ControlFlow,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::{
    cache::TreeCache,
    manifest::{Manifest, ManifestError, ManifestFile},
    name::ModelId,
    offer::{Offered, Reader, Stamp},
    tree::Tree,
};

/// The most models that wait to be hashed.
pub const MAX_WAITING: usize = 64;

/// Why there is no manifest of a model.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    /// [`MAX_WAITING`] models are waiting already.
    #[error("too many models wait to be hashed; ask again later")]
    Busy,
    /// The hasher is gone.
    #[error("the server is stopping")]
    Stopped,
    /// A file could not be read, or is being changed.
    #[error("{file} of {model} cannot be read")]
    Read {
        /// The model.
        model: ModelId,
        /// Its file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// The model cannot be told to others.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// An offered model with its hashes.
#[derive(Debug, Clone)]
pub struct Hashed {
    /// Its manifest.
    pub manifest: Manifest,
    /// The tree of each file, by its place in the manifest.
    pub trees: Vec<Arc<Tree>>,
    offered: Offered,
    stamps: Vec<Stamp>,
}

impl Hashed {
    /// Opens a file by its place in the manifest.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] when there is no such file, [`io::ErrorKind::InvalidData`] when it was
    /// changed since it was hashed: the model must be hashed again then.
    pub fn open(&self, file: usize) -> io::Result<Reader> {
        let (Some(offered), Some(stamp)) = (self.offered.files.get(file), self.stamps.get(file))
        else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such file"));
        };
        let reader = offered.open()?;
        if reader.stamp() == *stamp {
            return Ok(reader);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the file was changed since it was hashed"))
    }
}

/// Called once with the result, on the hasher's thread, which must not be held up.
pub type OnHashed = Box<dyn FnOnce(Result<Arc<Hashed>, HashError>) + Send>;

/// A thread that hashes models.
pub struct Hasher {
    cache: TreeCache,
    shared: Arc<Shared>,
}

/// The state between callers and the thread.
#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Of the model at work, in bytes.
    hashed: AtomicU64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Offered, OnHashed)>,
    stopped: bool,
}

impl Hasher {
    /// Starts the thread. It ends when this is dropped.
    ///
    /// # Errors
    ///
    /// When there is no thread to be had.
    pub fn start(cache: TreeCache) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let (theirs, their_cache) = (shared.clone(), cache.clone());
        thread::Builder::new()
            .name("hasher".to_owned())
            .spawn(move || run(&theirs, &their_cache))?;
        Ok(Self { cache, shared })
    }

    /// The model with its hashes, if they are known. Reads the cache and short files.
    pub fn known(&self, offered: &Offered) -> Option<Hashed> {
        let known =
            offered.files.iter().map(|file| self.cache.known(file)).collect::<Option<_>>()?;
        hashed(offered.clone(), known).ok()
    }

    /// Hashes a model and reports the result. A model that waits already is hashed once, and each request gets
    /// its report in turn: the second time the result comes from the cache.
    pub fn hash(&self, offered: Offered, on_hashed: OnHashed) {
        let mut queue = self.shared.lock();
        if queue.waiting.len() >= MAX_WAITING {
            drop(queue);
            return on_hashed(Err(HashError::Busy));
        }
        queue.waiting.push_back((offered, on_hashed));
        drop(queue);
        self.shared.changed.notify_one();
    }

    /// How many bytes of the model at work are hashed.
    pub fn progress(&self) -> u64 {
        self.shared.hashed.load(Ordering::Relaxed)
    }
}

impl Drop for Hasher {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.stopped = true;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        self.shared.changed.notify_one();
        waiting.into_iter().for_each(|(_, report)| report(Err(HashError::Stopped)));
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").field("waiting", &self.shared.lock().waiting.len()).finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it is held; a queue is whole after each step anyway.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next model, or `None` when there will be none.
    fn next(&self) -> Option<(Offered, OnHashed)> {
        let mut queue = self.lock();
        loop {
            if queue.stopped {
                return None;
            }
            if let Some(next) = queue.waiting.pop_front() {
                return Some(next);
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn go_on(&self, hashed: u64) -> ControlFlow<()> {
        self.hashed.store(hashed, Ordering::Relaxed);
        if self.lock().stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn run(shared: &Shared, cache: &TreeCache) {
    while let Some((offered, on_hashed)) = shared.next() {
        on_hashed(work(shared, cache, offered).map(Arc::new));
        shared.hashed.store(0, Ordering::Relaxed);
    }
}

fn work(shared: &Shared, cache: &TreeCache, offered: Offered) -> Result<Hashed, HashError> {
    let mut trees = Vec::with_capacity(offered.files.len());
    let mut before = 0;
    for file in &offered.files {
        let tree = cache.tree(file, |hashed| shared.go_on(before + hashed));
        trees.push(tree.map_err(|source| match source.kind() {
            io::ErrorKind::Interrupted => HashError::Stopped,
            _ => HashError::Read { model: offered.id.clone(), file: file.name.to_string(), source },
        })?);
        before += file.size;
    }
    hashed(offered, trees)
}

fn hashed(offered: Offered, known: Vec<(Tree, Stamp)>) -> Result<Hashed, HashError> {
    let file = |(file, (tree, _)): (&crate::OfferedFile, &(Tree, Stamp))| ManifestFile {
        name: file.name.clone(),
        size: tree.size(),
        root: tree.root(),
    };
    let files = offered.files.iter().zip(&known).map(file).collect();
    let manifest = Manifest::new(offered.id.clone(), files)?;
    let (trees, stamps) = known.into_iter().map(|(tree, stamp)| (Arc::new(tree), stamp)).unzip();
    Ok(Hashed { manifest, trees, offered, stamps })
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::mpsc};

    use super::*;
    use crate::{name::FileName, offer::OfferedFile, tree::PIECE};

    fn offered(dir: &tempfile::TempDir, name: &str, bytes: &[u8]) -> Offered {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let name = FileName::try_from(name).unwrap();
        let files = vec![OfferedFile { name, size: bytes.len() as u64, path }];
        Offered { id: ModelId::try_from("org/name").unwrap(), source: "folder", files }
    }

    fn ask(hasher: &Hasher, offered: Offered) -> mpsc::Receiver<Result<Arc<Hashed>, HashError>> {
        let (sender, receiver) = mpsc::sync_channel(1);
        hasher.hash(offered, Box::new(move |result| sender.send(result).unwrap()));
        receiver
    }

    fn place() -> (tempfile::TempDir, Hasher) {
        let dir = tempfile::tempdir().unwrap();
        let hasher = Hasher::start(TreeCache::open(dir.path()).unwrap()).unwrap();
        (dir, hasher)
    }

    #[test]
    fn a_model_is_hashed_and_known_from_then_on_until_it_changes() {
        let (dir, hasher) = place();
        let bytes = vec![5; 3 * PIECE as usize + 1];
        let model = offered(&dir, "a.gguf", &bytes);
        assert!(hasher.known(&model).is_none());
        let hashed = ask(&hasher, model.clone()).recv().unwrap().unwrap();
        assert_eq!(hashed.manifest.files()[0].root, *blake3::hash(&bytes).as_bytes());
        assert_eq!(hasher.known(&model).unwrap().manifest, hashed.manifest);
        assert_eq!(hashed.open(0).unwrap().piece(3).unwrap(), [5]);
        assert_eq!(hashed.open(1).unwrap_err().kind(), io::ErrorKind::InvalidInput);

        fs::remove_file(&model.files[0].path).unwrap();
        offered(&dir, "a.gguf", &bytes);
        assert_eq!(hashed.open(0).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_file_that_is_gone_is_named() {
        let (dir, hasher) = place();
        let model = offered(&dir, "a.gguf", b"x");
        fs::remove_file(&model.files[0].path).unwrap();
        let error = ask(&hasher, model).recv().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "a.gguf of org/name cannot be read");
    }

    #[test]
    fn the_queue_is_bounded_and_whoever_waits_is_told_of_the_end() {
        let (dir, hasher) = place();
        let model = offered(&dir, "a.gguf", b"x");
        // The first one holds up the thread until all others are asked for.
        let (release, held) = mpsc::sync_channel::<()>(1);
        let (began, begun) = mpsc::sync_channel(1);
        let hold = move |_| {
            began.send(()).unwrap();
            _ = held.recv();
        };
        hasher.hash(model.clone(), Box::new(hold));
        begun.recv().unwrap();
        let waiting: Vec<_> = (0..MAX_WAITING).map(|_| ask(&hasher, model.clone())).collect();
        let over = ask(&hasher, model).recv().unwrap();
        assert!(matches!(over, Err(HashError::Busy)));
        drop(hasher);
        for waiting in waiting {
            assert!(matches!(waiting.recv().unwrap(), Err(HashError::Stopped)));
        }
        drop(release);
    }
}
