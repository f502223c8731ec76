//! A model server of sound, pictures, judgements and rankings, in the shapes that their makers document. It tells what
//! it got, so that a test can see that nothing was lost on the way.
//!
//! | Path | Answers |
//! | --- | --- |
//! | `/v1/audio/transcriptions` | how long the file is, and its digest; a stream of events with `stream=true` |
//! | `/v1/audio/translations` | the same |
//! | `/v1/audio/speech` | [`sound`] of the text, in pieces; a stream of events with `"stream_format": "sse"` |
//! | `/v1/images/generations` | a picture with the prompt in it; two events with `"stream": true` |
//! | `/v1/images/edits`, `/v1/images/variations` | a picture with what came in it |
//! | `/v1/moderations` | the word `bad` is flagged |
//! | `/v1/rerank` | the longest document first, in Jina's and Cohere's shape |
//! | `/v1/score` | a score for each text, in vLLM's shape |

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Gate, MockBackend, Received, Reply};

const PATHS: [&str; 9] = [
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/audio/speech",
    "/v1/images/generations",
    "/v1/images/edits",
    "/v1/images/variations",
    "/v1/moderations",
    "/v1/rerank",
    "/v1/score",
];

/// A model server with these models at the paths above.
pub async fn media_backend(models: &[&str]) -> MockBackend {
    let backend = MockBackend::start(models).await;
    backend.answers_only(&PATHS);
    backend.answer_with(reply);
    backend
}

/// The sound of a text: bytes of every value, which are no text and hold the ends of lines and streams.
pub fn sound(text: &str) -> Vec<u8> {
    let every: Vec<u8> = (0..=255).collect();
    [b"ID3\x04\r\n\r\ndata: [DONE]\n\n", text.as_bytes(), &every.repeat(300)].concat()
}

/// A form of these fields: the name with its other parameters, and the value.
pub fn form(boundary: &str, fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; {name}\r\n\r\n");
        body.extend_from_slice(&[head.as_bytes(), value, b"\r\n"].concat());
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    body
}

/// The fields of a form, by their names: a plain reading, for what is known to be well formed.
pub fn form_fields(received: &Received) -> Vec<(String, Vec<u8>)> {
    let kind = received.header("content-type").unwrap_or_default();
    let boundary = kind.split("boundary=").nth(1).unwrap_or_default();
    let boundary = boundary.split(';').next().unwrap_or_default().trim_matches('"');
    // One character for each byte, so that text can be split.
    let text: String = received.body.iter().copied().map(char::from).collect();
    let text = format!("\r\n{text}");
    let delimiter = format!("\r\n--{boundary}");
    let parts = text.split(&delimiter).skip(1);
    parts.filter_map(|part| field(part.strip_prefix("\r\n")?)).collect()
}

fn field(part: &str) -> Option<(String, Vec<u8>)> {
    let (head, value) = part.split_once("\r\n\r\n")?;
    let name = head.split("; name=").nth(1)?.split(['"', ';', '\r']).find(|it| !it.is_empty())?;
    Some((name.to_owned(), value.chars().map(|byte| byte as u8).collect()))
}

/// The fields of a form, by their names.
struct Fields(Vec<(String, Vec<u8>)>);

impl Fields {
    fn text(&self, name: &str) -> String {
        let value = self.0.iter().find(|(found, _)| found == name);
        value.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
    }

    /// The lengths and digests of all files, in order, behind the model's name.
    fn words(&self) -> String {
        let files = self.0.iter().filter(|(name, _)| is_file(name));
        let files = files.map(|(_, file)| format!(" {} {}", file.len(), digest(file)));
        self.text("model") + &files.collect::<String>()
    }
}

fn is_file(name: &str) -> bool {
    matches!(name, "file" | "image" | "image[]" | "mask")
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..8])
}

fn reply(received: &Received) -> Reply {
    let body = received.json();
    match received.target.as_str() {
        "/v1/audio/transcriptions" => transcription(&Fields(form_fields(received))),
        "/v1/audio/translations" => {
            Reply::json(200, &json!({"text": Fields(form_fields(received)).words()}))
        }
        "/v1/audio/speech" => speech(&body),
        "/v1/images/generations" if body["stream"] == true => streamed_picture(&body),
        "/v1/images/generations" => picture(&text(&body["prompt"])),
        "/v1/images/edits" | "/v1/images/variations" => {
            picture(&Fields(form_fields(received)).words())
        }
        "/v1/moderations" => moderation(&body),
        "/v1/rerank" => ranking(&body),
        _ => scores(&body),
    }
}

fn transcription(fields: &Fields) -> Reply {
    let words = fields.words();
    let usage = json!({
        "type": "tokens", "input_tokens": 14, "output_tokens": 4, "total_tokens": 18,
        "input_token_details": {"text_tokens": 0, "audio_tokens": 14},
    });
    if fields.text("stream") == "true" {
        let mut events: Vec<Value> = words
            .split_inclusive(' ')
            .map(|word| json!({"type": "transcript.text.delta", "delta": word}))
            .collect();
        events.push(json!({"type": "transcript.text.done", "text": words, "usage": usage}));
        return stream(&events);
    }
    match fields.text("response_format").as_str() {
        "text" | "srt" | "vtt" => {
            Reply::full(200, &[("content-type", "text/plain; charset=utf-8")], words + "\n")
        }
        _ => Reply::json(200, &json!({"text": words, "usage": usage})),
    }
}

