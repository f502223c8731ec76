//! Fetches the files of a model, whatever the network does: cut connections go on where they broke off, slow ones
//! are given up, and a file that comes damaged is fetched once more.

use std::{sync::Arc, time::Duration};

use base::{Backoff, Pace};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header::CONTENT_RANGE};
use http_body_util::BodyExt;
use models::{
    ArrivalError, Tree,
    arrival::{Download, FileDownload},
};
use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep, timeout},
};

use crate::{
    Hub, HubError, HubFile, Listing,
    hub::etag,
    request::{Answer, From},
};

/// How many reads of the network may wait for the disk.
const WAITING: usize = 32;

/// How much must have come before the count of tries is set back, in bytes.
const ENOUGH: u64 = 64 << 10;

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of all files that are there.
    pub bytes: u64,
    /// Bytes of all files.
    pub total: u64,
    /// The file that is being fetched.
    pub file: String,
    /// Why it stopped and is tried again, until it goes on.
    pub trouble: Option<String>,
}

/// Fetches all files of a download: `files[n]` is its file of that number. `on_progress` hears of every few bytes.
///
/// # Errors
///
/// [`HubError`], after several tries where that may help. What has arrived stays in the download.
pub async fn fetch(
    hub: &Hub,
    listing: &Listing,
    files: &[HubFile],
    download: Download,
    on_progress: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Download, HubError> {
    let (total, download) = (download.total(), Arc::new(download));
    let mut before = 0;
    let mut trees = Vec::new();
    for (number, file) in (0..).zip(files) {
        let progress = Progress { bytes: before, total, file: file.path.clone(), trouble: None };
        let mut fetching = Fetching { hub, listing, file, before, progress, on_progress };
        trees.push((number, fetching.whole(&download, number).await?));
        before += file.size;
    }
    // Each file's writer has ended.
    let Some(mut download) = Arc::into_inner(download) else {
        let reason = "a file is still being written".to_owned();
        return Err(HubError::Strange { host: hub.host(), reason });
    };
    trees.into_iter().for_each(|(number, tree)| download.keep(number, tree));
    Ok(download)
}

/// One file, being fetched.
struct Fetching<'a> {
    hub: &'a Hub,
    listing: &'a Listing,
    file: &'a HubFile,
    /// Bytes of the files before it.
    before: u64,
    progress: Progress,
    on_progress: &'a mut (dyn FnMut(&Progress) + Send),
}

