//! The models that are here, with their hashes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use models::{Hashed, Hasher, Library, ModelId, Offered, TreeCache, hasher::HashError};
use tokio::{
    sync::{Mutex, OnceCell, oneshot},
    task::spawn_blocking,
    time::Instant,
};

/// How long the result of a scan is used.
const FRESH: Duration = Duration::from_secs(30);

/// The models that are here.
pub(super) struct Shelf {
    library: Arc<Library>,
    store: PathBuf,
    /// The result of the last scan, and its time.
    scanned: Mutex<Option<(Instant, Arc<Vec<Offered>>)>>,
    hashing: OnceCell<HashTools>,
}

/// The hasher of models and its cache. The store's directory is made with them, at the first use.
struct HashTools {
    cache: TreeCache,
    hasher: Arc<Hasher>,
}

impl Shelf {
    /// `store` is the directory in which models arrive.
    pub(super) fn new(library: Arc<Library>, store: PathBuf) -> Self {
        Self { library, store, scanned: Mutex::default(), hashing: OnceCell::new() }
    }

    /// The directory in which models arrive.
    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    /// All models that are here, as of the last 30 s.
    pub(super) async fn all(&self) -> Arc<Vec<Offered>> {
        let mut scanned = self.scanned.lock().await;
        if let Some((_, all)) = scanned.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Arc::clone(all);
        }
        let library = Arc::clone(&self.library);
        // The lock is held meanwhile, so that one scan serves all callers. A scan that panicked
        // counts as having found nothing.
        let all = Arc::new(spawn_blocking(move || library.scan()).await.unwrap_or_default());
        *scanned = Some((Instant::now(), Arc::clone(&all)));
        all
    }

    /// The model with this name, if it is here.
    pub(super) async fn find(&self, model: &str) -> Option<Offered> {
        let all = self.all().await;
        all.iter().find(|offered| offered.id.as_str() == model).cloned()
    }

    /// Notes that files have changed: the next caller scans again.
    pub(super) async fn forget(&self) {
        *self.scanned.lock().await = None;
    }

    /// A model with its hashes. If these are not known, that may take minutes.
    ///
    /// # Errors
    /// In words, if the model cannot be read.
    pub(super) async fn hashed(&self, offered: Offered) -> Result<Arc<Hashed>, String> {
        let hasher = Arc::clone(&self.hashing().await?.hasher);
        let (known_by, known) = (Arc::clone(&hasher), offered.clone());
        if let Ok(Some(hashed)) = spawn_blocking(move || known_by.known(&known)).await {
            return Ok(Arc::new(hashed));
        }
        let (sender, result) = oneshot::channel();
        // The caller may have stopped waiting.
        hasher.hash(offered, Box::new(move |hashed| _ = sender.send(hashed)));
        let hashed = result.await.unwrap_or(Err(HashError::Stopped));
        hashed.map_err(|error| base::error::chain(&error))
    }

    /// The cache of hash trees.
    ///
    /// # Errors
    /// In words, if the store cannot be used.
    pub(super) async fn trees(&self) -> Result<TreeCache, String> {
        Ok(self.hashing().await?.cache.clone())
    }

    /// The directory of this model in the store, if it is complete there.
    pub(super) async fn installed(&self, model: &ModelId) -> Option<PathBuf> {
        let (store, model) = (self.store.clone(), model.clone());
        let look = move || models::arrival::installed(&store, &model).map(|_| model.below(&store));
        spawn_blocking(look).await.ok()?
    }

    async fn hashing(&self) -> Result<&HashTools, String> {
        let store = self.store.clone();
        let hashing = self.hashing.get_or_try_init(|| async {
            let opened = spawn_blocking(move || HashTools::of(&store)).await;
            opened.unwrap_or_else(|_| Err(std::io::Error::other("it was stopped")))
        });
        hashing.await.map_err(|error| {
            format!("the folder for models, {}, cannot be used: {error}", self.store.display())
        })
    }
}

impl HashTools {
    fn of(store: &Path) -> std::io::Result<Self> {
        let cache = TreeCache::open(store)?;
        let hasher = Arc::new(Hasher::start(cache.clone())?);
        Ok(Self { cache, hasher })
    }
}
