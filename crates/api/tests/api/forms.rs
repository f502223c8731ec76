//! Sound, pictures and rankings: forms on their way in, bytes on their way out, and what is refused.

use api::Aliases;
use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::{Request, header};
use serde_json::{Map, Value, json};

use crate::kit::{Kit, head, json_of, next, text};

const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
const KIND: &str = "multipart/form-data; boundary=\"b 1\"";

/// Bytes that are no text, and nearly hold the boundary.
const SOUND: &[u8] = b"RIFF\xff\xfe\r\n--b \r\n--b 2\0";

fn field(name: &str, value: &[u8]) -> Vec<u8> {
    let head = format!("--b 1\r\nContent-Disposition: form-data; {name}\r\n\r\n");
    [head.as_bytes(), value, b"\r\n"].concat()
}

fn form(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let fields: Vec<_> = fields.iter().map(|(name, value)| field(name, value)).collect();
    [fields.concat(), b"--b 1--\r\n".to_vec()].concat()
}

fn upload(model: &str) -> Vec<u8> {
    form(&[
        ("name=\"file\"; filename=\"a.wav\"", SOUND),
        ("name=\"model\"", model.as_bytes()),
        ("name=\"response_format\"", b"json"),
    ])
}

fn posted(path: &str, kind: &str, body: impl Into<Bytes>) -> Request<Body> {
    let request = Request::post(path).header(header::CONTENT_TYPE, kind);
    request.body(Body::from(body.into())).unwrap()
}

fn serving(kit: &Kit) {
    use Endpoint::{ImageEdits, Speech, Transcriptions};
    kit.serves(&["m"], &[Transcriptions, Speech, ImageEdits]);
}

#[tokio::test(start_paused = true)]
async fn a_form_reaches_the_provider_byte_for_byte() {
    let mut kit = Kit::new();
    serving(&kit);
    let body = Bytes::from(upload("m"));
    let mut request = posted(TRANSCRIPTIONS, KIND, body.clone());
    request.headers_mut().insert(header::CONTENT_LENGTH, body.len().into());
    let json = head(&[("content-type", "application/json")]);
    let (response, mut assignment) = kit.send_for(request, json).await;
    assert_eq!(assignment.endpoint, Endpoint::Transcriptions);
    assert_eq!(assignment.request.path_and_query, TRANSCRIPTIONS);
    assert_eq!(assignment.request.headers["content-type"], KIND);
    assert_eq!(assignment.request.body, body);
    assert_eq!(assignment.request.body.as_ptr(), body.as_ptr(), "it is not copied");
    assignment.answer.chunk(Bytes::from_static(b"{\"text\":\"hi\"}")).unwrap();
    assignment.answer.end();
    assert_eq!(text(response).await, "{\"text\":\"hi\"}");
}

#[tokio::test(start_paused = true)]
async fn an_alias_changes_the_model_of_a_form_and_nothing_else() {
    let defaults = json!({"temperature": 0.2}).as_object().unwrap().clone();
    let aliases = Aliases::new([("ears".to_owned(), vec!["m".to_owned()], defaults)]).unwrap();
    let mut kit = Kit::with_aliases(aliases, |_, _| {});
    serving(&kit);
    let request = posted(TRANSCRIPTIONS, KIND, upload("ears"));
    let (_response, assignment) = kit.send_for(request, head(&[])).await;
    assert_eq!(assignment.request.body, upload("m"));
    assert_eq!(assignment.request.model.as_str(), "m");
}

