//! `warren stop`: ends a server that runs.

use std::{path::PathBuf, time::Duration};

use anyhow::bail;
use clap::Args;
use client::{
    Warren,
    admin::stop::{StopProgress, StopRequest},
};
use daemon::{ConfigFile, data::is_in_use};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::{farewell, note, run_client, say, say_json, target::RunningServer};

/// The interval of checks whether the server is gone.
const LOOK: Duration = Duration::from_millis(50);

/// The longest time in which a server has to end once it waits for nothing more.
const END_WITHIN: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "Examples:
  warren stop
  warren stop --now                  (end the answers that run, too)
  warren stop --keep-sessions        (terminals and agents go on for the next server)
  warren stop --server https://warren.example --admin-token TOKEN";

/// Stop a server: it takes nothing new, finishes the answers that run, and ends
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Stop {
    /// End the answers that run, too
    #[arg(long)]
    now: bool,
    /// Let terminals and agents go on for a while, for the next server with the same data
    #[arg(long)]
    keep_sessions: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Stop {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        run_client(self.stop(file))
    }

    async fn stop(&self, file: &ConfigFile) -> anyhow::Result<()> {
        let warren = self.server.warren(&file.serve)?;
        let directory = self.directory(file, &warren);
        let began = Instant::now();
        let first = self.drained(&warren).await?;
        if timeout(END_WITHIN, gone(&warren, directory)).await.is_err() {
            bail!("the server {} waits for nothing more, and still runs", warren.url());
        }
        if !self.json {
            return Ok(say(&format!("The server {} has ended.", warren.url()))?);
        }
        let StopProgress { answers, terminals, agents, keep_sessions_secs, .. } = first;
        let waited_secs = began.elapsed().as_secs_f64();
        Ok(say_json(&json!({
            "url": warren.url(), "stopped": true, "waited_secs": waited_secs,
            "answers": answers, "terminals": terminals, "agents": agents,
            "keep_sessions_secs": keep_sessions_secs,
        }))?)
    }

    /// Asks the server to end, and shows what it waits for until it waits for nothing. Returns the first progress.
    async fn drained(&self, warren: &Warren) -> anyhow::Result<StopProgress> {
        let mut stopping =
            warren.stop(StopRequest { now: self.now, keep_sessions: self.keep_sessions }).await?;
        let mut first = None;
        while let Some(progress) = stopping.next().await? {
            self.tell(&progress, first.is_none());
            first.get_or_insert(progress);
        }
        Ok(first.unwrap_or_default())
    }

    fn tell(&self, progress: &StopProgress, is_first: bool) {
        if self.json {
            return;
        }
        if progress.answers > 0 && !progress.drained {
            let hint = if is_first { "; `warren stop --now` ends all" } else { "" };
            note(&format!("{}{hint}", farewell::running(progress.answers)));
        }
        if let Some(words) = farewell::sessions(progress).filter(|_| is_first) {
            note(&words);
        }
    }

    /// The server's data directory, if it is this machine's.
    fn directory(&self, file: &ConfigFile, warren: &Warren) -> Option<PathBuf> {
        let lookup = self.server.lookup(&file.serve);
        let is_own = lookup.running()?.urls.contains(&warren.url());
        lookup.directory().ok().filter(|_| is_own)
    }
}

/// Waits until the server is gone: until it no longer uses its data directory or, on another machine, no
/// longer answers.
async fn gone(warren: &Warren, directory: Option<PathBuf>) {
    loop {
        let is_there = match &directory {
            Some(directory) => is_in_use(directory),
            None => warren.health().await.is_ok(),
        };
        if !is_there {
            return;
        }
        sleep(LOOK).await;
    }
}
