//! Runs a pull from its beginning to its end: search, choose, fetch, finish. If no source is left,
//! it searches again.

use std::{path::PathBuf, sync::Arc, time::Duration};

use models::{Arrival, ArrivalError, Manifest, space};
use protocol::mesh::{
    ClusterMessage,
    cluster::{ModelTransferComplete, ModelTransferError},
};
use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
    time::{Instant, Interval, MissedTickBehavior, interval},
};

use super::{
    Failure, Job, Pulls,
    choose::{Choice, FOUND_WITHIN},
    fetch::Fetch,
    find::{Finder, ModelForm, Source},
    inbox::{Event, start_writer},
};
use crate::{
    peer::PeerId,
    transfer::{rate::Rate, shared::Shared},
};

/// How often the sources are checked, and the progress is shown.
const TICK: Duration = Duration::from_millis(250);

/// How long a pull waits for a peer when it has none.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(600);

/// How often pieces that were damaged on the disk are fetched again. If the disk goes on damaging
/// them, a person has to act.
const MENDS: u32 = 3;

/// Fetches a model, and shows the progress.
pub(super) async fn run(pulls: Arc<Pulls>, job: Arc<Job>, events: mpsc::Receiver<Event>) {
    let shared = Arc::clone(&pulls.shared);
    tracing::info!(model = %job.model, id = %job.id, "a model is being fetched");
    let mut pulling = PullTask::new(Arc::clone(&shared), Arc::clone(&job), events);
    let result = job.cancel.run_until_cancelled(pulling.run()).await;
    pulling.end(matches!(result, Some(Ok(_)))).await;
    shared.shelf.forget().await;
    job.show_end(&shared, result);
    // Remembered after that: for a moment the transfer is in neither list, but never in both.
    pulls.remove(&job);
    shared.remember(job.now());
}

impl Job {
    fn show_end(&self, shared: &Shared, result: Option<Result<PathBuf, Failure>>) {
        let (state, detail, code) = match result {
            None => ("cancelled", None, None),
            Some(Ok(path)) => ("done", Some(path.display().to_string()), None),
            Some(Err(failure)) => ("failed", Some(failure.why), Some(failure.code.to_owned())),
        };
        match state {
            "done" => shared.counts.done.one(),
            "failed" => shared.counts.failed.one(),
            _ => {}
        }
        tracing::info!(model = %self.model, state, detail, "a model is not fetched any more");
        self.show(|transfer| {
            (transfer.state, transfer.detail, transfer.code) = (state.to_owned(), detail, code);
            (transfer.rate, transfer.eta_secs) = (0, None);
        });
    }
}

/// The state of a running pull.
pub(super) struct PullTask {
    pub(super) shared: Arc<Shared>,
    pub(super) job: Arc<Job>,
    pub(super) finder: Finder,
    pub(super) events: mpsc::Receiver<Event>,
    pub(super) tick: Interval,
    pub(super) found: Vec<Source>,
    /// The digests of interrupted earlier pulls of the model; the files of such a pull are
    /// preferred.
    pub(super) unfinished: Vec<[u8; 32]>,
    /// Why the last attempt failed.
    pub(super) last: Option<Failure>,
    fetch: Option<Fetch>,
    /// The task that writes. It is awaited at the end.
    pub(super) writer: Option<JoinHandle<()>>,
    rate: Rate,
    /// How often damaged pieces were fetched again.
    mended: u32,
    /// When the sources were last checked.
    checked: Option<Instant>,
}

