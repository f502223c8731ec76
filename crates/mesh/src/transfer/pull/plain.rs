//! The plain form of stock peers. Chunks come in order and without hashes, and an interrupted
//! transfer cannot be resumed.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use models::{ArrivalError, FileName, StockArrival, TreeCache, space};
use protocol::mesh::{
    ClusterMessage,
    cluster::{ModelTransferChunk, ModelTransferRequest},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
    time::Instant,
};

use super::{
    Failure,
    run::{PullTask, stopped},
};
use crate::{link::Link, transfer::shared::Counters};

/// The time limit for the next chunk.
const NEXT_WITHIN: Duration = Duration::from_secs(30);

/// The longest chunk, in bytes. Stock peers send 1 MiB.
const MAX_CHUNK: usize = 2 << 20;

/// The most chunks that wait to be written. In the plain form a peer cannot be asked to wait. So if
/// it sends faster than the disk writes for too long, the transfer ends.
const MAX_WAITING: usize = 64;

/// A peer's messages in the plain form.
#[derive(Default)]
pub(super) struct PlainInbox(Mutex<Option<Open>>);

struct Open {
    link: u64,
    sender: mpsc::Sender<Step>,
    heard: Instant,
    broken: Arc<Mutex<Option<String>>>,
}

/// A message of a peer.
enum Step {
    Chunk { name: FileName, offset: u64, bytes: Vec<u8>, last: bool },
    Complete,
}

impl PlainInbox {
    /// Handles a chunk. Returns whether it was requested.
    pub(super) fn chunk(&self, link: &Link, chunk: &ModelTransferChunk) -> bool {
        self.with(link, |open| {
            open.sender.try_send(step(chunk)?).map_err(|_| match open.sender.is_closed() {
                true => "nothing more can be written".to_owned(),
                false => "the peer sends faster than this disk writes".to_owned(),
            })
        })
    }

    /// Handles the message that the peer has sent everything. Returns whether that was requested.
    pub(super) fn complete(&self, link: &Link) -> bool {
        // If the queue is full, the message is lost, and the silence that follows ends the
        // transfer.
        self.with(link, |open| {
            let _ = open.sender.try_send(Step::Complete);
            Ok(())
        })
    }

    /// Handles the message that the peer sends nothing more.
    pub(super) fn refused(&self, link: &Link, why: &str) {
        self.with(link, |_| Err(why.to_owned()));
    }

    /// Stops accepting chunks.
    pub(super) fn close(&self) {
        *self.lock() = None;
    }

    /// Handles a message of this link. An invalid one ends the transfer.
    fn with(&self, link: &Link, take: impl FnOnce(&Open) -> Result<(), String>) -> bool {
        let mut transfer = self.lock();
        let Some(open) = transfer.as_mut().filter(|open| open.link == link.number) else {
            return false;
        };
        open.heard = Instant::now();
        if let Err(why) = take(open) {
            lock(&open.broken).get_or_insert(why);
            *transfer = None;
        }
        true
    }

