//! Asks a server for its workspace: when something happens in it, and now and then.
//!
//! It runs only while the workspace is shown: a server starts its workspace for its first client.

use std::time::Duration;

use base::Backoff;
use client::{ClientError, Warren, Workspace};
use tokio::{
    sync::mpsc::Sender,
    time::{Instant, sleep, sleep_until},
};

use super::soon;
use crate::app::{event::Event, workspace::Told};

/// How often it is asked at least: not every change is an event.
const EVERY: Duration = Duration::from_secs(3);

/// How long one answer is good for, whatever happens meanwhile.
const APART: Duration = Duration::from_millis(300);

/// Delays before a server is tried again.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));

/// Asks until nobody listens any more.
pub(super) async fn run(server: Warren, watch: u64, events: Sender<Event>) {
    let mut retry = RETRY;
    let mut watcher = Watcher { url: server.url(), watch, events };
    loop {
        let error = match watcher.connect(&server).await {
            Ok(workspace) => {
                retry.reset();
                match watcher.follow(workspace).await {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        if watcher.tell(Err(error)).await.is_err() {
            return;
        }
        sleep(retry.next(rand::random())).await;
    }
}

/// Nobody listens any more.
struct Unheard;

struct Watcher {
    url: String,
    watch: u64,
    events: Sender<Event>,
}

impl Watcher {
    async fn connect(&self, server: &Warren) -> Result<Workspace, ClientError> {
        let address = server.workspace()?;
        soon(&self.url, Workspace::connect(&address)).await
    }

    /// Until nobody listens any more, or the connection is lost.
    async fn follow(&mut self, mut workspace: Workspace) -> Result<(), ClientError> {
        loop {
            let cluster = soon(&self.url, workspace.cluster_status()).await?;
            let sessions = soon(&self.url, workspace.sessions(false)).await?;
            let asked = Instant::now();
            if self.tell(Ok(Told { cluster, sessions })).await.is_err() {
                return Ok(());
            }
            tokio::select! {
                happened = happens(&mut workspace) => {
                    happened?;
                    // What happens meanwhile is in the next answer.
                    sleep_until(asked + APART).await;
                }
                () = sleep_until(asked + EVERY) => {}
            }
        }
    }

    async fn tell(&self, came: Result<Told, ClientError>) -> Result<(), Unheard> {
        let news = Event::Workspace { watch: self.watch, came: Box::new(came) };
        self.events.send(news).await.map_err(|_| Unheard)
    }
}

/// Waits until the server says anything on its own.
async fn happens(workspace: &mut Workspace) -> Result<(), ClientError> {
    match workspace.next().await? {
        Some(_) => Ok(()),
        None => {
            let (url, reason) =
                (workspace.server().to_owned(), "it closed the connection".to_owned());
            Err(ClientError::Unreachable { url, reason })
        }
    }
}
