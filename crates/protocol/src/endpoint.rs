//! Detects from an answer whether a backend serves an endpoint at all.

use serde::Deserialize;
use serde_json::value::RawValue;

/// LM Studio's error for an unknown path, which it sends with status 200.
const UNEXPECTED: &str = "unexpected endpoint or method";

/// The bodies with which servers report that there is nothing at a path: those of Go, Starlette and
/// aiohttp.
const NO_PATH: [&str; 4] = ["not found", "404 page not found", "404: not found", "404 not found"];

/// The body of FastAPI, and so of vLLM.
const NO_PATH_DETAIL: &str = "Not Found";

/// The message of llama.cpp, whose `code` is 404.
const NO_PATH_MESSAGE: &str = "File Not Found";

/// Whether an answer means that its path is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// It says nothing about the path.
    No,
    /// It may be about something in the request, such as an image or a tool.
    Perhaps,
    /// It is about the path.
    Surely,
}

/// Whether this answer to a POST means that `path` is not served, for any model.
///
/// Only a 404, 405 or 501 can mean that, and only if it is not about the model: its body contains
/// neither the word "model" nor the model's name. (An empty `model` does not count as a name.) Such
/// an answer does mean it if it is a 405, or if its body is empty, is HTML, names the path, or is
/// what a known server says about an unknown path. Any other answer below 500 means it if its error
/// is LM Studio's "Unexpected endpoint or method".
///
/// The body may be cut off; the missing rest is assumed not to matter.
pub fn missing(status: u16, body: &[u8], path: &str, model: &str) -> Missing {
    match status {
        404 | 405 | 501 => {
            let text = String::from_utf8_lossy(body).to_lowercase();
            match speaks_of(&text, model) {
                true => Missing::No,
                false if status == 405 || is_of_path(body, text.trim(), path) => Missing::Surely,
                false => Missing::Perhaps,
            }
        }
        200..=499 if error_words(body).is_some_and(|words| is_unexpected(&words)) => {
            Missing::Surely
        }
        _ => Missing::No,
    }
}

/// Whether an error's body, `text` in lower case, is about the path.
fn is_of_path(body: &[u8], text: &str, path: &str) -> bool {
    text.is_empty()
        || text.starts_with('<')
        || text.contains(path)
        || text.contains(UNEXPECTED)
        || NO_PATH.contains(&text)
        || is_of_known_server(body)
}

/// Whether this is exactly what FastAPI or llama.cpp answer for an unknown path, with nothing else.
fn is_of_known_server(body: &[u8]) -> bool {
    let detail = serde_json::from_slice::<Detail>(body);
    let coded = serde_json::from_slice::<Coded>(body).map(|coded| coded.error);
    detail.is_ok_and(|told| told.detail == NO_PATH_DETAIL)
        || coded.is_ok_and(|error| error.code == 404 && error.message == NO_PATH_MESSAGE)
}

/// Whether an answer with this status may turn out to mean that its path is [`missing`], once more
/// of its body has arrived than these first bytes.
pub fn may_be_missing(status: u16, start: &[u8]) -> bool {
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

/// The only field: with further fields the error would be about something else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Detail {
    detail: String,
}

#[derive(Deserialize)]
struct Coded {
    error: CodedError,
}

#[derive(Deserialize)]
struct CodedError {
    code: u16,
    message: String,
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

    const PATH: &str = "/v1/messages";

    #[test]
    fn paths_that_are_not_there_are_known_by_the_words_of_every_server() {
        let cases = [
            (
                404,
                r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#,
                "llama.cpp",
            ),
            (404, r#"{"detail":"Not Found"}"#, "vLLM"),
            (405, r#"{"detail":"Method Not Allowed"}"#, "FastAPI"),
            (404, "404 page not found", "Ollama"),
            (404, "404: Not Found", "aiohttp"),
            (404, "Not Found\n", "Starlette"),
            (404, "", "TGI"),
            (405, "", "TGI"),
            (501, "", "a server without POST"),
            (404, "<html><h1>404 Not Found</h1><hr>nginx</html>", "a proxy"),
            (404, "<!DOCTYPE html>\n<pre>Cannot POST /v1/messages</pre>", "Express"),
            (
                404,
                r#"{"message":"Route POST:/v1/messages not found","error":"Not Found"}"#,
                "Fastify",
            ),
            (404, r#"{"error":"Unexpected endpoint or method. (POST /v1/x)"}"#, "LM Studio"),
            (200, r#"{"error":"Unexpected endpoint or method. (POST /v1/messages)"}"#, "LM Studio"),
            (
                400,
                r#"{ "error": {"message":"Unexpected endpoint or method. (POST /v1/x)"}}"#,
                "LM Studio",
            ),
        ];
        for (status, body, who) in cases {
            for model in ["llama3:8b", ""] {
                assert_eq!(missing(status, body.as_bytes(), PATH, model), Missing::Surely, "{who}");
            }
            assert!(may_be_missing(status, body.as_bytes()), "{who}");
            assert!(may_be_missing(status, &body.as_bytes()[..body.len().min(3)]), "{who}");
        }
    }

    #[test]
    fn an_error_about_something_in_the_request_is_no_sure_sign() {
        let cases = [
            (404, r#"{"error":{"message":"image not found","type":"not_found_error"}}"#),
            (404, r#"{"error":{"code":404,"message":"file not found"}}"#),
            (404, r#"{"error":{"message":"File Not Found"}}"#),
            (404, r#"{"error":"Not Found"}"#),
            (404, r#"{"detail":"Tool 'search' not found"}"#),
            (404, r#"{"detail":"Not Found","file":"a.png"}"#),
            (404, "no such tool"),
            (404, "\u{fffd}"),
            (501, r#"{"error":{"code":501,"message":"This server does not support embeddings."}}"#),
        ];
        for (status, body) in cases {
            let told = missing(status, body.as_bytes(), PATH, "llama3:8b");
            assert_eq!(told, Missing::Perhaps, "{body}");
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
            assert_eq!(missing(status, body.as_bytes(), PATH, "llama3:8b"), Missing::No, "{who}");
        }
    }

    #[test]
    fn words_are_whole_words() {
        let told = |body: &[u8]| missing(404, body, PATH, "gpt4");
        assert_eq!(told(b"remodelled, modelless, gpt4o"), Missing::Perhaps);
        assert_eq!(told(b"no (gpt4)"), Missing::No);
        assert_eq!(told("gpt4\u{e9}".as_bytes()), Missing::Perhaps);
        assert_eq!(told(b"\xff\xfe"), Missing::Perhaps);
    }

    #[test]
    fn an_answer_is_suspected_only_as_long_as_it_may_be_an_error() {
        for start in ["", " ", "{", "{ \n\"err", "{\"error\" : \"x"] {
            assert!(may_be_missing(200, start.as_bytes()), "{start:?}");
        }
        for start in ["[", "{\"id\"", "{\"errors\"", "data: {}", "\u{feff}{"] {
            assert!(!may_be_missing(200, start.as_bytes()), "{start:?}");
        }
        assert!(may_be_missing(404, b"anything"));
        assert!(!may_be_missing(500, b""));
    }
}
