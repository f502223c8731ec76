//! Which endpoints a model server has.

use backend::{Backend, BackendConfig, BackendError, BackendRequest, probe::MAX_ANSWER};
use base::{Endpoint, Endpoints};
use testkit::{MockBackend, RawServer};

const MISSING: (&str, &str) = ("404 Not Found", r#"{"detail":"Not LocalBackend"}"#);

fn at(url: impl Into<String>) -> Backend {
    Backend::http(&BackendConfig { api_key: Some("k".into()), ..BackendConfig::new(url) }).unwrap()
}

/// Answers probes by what is asked: an endpoint, or `None` for a path that no server has. The first probe without
/// `/v1` begins the second round.
async fn probed(
    answer: impl Fn(Option<Endpoint>, bool) -> (&'static str, &'static str),
) -> Option<Endpoints> {
    let server = RawServer::start().await;
    let backend = at(server.url());
    let serve = async {
        loop {
            let (mut connection, request) = server.request().await;
            assert!(request.headers.iter().any(|line| line == "authorization: bearer k"));
            assert!(request.headers.iter().any(|line| line == "content-type: application/json"));
            let path = request.line.strip_prefix("POST ").unwrap();
            let without_v1 = !path.starts_with("/v1/");
            let path = if without_v1 { &format!("/v1{path}") } else { path };
            let endpoint = Endpoint::of_path(path);
            let is_text = endpoint.is_some_and(|it| Endpoints::ASSUMED.contains(it));
            assert_eq!(request.body, if is_text { &b"{}"[..] } else { b"{" }, "no model is named");
            let (status, body) = answer(endpoint, without_v1);
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
        Some(Endpoint::ChatCompletions) => {
            ("400 Bad Request", r#"{"error":"'messages' is required"}"#)
        }
        Some(Endpoint::Embeddings) => {
            ("501 Not Implemented", r#"{"error":"This server does not support embeddings"}"#)
        }
        Some(Endpoint::Responses) => {
            ("200 OK", r#"{"error":"Unexpected endpoint or method. (POST /v1/responses)"}"#)
        }
        _ => MISSING,
    });
    assert_eq!(told.await, Some(chat));
}

#[tokio::test]
async fn an_unclear_answer_counts_as_served() {
    let told = probed(|endpoint, _| match endpoint {
        Some(Endpoint::ChatCompletions) => ("401 Unauthorized", "{}"),
        Some(Endpoint::Completions) => ("503 Service Unavailable", "{}"),
        Some(Endpoint::Embeddings) => ("404 Not Found", r#"{"error":"model '' not found"}"#),
        Some(Endpoint::Responses) => ("403 Forbidden", ""),
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
        Some(Endpoint::ChatCompletions) if without_v1 => ("400 Bad Request", "{}"),
        _ => MISSING,
    });
    assert_eq!(told.await, Some(Endpoints::only(Endpoint::ChatCompletions)));
}

#[tokio::test]
async fn sound_and_pictures_are_served_where_the_path_is_seen_to_be_there() {
    use Endpoint::*;
    let told = probed(|endpoint, _| match endpoint {
        Some(ChatCompletions | Transcriptions) => ("422 Unprocessable Entity", r#"{"detail":[]}"#),
        Some(SoundTranslations) => ("415 Unsupported Media Type", ""),
        Some(Speech) => ("500 Internal Server Error", r#"{"error":"unexpected end of JSON"}"#),
        Some(ImageGenerations) => ("200 OK", r#"{"error":"no prompt"}"#),
        Some(ImageEdits) => ("401 Unauthorized", "{}"),
        Some(ImageVariations) => ("503 Service Unavailable", "{}"),
        Some(Moderations) => ("405 Method Not Allowed", "{}"),
        Some(Rerank) => ("501 Not Implemented", r#"{"error":"does not support reranking"}"#),
        Some(Score) => ("404 Not Found", r#"{"error":"model '' not found"}"#),
        _ => MISSING,
    });
    let there =
        [ChatCompletions, Transcriptions, SoundTranslations, Speech, ImageGenerations, Score];
    assert_eq!(told.await, Some(there.into_iter().collect()));
}

#[tokio::test]
async fn rankings_may_be_at_the_root_and_of_texts() {
    let of_texts = "Failed to deserialize the JSON body: missing field `texts` at line 1 column 12";
    let of_documents = r#"{"detail":[{"loc":["body","documents"],"msg":"Field required"}]}"#;
    for (at, words, of_texts) in [
        ("/rerank", of_texts, true),
        ("/rerank", of_documents, false),
        ("/v1/rerank", of_texts, false),
        ("/nowhere", of_texts, false),
    ] {
        let server = RawServer::start().await;
        let backend = at_url(&server);
        let serve = async {
            loop {
                let (mut connection, request) = server.request().await;
                let path = request.line.strip_prefix("POST ").unwrap();
                let (status, body) = match &*request.body {
                    _ if path == "/v1/embeddings" => ("422 Unprocessable Entity", "{}"),
                    _ if path != at => MISSING,
                    b"{" => ("400 Bad Request", "EOF while parsing an object"),
                    b"{\"query\":\"\"}" if path == "/rerank" => ("422 Unprocessable Entity", words),
                    other => panic!("{path}: {}", String::from_utf8_lossy(other)),
                };
                connection.json(status, "connection: close\r\n", body).await;
            }
        };
        let told = tokio::select! {
            told = backend.endpoints() => told.unwrap().unwrap(),
            () = serve => unreachable!("it serves for ever"),
        };
        assert_eq!(told.contains(Endpoint::Rerank), at != "/nowhere", "{at}");
        assert_eq!(backend.ranks_texts(), of_texts, "{at}: {words}");
    }
}

fn at_url(server: &RawServer) -> Backend {
    at(server.url())
}

#[tokio::test]
async fn a_server_of_sound_alone_has_nothing_else() {
    let told = probed(|endpoint, _| match endpoint {
        Some(Endpoint::Speech) => ("422 Unprocessable Entity", "{}"),
        _ => MISSING,
    });
    assert_eq!(told.await, Some(Endpoints::only(Endpoint::Speech)));
}

#[tokio::test]
async fn a_server_that_answers_alike_at_every_path_has_text_alone() {
    for answer in [("400 Bad Request", "{}"), ("200 OK", "{}"), ("401 Unauthorized", "{}")] {
        assert_eq!(probed(move |_, _| answer).await, Some(Endpoints::ASSUMED), "{answer:?}");
    }
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
        loop {
            let (mut connection, _) = server.request().await;
            connection.write("HTTP/1.1 404 Not Found\r\n\r\n").await;
            connection.flood(MAX_ANSWER + 1).await;
            connection.closed().await;
        }
    };
    let told = tokio::select! {
        told = backend.endpoints() => told,
        () = serve => unreachable!("it serves for ever"),
    };
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
