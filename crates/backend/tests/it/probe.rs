//! Which endpoints a model server has.

use backend::{Backend, BackendConfig, BackendError, BackendRequest, probe::MAX_ANSWER};
use base::{Endpoint, Endpoints};
use testkit::{MockBackend, RawServer};

const MISSING: (&str, &str) = ("404 Not Found", r#"{"detail":"Not LocalBackend"}"#);

fn at(url: impl Into<String>) -> Backend {
    Backend::http(&BackendConfig { api_key: Some("k".into()), ..BackendConfig::new(url) }).unwrap()
}

/// Answers the six probes, each by its path, and the same again without `/v1` if they come.
async fn probed(
    answer: impl Fn(Endpoint, bool) -> (&'static str, &'static str),
) -> Option<Endpoints> {
    let server = RawServer::start().await;
    let backend = at(server.url());
    let serve = async {
        for nth in 0.. {
            let (mut connection, request) = server.request().await;
            assert_eq!(request.body, b"{}", "no model is named");
            assert!(request.headers.iter().any(|line| line == "authorization: bearer k"));
            assert!(request.headers.iter().any(|line| line == "content-type: application/json"));
            let path = request.line.strip_prefix("POST ").unwrap();
            let with_v1 = format!("/v1{path}");
            let again = nth >= Endpoints::ASSUMED.iter().count();
            let path = if again { &with_v1 } else { path };
            let (status, body) = answer(Endpoint::of_path(path).unwrap(), again);
            connection.json(status, "connection: close\r\n", body).await;
        }
    };
    tokio::select! {
        endpoints = backend.endpoints() => endpoints.unwrap(),
        () = serve => unreachable!("it serves for ever"),
    }
}

#[tokio::test]
async fn a_missing_endpoint_is_not_served() {
    let chat = Endpoints::only(Endpoint::ChatCompletions);
    let told = probed(|endpoint, _| match endpoint {
        Endpoint::ChatCompletions => ("400 Bad Request", r#"{"error":"'messages' is required"}"#),
        Endpoint::Embeddings => {
            ("501 Not Implemented", r#"{"error":"This server does not support embeddings"}"#)
        }
        Endpoint::Responses => {
            ("200 OK", r#"{"error":"Unexpected endpoint or method. (POST /v1/responses)"}"#)
        }
        _ => MISSING,
    });
    assert_eq!(told.await, Some(chat));
}

#[tokio::test]
async fn an_unclear_answer_counts_as_served() {
    let told = probed(|endpoint, _| match endpoint {
        Endpoint::ChatCompletions => ("401 Unauthorized", "{}"),
        Endpoint::Completions => ("503 Service Unavailable", "{}"),
        Endpoint::Embeddings => ("404 Not Found", r#"{"error":"model '' not found"}"#),
        Endpoint::Responses => ("403 Forbidden", ""),
        _ => MISSING,
    });
    let missing = [Endpoint::Messages, Endpoint::CountTokens];
    assert_eq!(told.await, Some(missing.into_iter().fold(Endpoints::ASSUMED, Endpoints::without)));
}

#[tokio::test]
async fn a_server_that_has_nothing_does_not_tell() {
    assert_eq!(probed(|_, _| MISSING).await, None);
}

#[tokio::test]
async fn endpoints_may_be_without_v1() {
    let told = probed(|endpoint, without_v1| match endpoint {
        Endpoint::ChatCompletions if without_v1 => ("400 Bad Request", "{}"),
        _ => MISSING,
    });
    assert_eq!(told.await, Some(Endpoints::only(Endpoint::ChatCompletions)));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let (server, spare) = RawServer::with_spare();
    let backend = at(server.url());
    drop(server);
    let error = backend.endpoints().await.unwrap_err();
    assert!(matches!(error, BackendError::Unreachable { .. }), "{error}");
    drop(spare);
}

#[tokio::test]
async fn a_body_without_end_is_not_read_to_its_end() {
    let server = RawServer::start().await;
    let backend = at(server.url());
    let serve = async {
        for _ in 0..2 * Endpoints::ASSUMED.iter().count() {
            let (mut connection, _) = server.request().await;
            connection.write("HTTP/1.1 404 Not Found\r\n\r\n").await;
            connection.flood(MAX_ANSWER + 1).await;
            connection.closed().await;
        }
    };
    let (told, ()) = tokio::join!(backend.endpoints(), serve);
    assert_eq!(told, Ok(None));
}

#[tokio::test]
async fn known_credentials_are_not_asked_for() {
    let chat = Endpoints::only(Endpoint::ChatCompletions);
    let config =
        BackendConfig { endpoints: Some(chat), ..BackendConfig::new("http://127.0.0.1:1") };
    assert_eq!(Backend::http(&config).unwrap().endpoints().await, Ok(Some(chat)));
}

#[tokio::test]
async fn probes_do_not_count_as_requests() {
    let mock = MockBackend::start(&["m"]).await;
    mock.answers_only(&[Endpoint::Messages.path()]);
    let told = at(mock.url()).endpoints().await.unwrap();
    assert_eq!(told, Some(Endpoints::only(Endpoint::Messages)));
    assert_eq!(mock.counts().started, 0);
}

#[tokio::test]
async fn a_cloud_is_not_probed_and_one_of_messages_alone_gets_its_key_where_it_looks() {
    let server = RawServer::start().await;
    let cloud = BackendConfig { cloud: true, ..BackendConfig::new(server.url()) };
    let chat = Endpoints::only(Endpoint::ChatCompletions).with(Endpoint::Embeddings);
    assert_eq!(Backend::http(&cloud).unwrap().endpoints().await, Ok(Some(chat)));
    let endpoints = Some(Endpoints::only(Endpoint::Messages));
    let cloud = BackendConfig { endpoints, api_key: Some("k".into()), ..cloud };
    let backend = Backend::http(&cloud).unwrap();
    let ask = BackendRequest {
        path_and_query: Endpoint::Messages.path().to_owned(),
        ..BackendRequest::default()
    };
    let answering = async {
        let (mut connection, request) = server.request().await;
        connection.json("200 OK", "", "{}").await;
        request
    };
    let (request, answer) = tokio::join!(answering, backend.send(ask));
    assert_eq!(answer.unwrap().status, 200);
    assert!(request.headers.contains(&"x-api-key: k".to_owned()), "{:?}", request.headers);
    let version = request.headers.iter().any(|line| line.starts_with("anthropic-version"));
    assert!(version, "{:?}", request.headers);
}
