//! Requests that cannot be served are told why, in the form of their API.

use serde_json::json;
use testkit::{Connect, Form, Room};

use crate::common::{CHAT, MESSAGES, ask, join, openai_error, post, serve, with_lender};

/// A body that is said to be too long is refused before it is sent.
#[tokio::test]
async fn a_length_over_the_limit_is_refused_unread() {
    let daemon = serve().set("--max-body-mib", "1").start().await;
    let request = daemon.client().request("POST", CHAT);
    let request = request.header("content-type", "application/json");
    let mut connection = request.header("content-length", "99999999999").open().await;
    connection.write(b"{").await;
    openai_error(&connection.answer().await.finish().await, 413);
}

/// A stock worker cannot carry more than 60 MiB: when only such workers have the model, the
/// request is too large, and otherwise it goes to one that can.
#[tokio::test]
async fn a_body_too_large_for_stock_workers_is_a_413() {
    let daemon = serve().start().await;
    let mut stock = join(&daemon, Form::Stock, "stock", 1).await;
    let body = json!({"model": "m", "pad": "x".repeat(61 * 1024 * 1024)}).to_string();
    let request = daemon.client().request("POST", CHAT).header("content-type", "application/json");
    let request = request.body(body.clone());
    openai_error(&request.clone().send().await, 413);
    let mut able = Connect::to(&daemon).form(Form::Binary).join("able", &["m"], 1).await;
    let answer = tokio::spawn(request.send());
    let job = able.expect_job().await;
    assert!(job.body == body, "the body has changed");
    able.complete(&job, 200, &json!({})).await;
    assert_eq!(answer.await.unwrap().status, 200);
    let small = post(&daemon.client(), CHAT, ask(false));
    let (worker, job) = tokio::select! {
        job = stock.expect_job() => (&mut stock, job),
        job = able.expect_job() => (&mut able, job),
    };
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(small.await.unwrap().status, 200);
}

/// A body over 16 MiB reaches a stock worker in fragments that it can take.
#[tokio::test]
async fn a_large_body_reaches_a_stock_worker() {
    let daemon = serve().start().await;
    let mut stock = join(&daemon, Form::Stock, "stock", 1).await;
    let body = json!({"model": "m", "pad": "x".repeat(20 * 1024 * 1024)});
    let answer = post(&daemon.client(), CHAT, body.clone());
    let job = stock.expect_job().await;
    assert!(job.body == body.to_string(), "the body has changed");
    stock.complete(&job, 200, &json!({})).await;
    assert_eq!(answer.await.unwrap().status, 200);
}

#[tokio::test]
async fn bytes_that_are_not_http_harm_nobody() {
    let daemon = serve().start().await;
    let garbage: [&[u8]; 4] = [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
    ];
    for bytes in garbage {
        let mut connection = daemon.client().connect().await;
        connection.write(bytes).await;
        connection.half_close().await;
        connection.closed().await;
    }
    let huge = "x".repeat(1024 * 1024);
    let answer = daemon.client().request("GET", "/health").header("x-huge", &huge).open().await;
    let answer = answer.try_answer().await;
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 431));
    assert_eq!(daemon.health().await["status"], "ok");
}

/// Whatever is asked, the answer has an id, and is JSON.
#[tokio::test]
async fn every_answer_has_an_id() {
    let daemon = serve().start().await;
    for path in ["/health", "/metrics", "/v1/models", "/v1/worker/connect", "/nowhere"] {
        let id = daemon.client().get(path).await.header("x-request-id").map(str::to_owned);
        assert!(id.is_some_and(|id| id.starts_with("r-")), "{path}");
    }
    let unreadable = daemon.client().get("/v1/models/%ff").await;
    openai_error(&unreadable, 404);
    let path = "/admin/workers/%ff/drain";
    openai_error(&daemon.admin().post_json(path, &json!({})).await, 404);
}

/// A refusal that never became a job is in the log and in the metrics all the same.
#[tokio::test]
async fn refusals_are_counted_and_logged() {
    let daemon = serve().start().await;
    for _ in 0..2 {
        daemon.client().request("POST", CHAT).body("{").send().await;
    }
    let plain = daemon.client().request("POST", CHAT).header("content-type", "text/plain");
    assert_eq!(plain.body("{}").send().await.status, 415);
    let metrics = daemon.metrics().await;
    let refused = |status| format!("warren_refused_requests_total{{status=\"{status}\"}}");
    assert!(metrics.contains(&format!("{} 2", refused(400))), "{metrics}");
    assert!(metrics.contains(&format!("{} 1", refused(415))), "{metrics}");
    daemon.line_with("refused").await;
}