    fn silence(&self) -> Option<Duration> {
        self.lock().as_ref().map(|open| open.heard.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        lock(&self.0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn step(chunk: &ModelTransferChunk) -> Result<Step, String> {
    let name = FileName::try_from(chunk.file_name.as_str());
    let name =
        name.map_err(|error| format!("it names a file that cannot be called so: {error}"))?;
    if chunk.data.len() > MAX_CHUNK.div_ceil(3) * 4 {
        return Err(format!("a chunk of {name} is longer than {MAX_CHUNK} bytes"));
    }
    let bytes = STANDARD.decode(&chunk.data);
    let bytes = bytes.map_err(|error| format!("a chunk of {name} is no base64: {error}"))?;
    Ok(Step::Chunk { name, offset: chunk.offset, bytes, last: chunk.is_last_chunk })
}

/// Writes the chunks until the model is complete, or no more come.
fn write(
    mut arrival: StockArrival,
    mut steps: mpsc::Receiver<Step>,
    arrived: &AtomicU64,
    cache: Option<&TreeCache>,
) -> Result<PathBuf, Failure> {
    let mut all_sent = false;
    while let Some(step) = steps.blocking_recv() {
        let Step::Chunk { name, offset, bytes, last } = step else {
            all_sent = true;
            break;
        };
        if let Err(error) = arrival.write(&name, offset, &bytes, last) {
            let failure = Failure::of(&error);
            return arrival
                .abandon()
                .map_or_else(|error| Err(Failure::of(&error)), |()| Err(failure));
        }
        arrived.store(arrival.arrived(), Ordering::Relaxed);
    }
    match arrival.finish(false, cache) {
        Ok((path, _)) => Ok(path),
        Err(error @ ArrivalError::Incomplete { .. }) if all_sent => {
            Err(Failure::new("corrupt", format!("{error}, though the peer says that it sent all")))
        }
        Err(error) => Err(Failure::of(&error)),
    }
}

/// A transfer that has begun.
struct PlainTransfer {
    result: oneshot::Receiver<Result<PathBuf, Failure>>,
    arrived: Arc<AtomicU64>,
    broken: Arc<Mutex<Option<String>>>,
}

impl PullTask {
    /// Fetches the model in the plain form. `None` if this peer does not send it.
    pub(super) async fn fetch_plain(
        &mut self,
        link: Arc<Link>,
        total: u64,
    ) -> Result<Option<PathBuf>, Failure> {
        let mut begun = match self.begin_plain(&link, total).await {
            Ok(begun) => begun,
            Err(failure) => return self.plain_failed(&link, failure).map(|()| None),
        };
        let result = self.watch_plain(&link, total, &mut begun).await;
        self.job.plain.close();
        let broken = lock(&begun.broken).take();
        let failure = match (result, broken) {
            (Ok(path), _) => {
                let arrived = begun.arrived.load(Ordering::Relaxed);
                self.shared.counts.bytes_in.add(arrived);
                self.job.show(|it| (it.bytes, it.total) = (arrived, Some(arrived)));
                return Ok(Some(path));
            }
            (Err(_), Some(why)) => Failure::new("corrupt", why),
            (Err(failure), None) => failure,
        };
        self.plain_failed(&link, failure).map(|()| None)
    }

    fn plain_failed(&mut self, link: &Link, failure: Failure) -> Result<(), Failure> {
        if !failure.is_the_peers() {
            return Err(failure);
        }
        count(&self.shared.counts, &failure);
        tracing::warn!(model = %self.job.model, peer = %link.peer.short(), why = failure.why, "a peer did not send a model");
        self.give_up(&link.peer, failure);
        Ok(())
    }

    async fn begin_plain(
        &mut self,
        link: &Arc<Link>,
        total: u64,
    ) -> Result<PlainTransfer, Failure> {
        let arrival = self.open_plain(total).await?;
        let cache = self.shared.shelf.trees().await.ok();
        let (sender, steps) = mpsc::channel(MAX_WAITING);
        let (tell, result) = oneshot::channel();
        let arrived = Arc::new(AtomicU64::new(0));
        let broken = Arc::default();
        let open =
            Open { link: link.number, sender, heard: Instant::now(), broken: Arc::clone(&broken) };
        *self.job.plain.lock() = Some(open);
        let written = Arc::clone(&arrived);
        self.writer = Some(spawn_blocking(move || {
            // The pull may have ended, so that no receiver is left.
            let _ = tell.send(write(arrival, steps, &written, cache.as_ref()));
        }));
        let (transfer_id, model_id) = (self.job.id.clone(), self.job.model.to_string());
        let request = ModelTransferRequest { transfer_id, model_id };
        // If the link is closed, the next tick notices.
        let _ = link.tell(&ClusterMessage::ModelTransferRequest(request));
        Ok(PlainTransfer { result, arrived, broken })
    }

    async fn open_plain(&mut self, total: u64) -> Result<StockArrival, Failure> {
        let (store, job) = (self.shared.shelf.store().to_owned(), Arc::clone(&self.job));
        let open = move || {
            std::fs::create_dir_all(&store).ok();
            let free = |path: &std::path::Path| space::free(path);
            StockArrival::open(&store, job.id.as_str(), &job.model, total, &free)
        };
        let opened = spawn_blocking(open).await.map_err(|_| stopped())?;
        opened.map_err(|error| Failure::of(&error))
    }

    async fn watch_plain(
        &mut self,
        link: &Link,
        total: u64,
        begun: &mut PlainTransfer,
    ) -> Result<PathBuf, Failure> {
        loop {
            tokio::select! {
                biased;
                result = &mut begun.result => {
                    return result.unwrap_or_else(|_| Err(stopped()));
                }
                _ = self.tick.tick() => {
                    let silent = self.job.plain.silence().is_some_and(|it| it >= NEXT_WITHIN);
                    if silent || link.is_closed() {
                        // Then the writer ends, and finds out whether everything is there.
                        self.job.plain.close();
                    }
                    let (bytes, peers) = (begun.arrived.load(Ordering::Relaxed), link.peer.to_string());
                    self.show_bytes("running", bytes, total, vec![peers]);
                }
            }
        }
    }
}

fn count(counts: &Counters, failure: &Failure) {
    if failure.code == "corrupt" {
        counts.corrupt.one();
    }
}
