//! Sound, pictures and rankings, from the client's bytes to those of the model server, and back.

use serde_json::{Value, json};
use testkit::{
    Client, DEADLINE, Daemon, MockBackend, Reply, Response, WorkerProcess, eventually, form,
    form_fields, media_backend, sound,
};

use crate::{
    cli::{make_key, with_key},
    common::{binary, openai_error, post, serve, start_worker},
};

const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
const KIND: &str = "multipart/form-data; boundary=----a'b";
const BOUNDARY: &str = "----a'b";

/// A server, and a real worker that lends a model server of sound and pictures as `m`.
async fn lent() -> (Daemon, MockBackend, WorkerProcess) {
    let (daemon, backend) = (serve().start().await, media_backend(&["m"]).await);
    let worker = start_worker(&daemon, &backend.url(), 4);
    daemon.has_workers(1).await;
    (daemon, backend, worker)
}

fn upload(path: &str, client: &Client, fields: &[(&str, &[u8])]) -> testkit::Request {
    let request = client.request("POST", path).header("content-type", KIND);
    request.body(form(BOUNDARY, fields))
}

/// Bytes of every value, with line ends and nearly the boundary in them.
fn file(length: usize) -> Vec<u8> {
    let every: Vec<u8> = (0..=255).chain(*b"\r\n------a'\r\n--\n").collect();
    every.iter().copied().cycle().take(length).collect()
}