impl PullTask {
    fn new(shared: Arc<Shared>, job: Arc<Job>, events: mpsc::Receiver<Event>) -> Self {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            finder: Finder::new(Arc::clone(&shared), Arc::clone(&job)),
            shared,
            job,
            events,
            tick,
            found: Vec::new(),
            unfinished: Vec::new(),
            last: None,
            fetch: None,
            writer: None,
            rate: Rate::default(),
            mended: 0,
            checked: None,
        }
    }

    async fn run(&mut self) -> Result<PathBuf, Failure> {
        if let Some(path) = self.shared.shelf.installed(&self.job.model).await {
            return Ok(path);
        }
        self.unfinished = self.find_unfinished().await;
        loop {
            let done = match self.choose().await? {
                Choice::Pieces(manifest) => self.fetch(manifest).await?,
                Choice::Plain(link, total) => self.fetch_plain(link, total).await?,
            };
            if let Some(path) = done {
                return Ok(path);
            }
        }
    }

    /// Removes a peer from the found ones, for this reason. A peer that sent wrong bytes is not
    /// asked again.
    pub(super) fn give_up(&mut self, peer: &PeerId, failure: Failure) {
        self.found.retain(|found| found.link.peer != *peer);
        if failure.code == "corrupt" {
            self.finder.ban(peer);
        }
        self.last = Some(failure);
    }

    /// Fetches these files. `None` if the search has to begin again.
    async fn fetch(&mut self, manifest: Arc<Manifest>) -> Result<Option<PathBuf>, Failure> {
        let arrival = Arc::new(self.open(&manifest).await?);
        let writes = self.job.inbox.open();
        let (shared, events) = (Arc::clone(&self.shared), self.job.inbox.events());
        self.writer = Some(start_writer(shared, Arc::clone(&arrival), writes, events));
        self.unfinished = vec![manifest.digest()];
        self.checked = None;
        self.fetch = Some(Fetch::new(Arc::clone(&self.job), manifest, arrival));
        let fetched = self.fetch_all().await?;
        let fetch = self.fetch.take();
        self.stop_writing().await;
        match fetch {
            Some(fetch) if fetched => self.finish(fetch).await,
            _ => Ok(None),
        }
    }

    async fn open(&mut self, manifest: &Arc<Manifest>) -> Result<Arrival, Failure> {
        let (store, manifest) = (self.shared.shelf.store().to_owned(), Arc::clone(manifest));
        let opened = spawn_blocking(move || {
            // If this fails, opening the arrival reports why.
            std::fs::create_dir_all(&store).ok();
            Arrival::open(&store, &manifest, &|path| space::free(path))
        });
        let opened = opened.await.map_err(|_| stopped())?;
        opened.map_err(|error| Failure::of(&error))
    }

    /// Fetches until everything is there. Returns `false` if all peers with these files have sent
    /// wrong bytes, or now list other files.
    async fn fetch_all(&mut self) -> Result<bool, Failure> {
        // Since when there has been no source.
        let mut alone: Option<Instant> = None;
        let mut wrong = false;
        loop {
            let Some(fetch) = &mut self.fetch else { return Ok(false) };
            take_matching(&mut self.found, fetch);
            if self.checked.is_none_or(|at| at.elapsed() >= TICK) {
                self.checked = Some(Instant::now());
                fetch.check_sources();
                self.finder.ask_all(|peer, link| fetch.has(peer, link));
            }
            fetch.request();
            for peer in std::mem::take(&mut fetch.banned) {
                self.finder.ban(&peer);
                wrong = true;
            }
            if fetch.is_done() {
                return Ok(true);
            }
            let since = fetch.is_alone().then(|| *alone.get_or_insert_with(Instant::now));
            alone = since;
            if let Some(since) = since
                && self.gives_up(since, wrong)?
            {
                return Ok(false);
            }
            self.show_fetch();
            self.step().await?;
        }
    }

    /// Waits for an event, and handles it.
    async fn step(&mut self) -> Result<(), Failure> {
        tokio::select! {
            biased;
            event = self.events.recv() => {
                // All events that wait are handled at once, since each round asks all sources.
                let mut next = event;
                while let Some(event) = next {
                    self.take(event)?;
                    next = self.events.try_recv().ok();
                }
            }
            found = self.finder.next() => self.keep(found),
            _ = self.tick.tick() => {}
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> Result<(), Failure> {
        let Some(fetch) = &mut self.fetch else { return Ok(()) };
        match event {
            Event::Written(from, key, result) => {
                fetch.written(&from, key, result, &self.shared.counts)?;
            }
            Event::Refused(link, why) => {
                tracing::info!(model = %self.job.model, why, "a peer stops sending a model");
                fetch.leave_link(link);
            }
            Event::Closed(link) => fetch.leave_link(link),
        }
        Ok(())
    }

    /// Whether to search for other files after there has been no source since `since`. That is so
    /// if a former source now lists other files, or if all sources have sent wrong bytes.
    fn gives_up(&mut self, since: Instant, wrong: bool) -> Result<bool, Failure> {
        let had = |found: &Source| self.fetch.as_ref().is_some_and(|it| it.had(&found.link.peer));
        if since.elapsed() >= FOUND_WITHIN && self.found.iter().any(had) {
            self.unfinished.clear();
            return Ok(true);
        }
        if wrong && since.elapsed() >= FOUND_WITHIN && self.finder.is_idle() {
            let why = "all peers that had the model sent other bytes than their hashes say";
            self.last = Some(Failure::new("corrupt", why));
            self.unfinished.clear();
            return Ok(true);
        }
        if since.elapsed() >= BACK_WITHIN {
            let why = "no peer that has the model is linked any more; what has arrived is kept: pull again";
            return Err(Failure::new("lost", why));
        }
        Ok(false)
    }

    /// Installs the model. `None` if a part was damaged on the disk and has to be fetched again.
    async fn finish(&mut self, fetch: Fetch) -> Result<Option<PathBuf>, Failure> {
        let total = fetch.manifest.total();
        self.job.show(|transfer| {
            "finishing".clone_into(&mut transfer.state);
            (transfer.bytes, transfer.total, transfer.rate, transfer.eta_secs) =
                (total, Some(total), 0, None);
        });
        let links: Vec<_> = fetch.links().cloned().collect();
        let (manifest, arrival) = (fetch.manifest, fetch.arrival);
        let cache = self.shared.shelf.trees().await.ok();
        let store = self.shared.shelf.store().to_owned();
        let finished = spawn_blocking(move || {
            // The writer has ended, so this is the only reference.
            let arrival = Arc::try_unwrap(arrival).ok()?;
            let manifest = arrival.manifest().clone();
            let finished = arrival.finish(false, cache.as_ref());
            if finished.is_ok() {
                clear_others(&store, &manifest);
            }
            Some(finished)
        });
        let finished = finished.await.ok().flatten().ok_or_else(stopped)?;
        let path = match finished {
            Err(error @ ArrivalError::Damaged { .. }) if self.mended < MENDS => {
                tracing::warn!(model = %self.job.model, "{error}");
                self.mended += 1;
                let form = ModelForm::Pieces(manifest);
                self.found
                    .extend(links.into_iter().map(|link| Source { link, form: form.clone() }));
                return Ok(None);
            }
            finished => finished.map_err(|error| Failure::of(&error))?,
        };
        let (transfer_id, model_id) = (self.job.id.clone(), self.job.model.to_string());
        let complete = ModelTransferComplete { transfer_id, model_id };
        let complete = ClusterMessage::ModelTransferComplete(complete);
        links.iter().for_each(|link| _ = link.tell(&complete));
        Ok(Some(path))
    }

    /// Ends everything that runs for the pull, and tells its sources.
    async fn end(&mut self, done: bool) {
        if let Some(fetch) = self.fetch.take().filter(|_| !done) {
            let error = ModelTransferError {
                transfer_id: self.job.id.clone(),
                error_message: "it is not fetched any more".to_owned(),
            };
            let error = ClusterMessage::ModelTransferError(error);
            fetch.links().for_each(|link| _ = link.tell(&error));
        }
        self.stop_writing().await;
    }

    /// Stops receiving, and waits until the writer has ended.
    async fn stop_writing(&mut self) {
        self.job.inbox.close();
        self.job.plain.close();
        let Some(mut writer) = self.writer.take() else { return };
        loop {
            tokio::select! {
                _ = &mut writer => return,
                // Otherwise the writer would wait for ever if its queue of events is full.
                _ = self.events.recv() => {}
            }
        }
    }

    fn show_fetch(&mut self) {
        let Some(fetch) = &self.fetch else { return };
        let state = match (fetch.is_alone(), fetch.wants_trees()) {
            (true, _) => "waiting",
            (false, true) => "preparing",
            (false, false) => "running",
        };
        let (bytes, total) = (fetch.arrival.arrived(), fetch.manifest.total());
        let peers = fetch.peers();
        self.show_bytes(state, bytes, total, peers);
    }

    /// Shows the progress, a few times a second.
    pub(super) fn show_bytes(&mut self, state: &str, bytes: u64, total: u64, peers: Vec<String>) {
        let now = Instant::now();
        if self.rate.is_fresh(now, TICK) && self.job.progress.borrow().state == state {
            return;
        }
        self.rate.mark(now, bytes);
        let (rate, eta_secs) = (self.rate.per_second(), self.rate.left(total));
        self.job.show(|transfer| {
            state.clone_into(&mut transfer.state);
            (transfer.bytes, transfer.total, transfer.peers) = (bytes, Some(total), peers);
            (transfer.rate, transfer.eta_secs) = (rate, eta_secs);
        });
    }
}

/// If the task is dropped before its end, the writer's thread must not wait for ever for more.
impl Drop for PullTask {
    fn drop(&mut self) {
        self.job.inbox.close();
        self.job.plain.close();
    }
}

/// Removes what has arrived of other versions of a model that is complete now.
fn clear_others(store: &std::path::Path, done: &Manifest) {
    let unfinished = models::arrival::unfinished(store);
    let others = unfinished.iter().filter(|it| it.id() == done.id());
    for other in others {
        // Nothing is written, so free space on the disk does not matter.
        let cleared = Arrival::open(store, other, &|_| Ok(u64::MAX)).and_then(Arrival::abandon);
        if let Err(error) = cleared {
            tracing::warn!(model = %done.id(), %error, "what is left of a transfer cannot be removed");
        }
    }
}

/// Makes the found peers that have the fetched files sources of the fetch.
fn take_matching(found: &mut Vec<Source>, fetch: &mut Fetch) {
    found.retain(|found| match &found.form {
        ModelForm::Pieces(manifest) if manifest.same_content(&fetch.manifest) => {
            fetch.join(Arc::clone(&found.link));
            false
        }
        _ => !found.link.is_closed(),
    });
}

/// The failure of a background task, which ends early only if the program does.
pub(super) fn stopped() -> Failure {
    Failure::new("lost", "the server is stopping")
}
