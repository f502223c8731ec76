//! `warren mesh pull --serve`: lends the fetched model.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use anyhow::bail;
use client::Warren;
use daemon::{ServeOptions, options::WorkerOptions};
use models::{offer::Sources, shelf::Shelf};
use tokio::time::{Instant, sleep};

use crate::commands::{note, table::plain, worker::lend};

/// The time in which a server with model engines has to offer a model that has arrived.
const OFFERED_WITHIN: Duration = Duration::from_secs(10);

/// The interval of checks whether the server offers the model.
const LOOK: Duration = Duration::from_millis(500);

/// Waits until the server offers the model in this directory; if it does not, lends it from here until a stop.
pub(super) async fn serve(
    place: &Path,
    warren: &Warren,
    options: WorkerOptions,
    process: ServeOptions,
) -> anyhow::Result<()> {
    if !warren.is_on_this_machine() || !place.is_dir() {
        bail!("--serve is for the server of this machine: the files are on another one");
    }
    let mut shelf = Shelf::new(vec![place.to_owned()], Sources::default());
    let until = Instant::now() + OFFERED_WITHIN;
    let mut names = Vec::new();
    while Instant::now() < until {
        let scan = shelf.scan(SystemTime::now());
        names = scan.models.iter().map(|model| model.name.clone()).collect();
        let is_arriving = scan.passed_over.iter().any(|it| it.is_arriving);
        if names.is_empty() && !is_arriving {
            bail!("{} has no GGUF file that could be served", plain(&place.display().to_string()));
        }
        let offered = warren.model_ids().await?;
        if let Some(name) = names.iter().find(|name| offered.contains(name)) {
            note(&format!("{} is served by {}", plain(name), warren.url()));
            return Ok(());
        }
        sleep(LOOK).await;
    }
    let what = plain(&names.join(", "));
    note(&format!("{what}: lent to {} until you stop this command", warren.url()));
    let options = WorkerOptions {
        gguf: Some(vec![place.to_owned()]),
        server: Some(vec![warren.url()]),
        models: None,
        backend: None,
        backends: None,
        demo: None,
        ..options
    };
    lend(options, process, Vec::new()).await
}