#[track_caller]
fn ok(answer: &Response) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn a_worker_finds_out_what_its_model_server_has() {
    let (daemon, backend, _worker) = lent().await;
    assert_eq!(backend.counts().started, 0, "nothing was made to find out");
    let model = &daemon.client().get("/v1/models").await.json()["data"][0];
    let paths: Vec<&str> =
        model["endpoints"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let expected = base::Endpoints::UNTRANSLATED.iter().map(base::Endpoint::path);
    assert_eq!(paths, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn files_arrive_as_they_were_sent() {
    let (daemon, backend, _worker) = lent().await;
    // Larger than a piece, a window of credit and what is worked on in place.
    for length in [0, 1, 70_000, 3_000_000] {
        let file = file(length);
        for path in [TRANSCRIPTIONS, "/v1/audio/translations"] {
            let sent = [("name=\"file\"; filename=\"a.wav\"", &file[..]), ("name=model", b"m")];
            let answer = upload(path, &daemon.client(), &sent).send().await;
            let text = ok(&answer)["text"].as_str().unwrap().to_owned();
            assert!(text.starts_with(&format!("m {length} ")), "{text}");
            let got = backend.request().await;
            assert_eq!(got.header("content-type"), Some(KIND));
            assert_eq!(got.body, form(BOUNDARY, &sent), "{length} bytes to {path}");
        }
    }
    daemon.is_idle().await;
}

#[tokio::test]
async fn streams_of_words_sound_and_pictures_pass() {
    let (daemon, _backend, _worker) = lent().await;
    let client = daemon.client();
    let sent: [(&str, &[u8]); 3] =
        [("name=file; filename=a", b"abc"), ("name=model", b"m"), ("name=stream", b"true")];
    let words = upload(TRANSCRIPTIONS, &client, &sent).send().await;
    let spoken = json!({"model": "m", "input": "hi", "voice": "a", "stream_format": "sse"});
    let spoken = client.post_json("/v1/audio/speech", &spoken).await;
    let painted = json!({"model": "m", "prompt": "a dot", "stream": true, "partial_images": 1});
    let painted = client.post_json("/v1/images/generations", &painted).await;
    for (answer, first, last) in [
        (words, "transcript.text.delta", "transcript.text.done"),
        (spoken, "speech.audio.delta", "speech.audio.done"),
        (painted, "image_generation.partial_image", "image_generation.completed"),
    ] {
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        let text = answer.text();
        let events: Vec<Value> = text
            .split_terminator("\n\n")
            .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
            .collect();
        assert_eq!(
            (&events[0]["type"], &events[events.len() - 1]["type"]),
            (&first.into(), &last.into())
        );
    }
}

/// Text Embeddings Inference ranks at the root, in a shape of its own; others at the root rank as Jina does.
#[tokio::test]
async fn a_model_server_that_ranks_at_the_root_is_asked_there_and_in_its_own_shape() {
    for of_texts in [true, false] {
        let daemon = serve().start().await;
        let backend = MockBackend::start(&["m"]).await;
        backend.answers_only(&["/v1/embeddings", "/rerank"]);
        backend.tell_with(move |asked| {
            let words =
                if of_texts { "missing field `texts`" } else { "missing field `documents`" };
            let is_it = &*asked.body == br#"{"query":""}"#;
            is_it.then(|| Reply::full(422, &[("content-type", "text/plain")], words))
        });
        let ranks = match of_texts {
            true => json!([{"index": 1, "score": 0.9}, {"index": 0, "score": 0.1}]),
            false => json!({"results": [{"index": 1, "relevance_score": 0.9}]}),
        };
        backend.answer_with(move |_| Reply::json(200, &ranks));
        let _worker = start_worker(&daemon, &backend.url(), 1);
        daemon.has_workers(1).await;
        let asked = json!({"model": "m", "query": "q", "documents": ["a", "b"], "top_n": 1});
        let ranked = ok(&daemon.client().post_json("/v1/rerank", &asked).await);
        let expected = json!({"index": 1, "relevance_score": 0.9});
        assert_eq!(ranked["results"], json!([expected]), "{of_texts}");
        let got = backend.request().await;
        assert_eq!(got.target, "/rerank");
        let texts = json!({"query": "q", "texts": ["a", "b"], "truncate": true});
        assert_eq!(got.json(), if of_texts { texts } else { asked });
        let bad = json!({"model": "m", "query": "q", "documents": [7]});
        if of_texts {
            let refused = daemon.client().post_json("/v1/rerank", &bad).await;
            assert_eq!(openai_error(&refused, 400)["param"], "documents[0]");
        }
    }
}

#[tokio::test]
async fn names_of_the_server_and_of_the_worker_stand_for_the_model_of_a_form() {
    let place = tempfile::TempDir::new().unwrap();
    let config = place.path().join("warren.toml");
    std::fs::write(&config, "[models.ears]\ntargets = ['hearing']\n").unwrap();
    let daemon = serve().set("--config", config.to_str().unwrap()).start().await;
    let backend = media_backend(&["whisper-1"]).await;
    let args = ["--models", "hearing=whisper-1"];
    let _worker = WorkerProcess::start(binary(), &daemon.url(), &backend.url(), "w", &args);
    daemon.has_workers(1).await;
    let file = file(200_000);
    let fields = |model| [("name=file; filename=a", &file[..]), ("name=model", model)];
    let answer = upload(TRANSCRIPTIONS, &daemon.client(), &fields(b"ears")).send().await;
    assert!(ok(&answer)["text"].as_str().unwrap().starts_with("whisper-1 200000 "));
    let got = backend.request().await;
    assert_eq!(got.body, form(BOUNDARY, &fields(b"whisper-1")));
    assert_eq!(form_fields(&got)[0].1, file);
}

#[tokio::test]
async fn what_is_reported_is_counted_for_the_key_under_its_path() {
    let (daemon, _backend, _worker) = lent().await;
    let (_, key) = make_key(&daemon, json!({"limits": {"tpm": 1000}})).await;
    let client = with_key(&daemon, &key);
    // A megabyte of sound is no reason to refuse a key with a thousand tokens.
    let file = file(1_000_000);
    let fields = [("name=file; filename=a", &file[..]), ("name=model", b"m")];
    ok(&upload(TRANSCRIPTIONS, &client, &fields).send().await);
    let spoken = json!({"model": "m", "input": "hi", "voice": "a"});
    assert_eq!(client.post_json("/v1/audio/speech", &spoken).await.status, 200);
    let asked = json!({"model": "m", "query": "q", "documents": ["a"]});
    ok(&client.post_json("/v1/rerank", &asked).await);
    let usage = async || daemon.admin().get("/admin/usage?by=api").await.json();
    eventually("three rows", DEADLINE, async || usage().await["totals"]["requests"] == 3).await;
    let told = usage().await;
    let tokens = |path: &str| {
        let rows = told["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["api"] == path).unwrap_or_else(|| panic!("{told}"));
        (row["prompt_tokens"].as_u64(), row["completion_tokens"].as_u64())
    };
    assert_eq!(tokens(TRANSCRIPTIONS), (Some(14), Some(4)));
    assert_eq!(tokens("/v1/audio/speech"), (Some(0), Some(0)));
    assert_eq!(tokens("/v1/rerank"), (Some(12), Some(0)));
}

/// Neither the server nor the worker, which puts the model server's own name into it, holds a form twice; of one that is
/// refused nothing stays.
#[tokio::test]
async fn a_large_form_is_held_once_and_a_refused_one_not_at_all() {
    const SIZE: usize = 60 << 20;
    let (daemon, backend) = (serve().start().await, media_backend(&["whisper-1"]).await);
    let args = ["--models", "m=whisper-1"];
    let worker = WorkerProcess::start(binary(), &daemon.url(), &backend.url(), "w", &args);
    daemon.has_workers(1).await;
    let client = daemon.client();
    let fields = |file| [("name=file; filename=a", file), ("name=model", &b"m"[..])];
    // Grown to its usual size by a first request.
    ok(&upload(TRANSCRIPTIONS, &client, &fields(b"a")).send().await);
    let before = (daemon.resident_bytes(), worker.resident_bytes());
    let file = vec![b'\n'; SIZE];
    let mut cut = form(BOUNDARY, &fields(&file));
    cut.truncate(SIZE);
    let request = client.request("POST", TRANSCRIPTIONS).header("content-type", KIND);
    openai_error(&request.body(cut).send().await, 400);
    let is_back = async || daemon.resident_bytes() < before.0 + (24 << 20);
    eventually("the memory being given back", DEADLINE, is_back).await;
    let heard = ok(&upload(TRANSCRIPTIONS, &client, &fields(&file)).send().await);
    assert!(heard["text"].as_str().unwrap().starts_with(&format!("whisper-1 {SIZE} ")));
    let most = (SIZE as u64) * 3 / 2;
    let peaks = (daemon.peak_resident_bytes(), worker.peak_resident_bytes());
    assert!(peaks.0 < before.0 + most, "server: {} to {}", before.0, peaks.0);
    assert!(peaks.1 < before.1 + most, "worker: {} to {}", before.1, peaks.1);
}

#[tokio::test]
async fn a_server_with_a_backend_of_its_own_passes_all_of_it() {
    let backend = media_backend(&["m"]).await;
    let place = tempfile::TempDir::new().unwrap();
    let data = place.path().display().to_string();
    let args = ["up", "--listen", "127.0.0.1:0", "--backend", &backend.url(), "--data-dir", &data];
    let process = testkit::ChildProcess::start_at(place.path(), "up", binary(), &args);
    let client = Client::new(process.listening("http").await);
    let is_there = async || client.get("/v1/models").await.json()["data"][0]["id"] == "m";
    eventually("the model", DEADLINE, is_there).await;
    let file = file(200_000);
    let fields = [("name=file; filename=a", &file[..]), ("name=model", b"m")];
    let heard = ok(&upload(TRANSCRIPTIONS, &client, &fields).send().await);
    assert!(heard["text"].as_str().unwrap().starts_with("m 200000 "), "{heard}");
    let spoken = json!({"model": "m", "input": "hello", "voice": "a"});
    assert_eq!(client.post_json("/v1/audio/speech", &spoken).await.body, sound("hello"));
}

#[tokio::test]
async fn a_busy_model_server_is_waited_for() {
    let (daemon, backend, _worker) = lent().await;
    let gate = testkit::Gate::closed();
    backend.then(testkit::Reply::json(200, &json!({"text": "late"})).after(&gate));
    let body = json!({"model": "m", "input": ["x"]});
    let waiting = post(&daemon.client(), "/v1/moderations", body);
    backend.reaches("the request", |counts| counts.started == 1).await;
    gate.open(1);
    assert_eq!(ok(&waiting.await.unwrap()), json!({"text": "late"}));
}
