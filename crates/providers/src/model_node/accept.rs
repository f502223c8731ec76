//! Turns an HTTP request into a registered node, or refuses it with a close code.

use std::sync::Arc;

use access::{Denied, Lender, Moment};
use base::{Endpoint, Endpoints, ModelName, ProviderId, Scope};
use http::{HeaderValue, Request, Response};
use protocol::node::{self, BadQuery, Query, close};
use rand::RngExt;
use scheduler::{Distance, Offer, Provider};
use tracing::Instrument;
use wire::{Link, Outbox, Upgrade};

use super::{
    ModelNodes, Name,
    codec::{MAX_TASK, NodeCodec},
};
use crate::{
    claims::Claim,
    link::{Close, Permit, drive},
    notes::Sender,
    refusal::refuse_link,
};

/// Why a node is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("{0}")]
    Query(#[from] BadQuery),
    #[error("the token of {name:?}, a node of {model:?}: {denied}")]
    Token { name: String, model: String, denied: Denied },
}

impl Refusal {
    fn close(self) -> (u16, String) {
        match self {
            Self::Query(bad) => (close::BAD_QUERY, bad.to_string()),
            Self::Token { .. } => (close::INVALID_TOKEN.0, close::INVALID_TOKEN.1.to_owned()),
        }
    }
}

impl ModelNodes {
    /// Answers an upgrade request with a node's query: `101`, and a link with its own task. On a
    /// bad query the task closes the link at once. An invalid upgrade request is refused before the
    /// upgrade.
    pub fn connect<B>(&self, request: &mut Request<B>) -> Response<String> {
        let upgrade = match Upgrade::new(request, &[]) {
            Ok(upgrade) => upgrade,
            Err(error) => {
                let words = error.to_string();
                return refuse_link(error.status(), &words, "invalid_request_error");
            }
        };
        let query = request.uri().query().unwrap_or_default().to_owned();
        let mut response = upgrade.response();
        response.headers_mut().insert(node::WARREN, HeaderValue::from_static("1"));
        let nodes = self.clone();
        self.links.spawn(async move {
            match upgrade.link().await {
                Ok((link, outbox)) => nodes.serve(link, outbox, &query).await,
                Err(error) => tracing::debug!(%error, "a node left before its link stood"),
            }
        });
        response
    }

    /// Serves a link until it ends. `query`: the node's self-description, without its `?`.
    pub async fn serve(&self, link: Link, outbox: Outbox, query: &str) {
        match self.admit(query) {
            Ok((query, lender)) => self.run(link, outbox, query, lender).await,
            Err(refusal) => {
                tracing::warn!(why = %refusal, "a node was turned away");
                let (code, reason) = refusal.close();
                link.close(code, &reason).await;
            }
        }
    }

    fn admit(&self, query: &str) -> Result<(Query, Lender), Refusal> {
        let query = Query::parse(query)?;
        let lender = self.settings.lenders.admit(query.token.expose(), Moment::now());
        match lender {
            Ok(lender) => Ok((query, lender)),
            Err(denied) => Err(Refusal::Token { name: query.name, model: query.model, denied }),
        }
    }

    async fn run(&self, link: Link, outbox: Outbox, query: Query, lender: Lender) {
        let id = ProviderId::from_random(rand::rng().random());
        let Query { name, model, max_concurrency, .. } = query;
        let span = tracing::info_span!("node", id = %id, node_name = name, model);
        let serving = async {
            // The claim comes before the log line: it ends the older link of the same node.
            let claim = self.names.take_over((model.clone(), name.clone()));
            tracing::info!(max_concurrency, "node connected");
            let sender = Arc::new(Sender::new(name, None));
            let provider: Arc<dyn Provider> = Arc::<Sender>::clone(&sender);
            let membership = self.scheduler.join(id, offer(&model, max_concurrency), provider);
            let codec = NodeCodec::new(membership, outbox, Arc::clone(&self.numbers));
            drive(link, codec, &sender.notes, NodePermit { claim, lender }).await;
        };
        serving.instrument(span).await;
    }
}

/// The permit of a node: it ends when a newer link takes its name, or when its key ends.
struct NodePermit {
    claim: Claim<Name>,
    lender: Lender,
}

impl Permit for NodePermit {
    async fn ended(&self) -> Close {
        tokio::select! {
            biased;
            () = self.claim.contested() => close::REPLACED,
            () = self.lender.ended() => close::INVALID_TOKEN,
        }
    }
}

fn offer(model: &str, max_concurrent: u32) -> Offer {
    Offer {
        scope: Scope::server(),
        models: vec![ModelName::from(model)],
        unloaded: Vec::new(),
        max_concurrent,
        load: 0,
        max_size: MAX_TASK as u64,
        endpoints: Endpoints::only(Endpoint::ChatCompletions),
        distance: Distance::Here,
        lingers: false,
        acknowledges: false,
        borrowed: false,
    }
}
