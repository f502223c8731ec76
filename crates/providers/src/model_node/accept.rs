//! From an HTTP request to a link, or to a close code.

use access::{Denied, Lender, Moment};
use http::{HeaderValue, Request, Response, header};
use protocol::{
    node::{self, BadQuery, Query, close},
    openai,
};
use wire::{Link, Outbox, Upgrade, UpgradeError};

use super::{ModelNodes, link};

/// Why a node is not let in.
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
    /// Answers a request for an upgrade whose query is a node's: `101` and a link of its own task,
    /// which is closed at once when the query is not in order. A request that is no proper upgrade
    /// is refused before that.
    pub fn connect<B>(&self, request: &mut Request<B>) -> Response<String> {
        let upgrade = match Upgrade::new(request, &[]) {
            Ok(upgrade) => upgrade,
            Err(error) => return refuse(error),
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

    /// Serves a link until it ends. `query`: what the node says of itself, without its `?`.
    pub async fn serve(&self, link: Link, outbox: Outbox, query: &str) {
        match self.admit(query) {
            Ok((query, lender)) => link::run(self, link, outbox, query, &lender).await,
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
}

fn refuse(error: UpgradeError) -> Response<String> {
    let body = openai::error_body(&error.to_string(), "invalid_request_error", None, None);
    let mut response = Response::new(body);
    *response.status_mut() = error.status();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
