//! Lists of models, and the model servers of this machine.

use backend::{
    Backend, BackendConfig, BackendError, BackendRequest, discovery::find_at, models::MAX_LIST,
};
use testkit::RawServer;

const ONE: &str = r#"{"object":"list","data":[{"id":"m","owned_by":"me"}]}"#;

/// Answers each request on a connection of its own with the next of `answers`.
async fn serve(server: &RawServer, answers: &[(&str, &str, &str)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (status, extra, body) in answers {
        let (mut connection, request) = server.request().await;
        let extra = format!("connection: close\r\n{extra}");
        connection.json(status, &extra, body).await;
        lines.push(request.line);
    }
    lines
}

async fn models(
    answers: &[(&str, &str, &str)],
) -> (Vec<String>, Result<Vec<String>, BackendError>) {
    let server = RawServer::start().await;
    let backend = Backend::http(&BackendConfig::new(server.url())).unwrap();
    tokio::join!(serve(&server, answers), backend.models())
}

#[tokio::test]
async fn the_openai_list_is_asked_first() {
    let (lines, models) = models(&[("200 OK", "", ONE)]).await;
    assert_eq!(lines, ["GET /v1/models"]);
    assert_eq!(models.unwrap(), ["m"]);
}

#[tokio::test]
async fn ollamas_list_is_asked_when_the_first_is_empty_or_missing() {
    let tags = ("200 OK", "", r#"{"models":[{"name":"llama3:8b"}]}"#);
    for first in [("200 OK", "", r#"{"data":[]}"#), ("404 Not Found", "", "no")] {
        let (lines, models) = models(&[first, tags]).await;
        assert_eq!(lines, ["GET /v1/models", "GET /api/tags"]);
        assert_eq!(models.unwrap(), ["llama3:8b"]);
    }
}

#[tokio::test]
async fn no_list_at_all_is_said() {
    let no = ("401 Unauthorized", "", "no");
    let (_, models) = models(&[no, ("404 Not Found", "", "no")]).await;
    let text = models.unwrap_err().to_string();
    assert!(text.contains("gives no list of models: it answered 401"), "{text}");
}

#[tokio::test]
async fn a_base_may_be_whole_without_v1() {
    let no = ("404 Not Found", "", "no");
    let (lines, models) = models(&[no, no, ("200 OK", "", ONE)]).await;
    assert_eq!(lines, ["GET /v1/models", "GET /api/tags", "GET /models"]);
    assert_eq!(models.unwrap(), ["m"]);
    let server = RawServer::start().await;
    let url = format!("{}/v1beta/openai", server.url());
    let backend = Backend::http(&BackendConfig::new(url)).unwrap();
    let (lines, models) = tokio::join!(serve(&server, &[("200 OK", "", ONE)]), backend.models());
    assert_eq!(
        (lines, models.unwrap()),
        (vec!["GET /v1beta/openai/models".to_owned()], vec!["m".to_owned()])
    );
}

#[tokio::test]
async fn a_request_beside_the_look_for_a_list_without_v1_keeps_its_v1() {
    let server = RawServer::start().await;
    let backend = Backend::http(&BackendConfig::new(server.url())).unwrap();
    let no = ("404 Not Found", "", "no");
    let serving = async {
        serve(&server, &[no, no]).await;
        let (mut list, look) = server.request().await;
        let path_and_query = "/v1/chat/completions".to_owned();
        let ask = BackendRequest { path_and_query, ..BackendRequest::default() };
        let (sent, asked) = tokio::join!(backend.send(ask), async {
            let (mut connection, request) = server.request().await;
            connection.json("200 OK", "connection: close\r\n", "{}").await;
            request.line
        });
        list.json("404 Not Found", "connection: close\r\n", "no").await;
        (look.line, asked, sent.unwrap().status.as_u16())
    };
    let (seen, listed) = tokio::join!(serving, backend.models());
    let expected = ("GET /models".to_owned(), "POST /v1/chat/completions".to_owned(), 200);
    assert_eq!(seen, expected);
    assert!(listed.is_err());
}

#[tokio::test]
async fn a_key_goes_where_the_server_looks_for_it() {
    let server = RawServer::start().await;
    let config = BackendConfig { api_key: Some("k".into()), ..BackendConfig::new(server.url()) };
    let backend = Backend::http(&config).unwrap();
    let of_anthropic = r#"{"data":[{"type":"model","id":"claude-x"}],"has_more":false}"#;
    let serving = async {
        let mut seen = Vec::new();
        for (status, body) in
            [("401 Unauthorized", "{}"), ("200 OK", of_anthropic), ("200 OK", "{}")]
        {
            let (mut connection, request) = server.request().await;
            let keys = ["authorization: ", "x-api-key: ", "anthropic-version: "];
            let is_key = |line: &&String| keys.iter().any(|key| line.starts_with(key));
            let keys = request.headers.iter().filter(is_key).cloned().collect::<Vec<_>>();
            seen.push((request.line.clone(), keys));
            connection.json(status, "connection: close\r\n", body).await;
        }
        seen
    };
    let ask = BackendRequest { path_and_query: "/v1/messages".into(), ..BackendRequest::default() };
    let asking =
        async { (backend.models().await.unwrap(), backend.send(ask).await.unwrap().status) };
    let (seen, (models, status)) = tokio::join!(serving, asking);
    assert_eq!((models, status.as_u16()), (vec!["claude-x".to_owned()], 200));
    let own = vec!["anthropic-version: 2023-06-01".to_owned(), "x-api-key: k".to_owned()];
    let sorted = |mut keys: Vec<String>| {
        keys.sort_unstable();
        keys
    };
    let seen: Vec<_> = seen.into_iter().map(|(line, keys)| (line, sorted(keys))).collect();
    let expected = [
        ("GET /v1/models", vec!["authorization: bearer k".to_owned()]),
        ("GET /v1/models?limit=1000", own.clone()),
        ("POST /v1/messages", own),
    ];
    assert_eq!(seen, expected.map(|(line, keys)| (line.to_owned(), keys)));
}

#[tokio::test]
async fn a_list_over_its_bound_is_not_read() {
    let server = RawServer::start().await;
    let backend = Backend::http(&BackendConfig::new(server.url())).unwrap();
    let endless = async {
        let (mut connection, _) = server.request().await;
        connection.write("HTTP/1.1 200 OK\r\n\r\n").await;
        connection.flood(MAX_LIST + 1).await;
        connection.closed().await;
        serve(&server, &[("404 Not Found", "", "")]).await
    };
    let (_, models) = tokio::join!(endless, backend.models());
    assert!(matches!(models, Err(BackendError::NoModels { .. })), "{models:?}");
}

#[tokio::test]
async fn local_servers_are_known_by_their_lists_and_a_warren_is_none() {
    let (good, warren, told, other, silent) = tokio::join!(
        RawServer::start(),
        RawServer::start(),
        RawServer::start(),
        RawServer::start(),
        RawServer::start()
    );
    let closed = {
        let server = RawServer::start().await;
        server.port
    };
    let ports = [
        ("Good", good.port),
        ("Warren", warren.port),
        ("Told", told.port),
        ("Other", other.port),
        ("Silent", silent.port),
        ("Closed", closed),
    ];
    let twice_other = [("200 OK", "", "<html>"); 2];
    let (found, ..) = tokio::join!(
        find_at(None, &ports),
        serve(&good, &[("200 OK", "", ONE)]),
        serve(&warren, &[("200 OK", "", r#"{"data":[{"id":"m","owned_by":"warren"}]}"#)]),
        serve(&told, &[("200 OK", "x-warren-version: 0.1.0\r\n", r#"{"data":[]}"#)]),
        serve(&other, &twice_other),
        silent.request(),
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].name.as_str(), found[0].url.as_str()), ("Good", good.url().as_str()));
    assert_eq!(found[0].models, ["m"]);
}

/// An Ollama that was moved is looked for where its own variable says, and once.
#[tokio::test]
async fn the_ollama_of_its_variable_is_found_first() {
    let moved = RawServer::start().await;
    let value = format!("127.0.0.1:{}", moved.port);
    let ports = [("Other", moved.port)];
    let (found, _) =
        tokio::join!(find_at(Some(&value), &ports), serve(&moved, &[("200 OK", "", ONE)]),);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].name.as_str(), found[0].url.as_str()), ("Ollama", moved.url().as_str()));
}
