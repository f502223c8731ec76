//! Detects from an answer whether a backend serves an endpoint at all.

use serde::Deserialize;
use serde_json::value::RawValue;

/// LM Studio's error for an unknown path, which it sends with status 200.
const UNEXPECTED: &str = "unexpected endpoint or method";

/// Whether this answer to a POST means that its path is not served, for any model.
///
/// That is a 404, 405 or 501 that is not about the model: the body contains neither the word
/// "model" nor the model's name. An empty `model` does not count as a name. It is also any other
/// answer below 500 whose error is LM Studio's "Unexpected endpoint or method".
///
/// The body may be cut off; the missing rest is assumed not to matter.
pub fn not_served(status: u16, body: &[u8], model: &str) -> bool {
    let text = String::from_utf8_lossy(body).to_lowercase();
    match status {
        404 | 405 | 501 => !speaks_of(&text, model),
        200..=499 => error_words(body).is_some_and(|words| is_unexpected(&words)),
        _ => false,
    }
}

/// Whether an answer with this status may turn out to be one that [`not_served`] means, once more
/// of its body has arrived than these first bytes.
pub fn may_be_unserved(status: u16, start: &[u8]) -> bool {
    match status {
        404 | 405 | 501 => true,
        200..=499 => {
            let told = start.iter().filter(|byte| !byte.is_ascii_whitespace());
            told.zip(ERROR_START).all(|(told, expected)| told == expected)
        }
        _ => false,
    }
}

/// How a JSON object begins whose first field is an error.
const ERROR_START: &[u8] = b"{\"error\":";

fn is_unexpected(words: &str) -> bool {
    words.to_lowercase().starts_with(UNEXPECTED)
}

/// The message of a JSON error: `{"error":"…"}` or `{"error":{"message":"…"}}`.
fn error_words(body: &[u8]) -> Option<String> {
    let Fields { error } = serde_json::from_slice(body).ok()?;
    let words = serde_json::from_str::<String>(error.get()).ok();
    words.or_else(|| Some(serde_json::from_str::<Message>(error.get()).ok()?.message))
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    error: &'a RawValue,
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

/// Whether a lower-cased text is about a model: about this one, or about models at all.
fn speaks_of(text: &str, model: &str) -> bool {
    let model = model.to_lowercase();
    ["model", "models", &model].into_iter().any(|word| holds_word(text, word))
}

/// Whether a text holds this, and neither a letter nor a digit right beside it.
fn holds_word(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return false;
    }
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_not_there_are_known_by_the_words_of_every_server() {
        let cases = [
            (
                404,
                r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#,
                "llama.cpp",
            ),
            (
                501,
                r#"{"error":{"code":501,"message":"This server does not support embeddings. Start it with `--embeddings`","type":"not_supported_error"}}"#,
                "llama.cpp without --embeddings",
            ),
            (404, r#"{"detail":"Not Found"}"#, "vLLM"),
            (405, r#"{"detail":"Method Not Allowed"}"#, "FastAPI"),
            (404, "404 page not found", "Ollama"),
            (404, "", "TGI"),
            (405, "", "TGI"),
            (404, "<html><h1>404 Not Found</h1><hr>nginx</html>", "a proxy"),
            (200, r#"{"error":"Unexpected endpoint or method. (POST /v1/messages)"}"#, "LM Studio"),
            (
                400,
                r#"{ "error": {"message":"Unexpected endpoint or method. (POST /v1/x)"}}"#,
                "LM Studio",
            ),
        ];
        for (status, body, who) in cases {
            assert!(not_served(status, body.as_bytes(), "llama3:8b"), "{who}");
            assert!(not_served(status, body.as_bytes(), ""), "{who}, probed");
            assert!(may_be_unserved(status, body.as_bytes()), "{who}");
            assert!(may_be_unserved(status, &body.as_bytes()[..body.len().min(3)]), "{who}");
        }
    }

    #[test]
    fn an_error_about_the_model_or_the_request_says_nothing_about_the_path() {
        let cases = [
            (
                404,
                r#"{"error":{"message":"model 'llama3:8b' not found","type":"not_found_error"}}"#,
                "Ollama",
            ),
            (
                404,
                r#"{"object":"error","message":"The model `llama3:8b` does not exist.","code":404}"#,
                "vLLM",
            ),
            (404, r#"{"error":{"message":"llama3:8b: no such thing"}}"#, "by its name alone"),
            (404, r#"{"error":{"code":"model_not_found","message":"gone"}}"#, "OpenAI"),
            (404, r#"{"error":"No Models loaded"}"#, "LM Studio"),
            (501, r#"{"error":{"message":"LLAMA3:8B cannot embed"}}"#, "in capitals"),
            (400, r#"{"error":{"message":"'messages' is required"}}"#, "llama.cpp"),
            (422, r#"{"detail":[{"msg":"Field required","type":"missing"}]}"#, "FastAPI"),
            (401, r#"{"error":"unauthorized"}"#, "a key"),
            (200, r#"{"choices":[]}"#, "an answer"),
            (200, r#"{"error":null,"output":"Unexpected endpoint or method."}"#, "an answer"),
            (200, "data: {\"error\":\"Unexpected endpoint or method.\"}\n\n", "a stream"),
            (500, r#"{"error":"Unexpected endpoint or method."}"#, "a broken server"),
            (503, "404 page not found", "a server that starts"),
        ];
        for (status, body, who) in cases {
            assert!(!not_served(status, body.as_bytes(), "llama3:8b"), "{who}");
        }
    }

    #[test]
    fn words_are_whole_words() {
        assert!(not_served(404, b"remodelled, modelless, gpt4o", "gpt4"));
        assert!(!not_served(404, b"no (gpt4)", "gpt4"));
        assert!(not_served(404, "gpt4\u{e9}".as_bytes(), "gpt4"));
        assert!(not_served(404, b"\xff\xfe", "gpt4"));
    }

    #[test]
    fn an_answer_is_suspected_only_as_long_as_it_may_be_an_error() {
        for start in ["", " ", "{", "{ \n\"err", "{\"error\" : \"x"] {
            assert!(may_be_unserved(200, start.as_bytes()), "{start:?}");
        }
        for start in ["[", "{\"id\"", "{\"errors\"", "data: {}", "\u{feff}{"] {
            assert!(!may_be_unserved(200, start.as_bytes()), "{start:?}");
        }
        assert!(may_be_unserved(404, b"anything"));
        assert!(!may_be_unserved(500, b""));
    }
}
