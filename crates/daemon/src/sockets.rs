//! Decides which part gets a WebSocket on the path that several protocols share.
//!
//! On [`PATH`], a query with `token`, `model` or `max_concurrency` is that of a model node, and one with only `node`
//! that of a mesh peer. Without any of them, the client is one of the workspace. On any other path, an upgrade counts
//! as that of a model node only if its query has all four parameters: then it is redirected to [`PATH`].

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{StatusCode, Uri, header, uri::PathAndQuery};
use protocol::node::Parameters;
use providers::ModelNodes;

use crate::{
    peering::Relay,
    workspace_part::{NO_WORKSPACE, WorkspacePart},
};

/// The path that the protocols share.
pub(crate) const PATH: &str = "/ws";

/// Redirects a stock model node, which may dial any path, to [`PATH`]. Requests without an upgrade stay as they are.
pub(crate) fn redirect_node<B>(request: &mut http::Request<B>) {
    if !request.headers().contains_key(header::UPGRADE) || request.uri().path() == PATH {
        return;
    }
    let Some(query) = request.uri().query() else { return };
    if Parameters::of(query).complete()
        && let Ok(path_and_query) = PathAndQuery::try_from(format!("{PATH}?{query}"))
    {
        *request.uri_mut() = Uri::from(path_and_query);
    }
}

/// Answers a request to [`PATH`].
pub(crate) async fn answer(
    nodes: &ModelNodes,
    relay: Option<&Relay>,
    workspace: Option<&WorkspacePart>,
    mut request: Request,
) -> Response {
    let parameters = Parameters::of(request.uri().query().unwrap_or_default());
    let upgrades = request.headers().contains_key(header::UPGRADE);
    // This is answered without an upgrade, too: a browser hides from its page why a socket was refused, so the page
    // asks again by a plain request.
    let lacks_workspace = workspace.is_none() && !parameters.node;
    if parameters.names_node() || !(upgrades || lacks_workspace) {
        return nodes.connect(&mut request).map(Body::from);
    }
    match (relay, workspace) {
        (Some(relay), _) if parameters.node => relay.answer(request),
        (None, _) if parameters.node => not_here("is no relay of the mesh: see --mesh-relay-serve"),
        (_, Some(workspace)) => workspace.answer(request).await,
        _ => not_here(&format!("has no workspace: {NO_WORKSPACE}")),
    }
}

fn not_here(why: &str) -> Response {
    let words = format!("this server {why}");
    let kind = api::error::Kind::NotFound;
    api::ApiError::new(StatusCode::NOT_IMPLEMENTED, kind, words).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirected(uri: &str, upgrades: bool) -> String {
        let mut request = http::Request::get(uri).body(()).unwrap();
        if upgrades {
            request.headers_mut().insert(header::UPGRADE, "websocket".parse().unwrap());
        }
        redirect_node(&mut request);
        request.uri().to_string()
    }

    const WHOLE: &str = "token=a%20b&model=m&max_concurrency=1&name=n";

    #[test]
    fn a_node_may_dial_any_path() {
        for path in ["/", "/v1/models", "/nowhere/at/all", PATH] {
            assert_eq!(redirected(&format!("{path}?{WHOLE}"), true), format!("/ws?{WHOLE}"));
        }
    }

    #[test]
    fn other_requests_are_not_redirected() {
        let plain = format!("/v1/models?{WHOLE}");
        assert_eq!(redirected(&plain, false), plain, "no upgrade");
        for uri in ["/v1/models", "/v1/worker/connect?token=t&model=m&name=n", "/?node=x"] {
            assert_eq!(redirected(uri, true), uri);
        }
    }
}