#[tokio::test]
async fn a_request_that_can_be_read_in_two_ways_is_a_400_and_the_last_of_its_connection() {
    let daemon = serve().start().await;
    let address = daemon.address();
    let (one, other) = (format!("host: {address}"), "host: evil.example");
    let body = "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let ambiguous = [
        format!("GET /v1/models HTTP/1.1\r\n{one}\r\n{other}\r\n\r\n"),
        format!("GET /v1/models HTTP/1.1\r\n{one}\r\n{one}\r\n\r\n"),
        format!("GET http://{address}/v1/models HTTP/1.1\r\n{one}\r\n{other}\r\n\r\n"),
        format!("POST {CHAT} HTTP/1.1\r\n{one}\r\ntransfer-encoding: gzip\r\n{body}"),
        format!("POST {CHAT} HTTP/1.1\r\n{one}\r\n{}", body.replace("chunked", "gzip, chunked")),
    ];
    for request in ambiguous {
        let mut connection = daemon.client().connect().await;
        connection.write(request.as_bytes()).await;
        let (answer, mut connection) = connection.answer().await.finish_and_keep().await;
        assert!(openai_error(&answer, 400)["message"].is_string(), "{request}");
        assert!(answer.header("x-request-id").is_some());
        connection.closed().await;
    }
    let plain = format!("POST {MESSAGES} HTTP/1.1\r\n{one}\r\n{other}\r\n\r\n");
    let mut connection = daemon.client().connect().await;
    connection.write(plain.as_bytes()).await;
    assert_eq!(connection.answer().await.finish().await.json()["type"], "error");
}

/// The target's host counts in every check of the name by which the server was called.
#[tokio::test]
async fn a_target_that_names_a_host_overrides_the_host_header() {
    let daemon = serve().start().await;
    let address = daemon.address().to_string();
    let asked = async |target: &str, host: &str| {
        let request = daemon.client().request("GET", &format!("http://{target}/v1/models"));
        request.header("host", host).send().await.status
    };
    assert_eq!(asked(&address, &address).await, 200);
    assert_eq!(asked("evil.example", &address).await, 403, "it is not local");
    assert_eq!(asked(&address, "evil.example").await, 200);
    let page = |target: &str| {
        let path = format!("http://{target}/ws");
        let request = daemon.client().request("GET", &path).header("host", &address);
        let request = request.header("origin", "http://evil.example");
        let request = request.header("connection", "upgrade").header("upgrade", "websocket");
        let request = request.header("sec-websocket-version", "13");
        request.header("sec-websocket-key", "MDAwMDAwMDAwMDAwMDAwMA==").start()
    };
    assert_eq!(page("evil.example").await.status, 403, "a page that was led here");
}

/// A client's base URL with a part too many or too few, of the server and of a room.
#[tokio::test]
async fn a_path_that_can_mean_only_one_thing_is_understood() {
    let (daemon, _backend, _worker) = with_lender(1).await;
    let client = daemon.client();
    for path in ["/chat/completions", "/v1/v1/chat/completions", "/v1/v1/messages", "/responses"] {
        let answer = client.post_json(path, &ask(false)).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    for path in ["/models", "/v1/v1/models", "/models/m"] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    let room = Room::make(&client, &json!({"name": "r"})).await;
    let in_room = format!("/rooms/{}/models", room.code);
    assert_eq!(client.get(&in_room).await.status, 200);
    assert_eq!(client.get("/v1/v1/admin/keys").await.status, 404);
}

#[tokio::test]
async fn messages_without_v1_are_anthropics_by_their_header_and_are_led_there_by_their_body() {
    let (daemon, _backend, _worker) = with_lender(1).await;
    let post = |path: &str| daemon.client().post(path, &ask(false));
    let answer = post("/messages").header("anthropic-version", "2023-06-01").send().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let room = Room::make(&daemon.client(), &json!({"name": "r"})).await;
    for base in [String::new(), format!("/rooms/{}", room.code)] {
        let told = post(&format!("{base}/messages")).send().await;
        let body = told.json();
        assert_eq!((told.status, &body["type"]), (404, &json!("error")), "{body}");
        let words = body["error"]["message"].as_str().unwrap();
        assert!(words.contains(&format!("needs one that ends in {base}/v1,")), "{words}");
    }
}
