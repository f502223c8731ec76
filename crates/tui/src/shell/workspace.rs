//! Polls a server for its workspace: after each event, and now and then.
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
use crate::app::{event::Event, workspace::WorkspaceReport};

/// The longest time between two polls: not every change is an event.
const EVERY: Duration = Duration::from_secs(3);

/// The least time between two polls, also while events come fast.
const APART: Duration = Duration::from_millis(300);

/// Delays before a server is tried again.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));

/// Polls until the interface has ended.
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

/// The interface has ended.
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

    /// Polls until the interface has ended, or the connection is lost.
    async fn follow(&mut self, mut workspace: Workspace) -> Result<(), ClientError> {
        loop {
            let cluster = soon(&self.url, workspace.cluster_status()).await?;
            let sessions = soon(&self.url, workspace.sessions(false)).await?;
            let begun = Instant::now();
            if self.tell(Ok(WorkspaceReport { cluster, sessions })).await.is_err() {
                return Ok(());
            }
            tokio::select! {
                happened = happens(&mut workspace) => {
                    happened?;
                    // Events meanwhile are part of the next answer.
                    sleep_until(begun + APART).await;
                }
                () = sleep_until(begun + EVERY) => {}
            }
        }
    }

    async fn tell(&self, came: Result<WorkspaceReport, ClientError>) -> Result<(), Unheard> {
        let news = Event::Workspace { watch: self.watch, came: Box::new(came) };
        self.events.send(news).await.map_err(|_| Unheard)
    }
}

/// Waits for the next message that the server sends on its own.
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
