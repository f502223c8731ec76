//! The life of one link: keep-alive, replacement, end.

use std::{pin::pin, sync::Arc, time::Duration};

use access::Lender;
use base::{Endpoint, Endpoints, ModelName, ProviderId, Scope};
use protocol::node::{Query, close};
use rand::RngExt;
use scheduler::{Distance, Gone, Offer, Provider};
use tokio::time::{Instant, sleep};
use tracing::Instrument;
use wire::{Link, Outbox};

use super::{
    ModelNodes,
    names::Place,
    sender::Sender,
    session::{MAX_TASK, Session},
};

/// A node that has work and is silent for so long is lost. It sends a sign of life every 10 s.
const SILENCE: Duration = Duration::from_secs(35);

/// A node without work may be silent for so long: those that send no sign of life while they have
/// nothing to do are not held against it for a while, but a dead connection is not kept for ever.
const IDLE_SILENCE: Duration = Duration::from_secs(300);

/// Why a link ends, and what its close says.
type End = (Gone, (u16, &'static str));

/// Serves a node that has been let in, until its link ends.
pub(super) async fn run(
    nodes: &ModelNodes,
    link: Link,
    outbox: Outbox,
    query: Query,
    lender: &Lender,
) {
    let id = ProviderId::from_random(rand::rng().random());
    let Query { name, model, max_concurrency, .. } = query;
    let span = tracing::info_span!("node", id = %id, node_name = name, model);
    let serving = async {
        let place = nodes.names.take(&model, &name);
        tracing::info!(max_concurrency, "node connected");
        let sender = Arc::new(Sender::new(name));
        let provider: Arc<dyn Provider> = Arc::<Sender>::clone(&sender);
        let membership = nodes.scheduler.join(id, offer(&model, max_concurrency), provider);
        let session = Session::new(membership, outbox, Arc::clone(&nodes.numbers));
        serve(link, session, &sender, &place, lender).await;
    };
    serving.instrument(span).await;
}

fn offer(model: &str, max_concurrent: u32) -> Offer {
    Offer {
        scope: Scope::server(),
        models: vec![ModelName::from(model)],
        max_concurrent,
        load: 0,
        max_size: MAX_TASK as u64,
        endpoints: Endpoints::only(Endpoint::ChatCompletions),
        distance: Distance::Here,
        lingers: false,
    }
}

async fn serve(
    mut link: Link,
    mut session: Session,
    sender: &Sender,
    place: &Place,
    lender: &Lender,
) {
    let (why, (code, reason)) = tokio::select! {
        biased;
        () = place.taken() => (Gone::Closed, close::REPLACED),
        () = lender.ended() => (Gone::Closed, close::INVALID_TOKEN),
        end = until_end(&mut link, &mut session, sender) => end,
    };
    tracing::info!(reason, close = ?link.close_reason(), "node disconnected");
    // Its jobs first: they should not wait for a goodbye.
    session.leave(sender.notes.take(), why);
    link.close(code, reason).await;
}

async fn until_end(link: &mut Link, session: &mut Session, sender: &Sender) -> End {
    let mut silence = pin!(sleep(SILENCE));
    loop {
        tokio::select! {
            biased;
            () = sender.notes.woken() => {
                if session.notes(sender.notes.take()) {
                    return (Gone::Drained, close::NORMAL);
                }
            }
            frame = link.next() => match frame {
                Ok(Some(frame)) => session.frame(frame),
                Ok(None) => return (Gone::Closed, close::NORMAL),
                Err(error) => {
                    tracing::warn!(%error, "the node's link broke");
                    return (Gone::Closed, close::BROKEN);
                }
            },
            () = &mut silence => {
                let lost = lost_at(session.busy(), link.heard());
                if lost <= Instant::now() {
                    return (Gone::HeartbeatLost, close::SILENT);
                }
                // It may get work meanwhile, and is lost no earlier than this.
                silence.as_mut().reset(lost.min(Instant::now() + SILENCE));
            }
        }
    }
}

/// When a node is lost, if it says nothing until then.
fn lost_at(busy: Option<Instant>, heard: Instant) -> Instant {
    match busy {
        Some(since) => since.max(heard) + SILENCE,
        None => heard + IDLE_SILENCE,
    }
}
