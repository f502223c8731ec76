//! The facts that this server reports to its fellows about itself, kept true.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use fleet::members;
use scheduler::{Announcement, LeaveReason, Observer};
use tokio::sync::{Notify, mpsc};

use crate::{
    clock::now,
    facts::{EncodedFacts, Facts},
    membership::Heard,
    node::Node,
};

/// How often the own workers are looked at, beside each time that one comes, changes or goes.
const LOOK: Duration = Duration::from_millis(500);

/// How often the use of the workers is reported again.
const TOLD_AGAIN: Duration = Duration::from_secs(2);

/// How long nothing strange must come until it is forgotten.
const QUIET: Duration = Duration::from_secs(10);

/// An observer of the scheduler that tells when its workers change. Give it to the scheduler.
#[derive(Debug, Clone, Default)]
pub struct Announcements(Arc<Notify>);

impl Observer for Announcements {
    fn announced(&self, _: &Announcement<'_>) {
        self.0.notify_one();
    }

    fn left(&self, _: base::ProviderId, _: LeaveReason) {
        self.0.notify_one();
    }
}

/// Keeps the facts about this server true.
pub(crate) struct Own {
    pub(crate) node: Arc<Node>,
    pub(crate) version: &'static str,
    pub(crate) url: Option<String>,
    pub(crate) announcements: Announcements,
    pub(crate) heard: mpsc::Sender<Heard>,
}

impl Own {
    /// The facts of now.
    pub(crate) fn facts(&self) -> Facts {
        Facts::of(self.version, self.url.clone(), self.node.look())
    }

    /// Follows the own workers, for ever.
    pub(crate) async fn keep(self) {
        let (mut sent, mut sent_at) = (Facts::default(), now());
        let mut strange = (self.node.trouble.strange(), now());
        loop {
            let facts = self.facts();
            let is_news = !facts.is_like(&sent) || (facts != sent && now() >= sent_at + TOLD_AGAIN);
            if is_news {
                (sent, sent_at) = (facts.clone(), now());
                let encoded = EncodedFacts::new(facts);
                if encoded.facts.left_out > 0 {
                    tracing::warn!(
                        left_out = encoded.facts.left_out,
                        "fellows are not told of all workers: the list is too long"
                    );
                }
                if self.heard.send(members::Input::Facts(encoded)).await.is_err() {
                    return;
                }
            }
            self.forget_strangers(&mut strange);
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.announcements.0.notified() => {}
            }
        }
    }

    fn forget_strangers(&self, (seen, since): &mut (u64, Instant)) {
        let strange = self.node.trouble.strange();
        if strange != *seen {
            (*seen, *since) = (strange, now());
        } else if now() >= *since + QUIET {
            self.node.trouble.forget_strangers();
        }
    }
}
