//! One job: the backend is asked, its answer becomes frames of the link.

use protocol::relay::JobFailure;
use tokio::sync::oneshot;

use crate::{
    lent::{LentBackend, LoadGuard},
    order::Order,
    reply::{Reply, ReplyError},
};

/// A job in its own task. Dropping it closes the backend's connection at once.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) order: Order,
    pub(crate) lent: LoadGuard,
    pub(crate) reply: Reply,
    /// Brings the reason to stop, if there is one.
    pub(crate) stop: oneshot::Receiver<JobFailure>,
}

impl Job {
    /// Runs to the end, and tells the server how it ended: exactly once, and nothing after it.
    pub(crate) async fn run(self) {
        let Self { order, lent, mut reply, stop } = self;
        let request_id = order.request_id.clone();
        let ending = tokio::select! {
            // A cancellation wins over an answer that is ready: nobody would read it.
            biased;
            why = told_to_stop(stop) => Err(ReplyError::Failed(why)),
            done = serve(order, &lent, &mut reply) => done,
        };
        if let Err(ReplyError::Failed(failure)) = ending {
            tracing::debug!(request_id, code = %failure.code, "{}", failure.message);
            reply.fail(failure);
        }
    }
}

async fn serve(mut order: Order, lent: &LentBackend, reply: &mut Reply) -> Result<(), ReplyError> {
    // Several servers may send more than the backend takes at once: the rest waits here.
    let _slot = lent.slot().await;
    let mut answer = lent.send(&mut order).await?;
    reply.head(answer.status, answer.headers).await?;
    while let Some(bytes) = answer.body.next().await {
        let bytes = bytes?;
        lent.count_bytes(bytes.len());
        reply.chunk(bytes).await?;
    }
    reply.end().await?;
    lent.count_answer();
    Ok(())
}

async fn told_to_stop(stop: oneshot::Receiver<JobFailure>) -> JobFailure {
    match stop.await {
        Ok(why) => why,
        // Nobody is left who could stop it.
        Err(_) => std::future::pending().await,
    }
}