fn speech(body: &Value) -> Reply {
    let sound = sound(&text(&body["input"]));
    if body["stream_format"] == "sse" {
        let usage = json!({"input_tokens": 5, "output_tokens": 9, "total_tokens": 14});
        let delta =
            |piece| json!({"type": "speech.audio.delta", "audio": BASE64_STANDARD.encode(piece)});
        let mut events: Vec<Value> = sound.chunks(30_000).map(delta).collect();
        events.push(json!({"type": "speech.audio.done", "usage": usage}));
        return stream(&events);
    }
    let kind = match body["response_format"].as_str() {
        Some("wav") => "audio/wav",
        Some("pcm") => "audio/pcm",
        Some("opus") => "audio/opus",
        _ => "audio/mpeg",
    };
    let pieces: Vec<&[u8]> = sound.chunks(10_000).collect();
    Reply::stream_with(200, &[("content-type", kind)], pieces, &Gate::opened())
}

fn picture(words: &str) -> Reply {
    Reply::json(
        200,
        &json!({
            "created": 1, "data": [{"b64_json": BASE64_STANDARD.encode(words)}],
            "usage": {"input_tokens": 6, "output_tokens": 8, "total_tokens": 14},
        }),
    )
}

fn streamed_picture(body: &Value) -> Reply {
    let image = BASE64_STANDARD.encode(text(&body["prompt"]));
    let usage = json!({"input_tokens": 6, "output_tokens": 8, "total_tokens": 14});
    stream(&[
        json!({"type": "image_generation.partial_image", "b64_json": image, "partial_image_index": 0,
            "created_at": 1, "background": "auto", "output_format": "png", "quality": "low", "size": "auto"}),
        json!({"type": "image_generation.completed", "b64_json": image, "usage": usage,
            "created_at": 1, "background": "auto", "output_format": "png", "quality": "low", "size": "auto"}),
    ])
}

fn moderation(body: &Value) -> Reply {
    let inputs = match &body["input"] {
        Value::Array(inputs) => inputs.clone(),
        one => vec![one.clone()],
    };
    let judged = inputs.iter().map(|input| {
        let flagged = text(input).contains("bad");
        json!({
            "flagged": flagged, "categories": {"violence": flagged},
            "category_scores": {"violence": if flagged { 0.9 } else { 0.1 }},
            "category_applied_input_types": {"violence": ["text"]},
        })
    });
    let results: Vec<Value> = judged.collect();
    Reply::json(200, &json!({"id": "modr-1", "model": body["model"], "results": results}))
}

fn ranking(body: &Value) -> Reply {
    let documents = body["documents"].as_array().cloned().unwrap_or_default();
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(text(&documents[*at]).len()));
    let most = body["top_n"].as_u64().map_or(order.len(), |most| most as usize);
    let results: Vec<Value> = order
        .into_iter()
        .take(most)
        .map(|at| {
            let score = 1.0 - 1.0 / (1.0 + text(&documents[at]).len() as f64);
            json!({"index": at, "relevance_score": score, "document": {"text": documents[at]}})
        })
        .collect();
    Reply::json(
        200,
        &json!({
            "id": "rank-1", "object": "list", "model": body["model"], "results": results,
            "usage": {"total_tokens": 12},
            "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
        }),
    )
}

fn scores(body: &Value) -> Reply {
    let texts = match &body["text_2"] {
        Value::Array(texts) => texts.len(),
        _ => 1,
    };
    let score = |at| json!({"index": at, "object": "score", "score": 0.5});
    Reply::json(
        200,
        &json!({
            "id": "score-1", "object": "list", "created": 1, "model": body["model"],
            "data": (0..texts).map(score).collect::<Vec<_>>(),
            "usage": {"prompt_tokens": 7, "total_tokens": 7, "completion_tokens": 0},
        }),
    )
}

fn stream(events: &[Value]) -> Reply {
    let events = events.iter().map(|event| format!("data: {event}\n\n"));
    Reply::stream(events, &Gate::opened())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    #[tokio::test]
    async fn it_tells_what_it_got() {
        let backend = media_backend(&["m"]).await;
        let client = Client::new(backend.address());
        let fields: [(&str, &[u8]); 2] =
            [("name=file; filename=\"a\"", b"\r\n\0"), ("name=\"model\"", b"m")];
        let request = client.request("POST", "/v1/audio/translations");
        let request = request.header("content-type", "multipart/form-data; boundary=\"b\"");
        let answer = request.body(form("b", &fields)).send().await;
        assert_eq!(answer.json()["text"], format!("m 3 {}", digest(b"\r\n\0")));
        let got = form_fields(&backend.request().await);
        assert_eq!(
            got,
            [("file".to_owned(), b"\r\n\0".to_vec()), ("model".to_owned(), b"m".to_vec())]
        );
        let spoken =
            client.post_json("/v1/audio/speech", &json!({"model": "m", "input": "hi"})).await;
        assert_eq!(
            (spoken.body.as_ref(), spoken.header("content-type")),
            (&*sound("hi"), Some("audio/mpeg"))
        );
    }
}
