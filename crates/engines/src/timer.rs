//! Wakes the planner at its deadlines.

use std::{future::pending, sync::Weak};

use tokio::time::sleep_until;

use crate::shared::Shared;

/// Runs until the model engines are dropped.
pub(crate) async fn run(shared: Weak<Shared>) {
    while let Some(strong) = shared.upgrade() {
        let (next, wake) = (strong.next_timeout(), strong.wake());
        drop(strong);
        tokio::select! {
            () = wake.notified() => {}
            () = async { match next {
                Some(at) => sleep_until(at.into()).await,
                None => pending().await,
            } } => {}
        }
    }
}
