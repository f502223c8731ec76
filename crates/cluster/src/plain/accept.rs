//! Links that plain peers open.

use std::sync::Arc;

use base::ClientAddress;
use tokio::sync::OwnedSemaphorePermit;
use wire::{Limits, Upgrade};

use super::{greeting, link};
use crate::shared::Shared;

/// The most links that have not greeted yet.
pub(crate) const MOST_STRANGERS: usize = 64;

/// Runs a link that a plain peer opens, in a task of its own.
pub(crate) fn accept(
    shared: &Arc<Shared>,
    upgrade: Upgrade,
    place: OwnedSemaphorePermit,
    from: ClientAddress,
) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        // An error is a peer that left before the link stood.
        let Ok((link, outbox)) = upgrade.link_within(Limits::default()).await else { return };
        let greeted = greeting::answer(&shared, link, outbox).await;
        drop(place);
        match greeted {
            Ok(greeted) => drop(link::run(&shared, greeted).await),
            Err(error) => {
                shared.strangers.failed(from);
                let error = base::error::chain(&error);
                tracing::warn!(%from, error, "a plain peer's link was refused");
            }
        }
    });
}
