//! Polls a server for the list that is shown, and changes its keys.

use std::time::Duration;

use client::{Warren, admin::CreateKey, server::UsageRequest};
use tokio::{
    sync::mpsc::Sender,
    time::{MissedTickBehavior, interval},
};

use super::soon;
use crate::app::{
    event::Event,
    pages::{Page, PageNews, SINCE},
};

/// How often the server is polled.
const EVERY: Duration = Duration::from_secs(3);

/// How often the server is polled for usage, which it has to sum up.
const SUMS: Duration = Duration::from_secs(10);

/// Polls until the interface has ended.
pub(super) async fn run(server: Warren, follow: u64, page: Page, events: Sender<Event>) {
    let mut every = interval(if matches!(page, Page::Usage(_)) { SUMS } else { EVERY });
    // A slow server is not polled several times at once to make up for missed polls.
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let news = ask(&server, page).await;
        if events.send(Event::Page { follow, news: Box::new(news) }).await.is_err() {
            return;
        }
    }
}

async fn ask(server: &Warren, page: Page) -> PageNews {
    let url = &server.url();
    match page {
        Page::Mesh => PageNews::Mesh(soon(url, server.mesh_peers()).await),
        Page::Usage(by) => {
            let since = Some(SINCE.to_owned());
            let request = UsageRequest { by: vec![by], since, ..UsageRequest::default() };
            PageNews::Usage(soon(url, server.usage(&request)).await)
        }
        Page::Keys => PageNews::Keys(soon(url, server.keys()).await),
    }
}

/// Makes a key for inference.
pub(super) async fn make_key(server: Warren, name: String) -> PageNews {
    let key = CreateKey { name, ..CreateKey::default() };
    PageNews::KeyMade(soon(&server.url(), server.create_key(&key)).await)
}

/// Revokes a key.
pub(super) async fn revoke_key(server: Warren, id: String) -> PageNews {
    PageNews::KeyRevoked(soon(&server.url(), server.revoke_key(&id)).await)
}