#[tokio::test(start_paused = true)]
async fn bytes_stay_bytes_with_their_type_and_length() {
    let mut kit = Kit::new();
    serving(&kit);
    let body = r#"{"model":"m","input":"hi","voice":"a","response_format":"mp3"}"#;
    let sound = Bytes::from_static(b"ID3\0\xff\xfb\x90\r\n\r\ndata: \"usage\"");
    for length in [Some("24"), None] {
        let mut headers = vec![("content-type", "audio/mpeg")];
        headers.extend(length.map(|length| ("content-length", length)));
        let request = posted("/v1/audio/speech", "application/json", body);
        let (response, mut assignment) = kit.send_for(request, head(&headers)).await;
        assert_eq!(assignment.request.body, body);
        assert_eq!(response.headers()["content-type"], "audio/mpeg");
        let length = response.headers().get("content-length").map(|it| it.to_str().unwrap());
        assert_eq!(length, length);
        let mut body = response.into_body();
        for piece in [sound.slice(..5), sound.slice(5..)] {
            assignment.answer.chunk(piece.clone()).unwrap();
            assert_eq!(next(&mut body).await.unwrap().unwrap(), piece, "each as it comes");
        }
        assignment.answer.end();
        assert!(next(&mut body).await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_break_off_are_not_taken_for_complete() {
    let mut kit = Kit::new();
    serving(&kit);
    let request = posted("/v1/audio/speech", "application/json", r#"{"model":"m","input":""}"#);
    let (response, mut assignment) =
        kit.send_for(request, head(&[("content-type", "audio/wav")])).await;
    assignment.answer.chunk(Bytes::from_static(b"RIFF")).unwrap();
    assignment.answer.fail("it is out of memory");
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), "RIFF");
    assert!(next(&mut body).await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_streamed_transcription_is_kept_alive_and_ends_with_openais_error() {
    let mut kit = Kit::new();
    serving(&kit);
    let wish = ("name=\"stream\"", &b"true"[..]);
    let request = posted(TRANSCRIPTIONS, KIND, form(&[("name=model", b"m"), wish]));
    let events = head(&[("content-type", "text/event-stream")]);
    let (response, mut assignment) = kit.send_for(request, events).await;
    assert!(assignment.request.streaming);
    let mut body = response.into_body();
    let delta = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"hi\"}\n\n";
    assignment.answer.chunk(Bytes::from_static(delta.as_bytes())).unwrap();
    assert_eq!(next(&mut body).await.unwrap().unwrap(), delta);
    assert_eq!(next(&mut body).await.unwrap().unwrap(), ": keep-alive\n\n");
    kit.lose_provider();
    let last = next(&mut body).await.unwrap().unwrap();
    let last = std::str::from_utf8(&last).unwrap().strip_prefix("data: ").unwrap();
    let last: Value = serde_json::from_str(last.trim_end()).unwrap();
    assert_eq!(last["error"]["code"], "worker_lost");
}

#[tokio::test(start_paused = true)]
async fn a_bad_form_is_refused_in_openais_words_and_nothing_of_it_is_kept() {
    // If a refused form kept its memory, the last request would find none.
    let mut kit = Kit::with(|_, limits| limits.bodies = 64 << 10);
    serving(&kit);
    let big = vec![b'x'; 40 << 10];
    let file = ("name=file; filename=a", &big[..]);
    let whole = form(&[file, ("name=model", b"m")]);
    let cut = whole[..whole.len() - 4].to_vec();
    let cases = [
        (KIND, cut, "its last boundary is missing", Value::Null),
        (KIND, form(&[file]), "has no `model`", "model".into()),
        (KIND, form(&[("name=model", b"m"), file, ("name=model", b"m")]), "twice", "model".into()),
        (KIND, form(&[("name=model", &big)]), "longer than 256 bytes", "model".into()),
        (
            KIND,
            form(&[file, ("name=model", b"m"), ("name=stream", b"2")]),
            "true or",
            "stream".into(),
        ),
        (KIND, big.clone(), "does not begin", Value::Null),
        (KIND, Vec::new(), "its last boundary is missing", Value::Null),
        ("multipart/form-data", whole.clone(), "must have one boundary", Value::Null),
    ];
    for path in
        [TRANSCRIPTIONS, "/v1/audio/translations", "/v1/images/edits", "/v1/images/variations"]
    {
        for (kind, body, words, param) in &cases {
            let (status, error) = json_of(kit.send(posted(path, kind, body.clone())).await).await;
            let message = error["error"]["message"].as_str().unwrap();
            assert!(status == 400 && message.contains(words), "{path}: {status} {message}");
            assert_eq!(error["error"]["type"], "invalid_request_error");
            assert_eq!(error["error"]["param"], *param, "{message}");
        }
    }
    assert!(kit.scheduler.is_idle());
    let (_response, assignment) =
        kit.send_for(posted(TRANSCRIPTIONS, KIND, whole.clone()), head(&[])).await;
    assert_eq!(assignment.request.body, whole);
}

#[tokio::test(start_paused = true)]
async fn a_form_over_the_bound_is_refused_before_it_is_read() {
    let kit = Kit::with(|_, limits| limits.max_body = 1000);
    serving(&kit);
    let big = form(&[("name=file; filename=a", &[0; 1000]), ("name=model", b"m")]);
    let (status, error) = json_of(kit.send(posted(TRANSCRIPTIONS, KIND, big)).await).await;
    assert_eq!(status, 413);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("limit of 1000 bytes"), "{message}");
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_form_is_taken_where_files_are_and_json_everywhere() {
    let mut kit = Kit::new();
    serving(&kit);
    let form = posted("/v1/audio/speech", KIND, upload("m"));
    let (status, error) = json_of(kit.send(form).await).await;
    let words = "the content type must be application/json, not multipart/form-data";
    assert_eq!((status, &error["error"]["message"]), (415, &words.into()));
    let text = posted(TRANSCRIPTIONS, "audio/wav", "RIFF");
    let (status, error) = json_of(kit.send(text).await).await;
    let words = "the content type must be application/json or multipart/form-data, not audio/wav";
    assert_eq!((status, &error["error"]["message"]), (415, &words.into()));
    let body = r#"{"model":"m","images":["data:,"]}"#;
    let json = posted("/v1/images/edits", "application/json", body);
    let (_response, assignment) = kit.send_for(json, head(&[])).await;
    assert_eq!(assignment.request.body, body);
}

#[tokio::test(start_paused = true)]
async fn only_a_provider_that_says_so_is_asked_and_the_error_tells_what_there_is() {
    let kit = Kit::new();
    for path in Endpoint::ALL.map(Endpoint::path) {
        let Some(endpoint) = Endpoint::of_path(path).filter(|it| it.is_untranslated()) else {
            continue;
        };
        let request = posted(path, "application/json", r#"{"model":"m"}"#);
        let (status, error) = json_of(kit.send(request).await).await;
        let error = &error["error"];
        assert_eq!((status, &error["code"]), (404, &"endpoint_not_served".into()), "{path}");
        let message = error["message"].as_str().unwrap();
        let words = format!("{path} is none of /v1/chat/completions, /v1/completions");
        assert!(message.contains(&words), "{message}");
        assert_eq!(message.contains("the stock protocol"), endpoint.may_be_bytes(), "{message}");
    }
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn every_path_of_json_passes_unchanged_both_ways() {
    use Endpoint::{ImageGenerations, Moderations, Rerank, Score};
    let mut kit = Kit::new();
    kit.serves(&["m"], &[ImageGenerations, Moderations, Rerank, Score]);
    for endpoint in [ImageGenerations, Moderations, Rerank, Score] {
        let body = r#"{"x":1.50, "model":"m","query":"q","documents":["a"]}"#;
        let json = head(&[("content-type", "application/json"), ("content-length", "13")]);
        let answer = r#"{"odd" : 1.0}"#;
        let response = kit.post_for_all(endpoint.path(), body, json, answer).await;
        assert_eq!(response.headers()["content-length"], "13");
        assert_eq!(text(response).await, answer, "{endpoint}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_errors_of_rankings_are_read_by_each_of_its_clients() {
    let kit = Kit::new();
    let (status, error) =
        json_of(kit.send(posted("/v1/rerank", "application/json", "{}")).await).await;
    let words = Value::from("the request body has no `model`");
    assert_eq!(status, 400);
    let all = [&error["message"], &error["detail"], &error["error"]["message"]];
    assert_eq!(all, [&words; 3]);
    let names: Map<String, Value> = error.as_object().unwrap().clone();
    assert!(names["id"].as_str().unwrap().starts_with("r-"), "{names:?}");
}
