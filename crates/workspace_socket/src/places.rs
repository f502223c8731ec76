//! Places for large messages. They bound how many are in memory at once.
//!
//! Each key has a limited share, so that a leaked key delays nobody else. Some places are for
//! administrators only.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places for everybody, and the further places for administrators only.
const FOR_ALL: usize = 6;
const FOR_ADMINISTRATORS: usize = 2;
/// The places of all connections of one key together.
const EACH_KEY: usize = 3;
/// The places of one connection.
const EACH: usize = 2;

pub(crate) struct Places {
    for_all: Arc<Line>,
    for_administrators: Arc<Line>,
    /// The share of each key that has a connection.
    keys: Mutex<HashMap<String, Weak<Line>>>,
}

/// A number of places, and the number of connections that wait for one.
struct Line {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The places that one connection may claim.
#[derive(Clone)]
pub(crate) struct Claim {
    own: Arc<Line>,
    key: Arc<Line>,
    for_all: Arc<Line>,
    /// The places reserved for administrators, if the client is one.
    reserved: Option<Arc<Line>>,
}

/// A place that stays taken until this is dropped.
pub(crate) struct TakenPlace {
    key: Arc<Line>,
    line: Arc<Line>,
    _permits: [OwnedSemaphorePermit; 3],
}

impl Default for Places {
    fn default() -> Self {
        Self {
            for_all: Line::new(FOR_ALL),
            for_administrators: Line::new(FOR_ADMINISTRATORS),
            keys: Mutex::default(),
        }
    }
}

impl Places {
    /// The places that a connection with this key may claim.
    pub(crate) fn claim(&self, key: &str, is_administrator: bool) -> Claim {
        let reserved = is_administrator.then(|| Arc::clone(&self.for_administrators));
        let for_all = Arc::clone(&self.for_all);
        Claim { own: Line::new(EACH), key: self.of_key(key), for_all, reserved }
    }

    fn of_key(&self, key: &str) -> Arc<Line> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = keys.get(key).and_then(Weak::upgrade) {
            return line;
        }
        let line = Line::new(EACH_KEY);
        keys.retain(|_, line| line.strong_count() > 0);
        keys.insert(key.to_owned(), Arc::downgrade(&line));
        line
    }
}

impl Claim {
    pub(crate) async fn take(self) -> io::Result<TakenPlace> {
        // The connection's own share goes first, then the key's. So a client that has used up its
        // share occupies nothing that others wait for.
        let own = self.own.take().await?;
        let share = self.key.take().await?;
        let (line, permit) = self.any().await?;
        Ok(TakenPlace { key: self.key, line, _permits: [own, share, permit] })
    }

    async fn any(&self) -> io::Result<(Arc<Line>, OwnedSemaphorePermit)> {
        let Some(reserved) = &self.reserved else {
            return Ok((Arc::clone(&self.for_all), self.for_all.take().await?));
        };
        // The common places go first, so that the reserved ones stay free.
        tokio::select! {
            biased;
            permit = self.for_all.take() => Ok((Arc::clone(&self.for_all), permit?)),
            permit = reserved.take() => Ok((Arc::clone(reserved), permit?)),
        }
    }
}

impl TakenPlace {
    /// Whether another connection waits for this place, or for a place of the same key.
    pub(crate) fn is_wanted(&self) -> bool {
        self.key.is_wanted() || self.line.is_wanted()
    }
}

impl Line {
    fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { places: Arc::new(Semaphore::new(places)), waiting: AtomicUsize::new(0) })
    }

    async fn take(&self) -> io::Result<OwnedSemaphorePermit> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(self);
        Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)
    }

    fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// Counts as one waiting connection until it is dropped.
struct Waiting<'a>(&'a Line);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{iter, time::Duration};

    use tokio::time::timeout;

    use super::*;

    async fn taken(claim: &Claim) -> Option<TakenPlace> {
        let taking = timeout(Duration::from_millis(50), claim.clone().take()).await;
        taking.ok().map(Result::unwrap)
    }

    /// Takes all places that these claims can get.
    async fn all(claims: impl Iterator<Item = Claim>) -> Vec<TakenPlace> {
        let mut all = Vec::new();
        for claim in claims {
            match taken(&claim).await {
                Some(place) => all.push(place),
                None => break,
            }
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_has_two_places_and_a_key_three() {
        let places = Places::default();
        let claim = places.claim("k", false);
        let own = all(iter::repeat_n(claim.clone(), 9)).await;
        assert_eq!(own.len(), EACH);
        let of_key = all(iter::repeat_with(|| places.claim("k", false)).take(9)).await;
        assert_eq!(own.len() + of_key.len(), EACH_KEY);
        let other = taken(&places.claim("other", false)).await;
        assert!(other.is_some(), "another key has its own");
        drop(own);
        assert!(taken(&claim).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn all_keys_together_leave_two_places_to_administrators() {
        let places = Places::default();
        let keys = |is_administrator| {
            let places = &places;
            (0..).map(move |key: u32| {
                places.claim(&format!("{is_administrator} {key}"), is_administrator)
            })
        };
        let mut others = all(keys(false)).await;
        assert_eq!(others.len(), FOR_ALL);
        assert!(!others[0].is_wanted());
        let administrators = all(keys(true)).await;
        assert_eq!(administrators.len(), FOR_ADMINISTRATORS);
        others.pop();
        assert!(taken(&places.claim("a", true)).await.is_some(), "they have the others', too");
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_wanted_by_those_of_its_key_and_once_all_are_taken_by_all() {
        let places = Arc::new(Places::default());
        let wait = |key: &'static str| {
            let places = Arc::clone(&places);
            tokio::spawn(async move { places.claim(key, false).take().await })
        };
        let own = all(iter::repeat_with(|| places.claim("k", false)).take(9)).await;
        let other = taken(&places.claim("other", false)).await.unwrap();
        let waiting = wait("k");
        tokio::task::yield_now().await;
        assert!(own[0].is_wanted() && !other.is_wanted());
        waiting.abort();
        assert!(waiting.await.is_err());
        assert!(!own[0].is_wanted(), "who waits no more wants nothing");
        let _rest = all((0..).map(|key: u32| places.claim(&key.to_string(), false))).await;
        let waiting = wait("late");
        tokio::task::yield_now().await;
        assert!(own[0].is_wanted() && other.is_wanted());
        waiting.abort();
    }

    #[test]
    fn keys_without_connections_are_forgotten() {
        let places = Places::default();
        (0..100).for_each(|key| drop(places.claim(&key.to_string(), false)));
        assert_eq!(places.keys.lock().unwrap().len(), 1);
    }
}