impl Fetching<'_> {
    /// Fetches it until its hash is right; once more when it was not.
    async fn whole(&mut self, download: &Arc<Download>, number: u32) -> Result<Tree, HubError> {
        for _ in 0..2 {
            let from = Arc::clone(download);
            let file = joined(spawn_blocking(move || from.begin(number))).await?;
            let mut writer = Writer::start(file);
            self.tell(writer.sent);
            let fetched = self.bytes(&mut writer).await;
            // What the disk says comes first: it is why nothing more could be sent to it.
            let file = writer.end().await?;
            fetched?;
            match joined(spawn_blocking(move || file.finish())).await {
                Err(HubError::Arrival(ArrivalError::Altered { .. })) => {
                    self.trouble("it came damaged, and is fetched again".to_owned());
                }
                done => return done,
            }
        }
        Err(HubError::Damaged { file: self.file.path.clone() })
    }

    /// Fetches what is missing, try after try.
    async fn bytes(&mut self, writer: &mut Writer) -> Result<(), HubError> {
        let patience = self.hub.patience;
        let mut pauses = Backoff::new(patience.first_pause, patience.last_pause);
        let (mut tries, mut good, mut etag) = (0, writer.sent, None);
        while writer.sent < self.file.size {
            let Err(error) = self.attempt(writer, &mut etag).await else { continue };
            if writer.sent >= good + ENOUGH {
                (tries, good) = (0, writer.sent);
                pauses.reset();
            }
            tries += 1;
            if !error.may_pass() || tries >= patience.tries || writer.is_closed() {
                return Err(error);
            }
            self.trouble(error.to_string());
            let pause = pauses.next(rand::random());
            let wait = if let HubError::Busy { after, .. } = error { after } else { None };
            sleep(wait.unwrap_or(Duration::ZERO).max(pause)).await;
        }
        Ok(())
    }

    /// One connection: until the file is whole, or the connection breaks.
    async fn attempt(
        &mut self,
        writer: &mut Writer,
        known: &mut Option<HeaderValue>,
    ) -> Result<(), HubError> {
        let from = From { offset: writer.sent, etag: known.clone(), until: None };
        let answer = self.hub.open(self.listing, self.file, &from).await?;
        if !self.goes_on(&answer, writer.sent)? {
            writer.restart().await;
        }
        *known = etag(answer.response.headers());
        let mut body = answer.response.into_body();
        let mut pace = Pace::new(crate::Patience::RATE, self.hub.patience.stall);
        while writer.sent < self.file.size {
            let began = Instant::now();
            let bytes = match timeout(pace.left(), body.frame()).await {
                Err(_) => return Err(self.cut(writer, "it comes too slowly, or not at all")),
                Ok(None) => return Err(self.cut(writer, "the connection ended")),
                Ok(Some(Err(error))) => return Err(self.cut(writer, &error.to_string())),
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            pace.came(bytes.len(), began.elapsed());
            let room = self.file.size - writer.sent;
            let bytes = bytes.slice(..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            if !writer.send(bytes).await {
                return Err(self.cut(writer, "the disk takes no more"));
            }
            self.progress.trouble = None;
            self.tell(writer.sent);
        }
        Ok(())
    }

    /// Whether an answer begins where it was asked to; `false` when it begins at the beginning.
    fn goes_on(&self, answer: &Answer, offset: u64) -> Result<bool, HubError> {
        let strange = |reason: String| HubError::Strange { host: answer.host.clone(), reason };
        let said = answer.response.headers().get(CONTENT_RANGE);
        let said = said.and_then(|range| range.to_str().ok()).unwrap_or_default();
        match answer.response.status() {
            StatusCode::PARTIAL_CONTENT => match range(said) {
                Some((begin, size))
                    if begin == offset && size.is_none_or(|size| size == self.file.size) =>
                {
                    Ok(true)
                }
                _ => Err(strange(format!("asked for bytes from {offset} on, it sends {said}"))),
            },
            StatusCode::RANGE_NOT_SATISFIABLE => {
                Err(HubError::Changed { file: self.file.path.clone() })
            }
            StatusCode::OK => match answer.response.headers().get(http::header::CONTENT_LENGTH) {
                Some(length) if length.as_bytes() != self.file.size.to_string().as_bytes() => {
                    Err(HubError::Changed { file: self.file.path.clone() })
                }
                _ => Ok(offset == 0),
            },
            status => Err(strange(format!("it answers {status}"))),
        }
    }

    fn cut(&self, writer: &Writer, reason: &str) -> HubError {
        HubError::Cut {
            file: self.file.path.clone(),
            arrived: writer.sent,
            size: self.file.size,
            reason: reason.to_owned(),
        }
    }

    fn tell(&mut self, arrived: u64) {
        self.progress.bytes = self.before + arrived;
        (self.on_progress)(&self.progress);
    }

    fn trouble(&mut self, trouble: String) {
        tracing::debug!(file = self.file.path, trouble, "fetched again");
        self.progress.trouble = Some(trouble);
        (self.on_progress)(&self.progress);
    }
}

/// Writes a file in a thread of its own, so that network, hashes and disk do not wait for each other.
struct Writer {
    sender: mpsc::Sender<Order>,
    writing: JoinHandle<Result<FileDownload, ArrivalError>>,
    /// Where the next byte goes.
    sent: u64,
}

enum Order {
    Write(Bytes),
    Restart,
}

impl Writer {
    fn start(mut file: FileDownload) -> Self {
        let (sender, mut orders) = mpsc::channel(WAITING);
        let sent = file.arrived();
        let writing = spawn_blocking(move || {
            while let Some(order) = orders.blocking_recv() {
                match order {
                    Order::Write(bytes) => file.write(&bytes)?,
                    Order::Restart => file.restart()?,
                }
            }
            Ok(file)
        });
        Self { sender, writing, sent }
    }

    /// Whether it could be sent.
    async fn send(&mut self, bytes: Bytes) -> bool {
        self.sent += bytes.len() as u64;
        self.sender.send(Order::Write(bytes)).await.is_ok()
    }

    async fn restart(&mut self) {
        self.sent = 0;
        // A writer that has ended is noticed by the next bytes.
        let _ended = self.sender.send(Order::Restart).await;
    }

    fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    async fn end(self) -> Result<FileDownload, HubError> {
        drop(self.sender);
        joined(self.writing).await
    }
}

async fn joined<T>(task: JoinHandle<Result<T, ArrivalError>>) -> Result<T, HubError> {
    match task.await {
        Ok(done) => Ok(done?),
        Err(error) => {
            let reason = format!("writing broke off: {error}");
            Err(HubError::Strange { host: "this machine".to_owned(), reason })
        }
    }
}

/// `bytes BEGIN-END/SIZE`: where it begins, and the whole size where that is given.
fn range(said: &str) -> Option<(u64, Option<u64>)> {
    let (range, size) = said.strip_prefix("bytes ")?.split_once('/')?;
    let (begin, _) = range.split_once('-')?;
    Some((begin.parse().ok()?, size.parse().ok()))
}

impl Hub {
    /// Asks again for what is no file, as long as that may help.
    pub(crate) async fn retry<T, F>(&self, ask: impl Fn() -> F) -> Result<T, HubError>
    where
        F: Future<Output = Result<T, HubError>>,
    {
        let mut pauses = Backoff::new(self.patience.first_pause, self.patience.last_pause);
        for _ in 1..self.patience.tries {
            match ask().await {
                Err(error) if error.may_pass() => {
                    let wait = if let HubError::Busy { after, .. } = error { after } else { None };
                    let pause = pauses.next(rand::random());
                    sleep(wait.unwrap_or(Duration::ZERO).max(pause)).await;
                }
                done => return done,
            }
        }
        ask().await
    }
}
