//! Google's API as Gemini CLI asks it with a key of its own: a model in the hands of a test answers it, always
//! the same.

use serde_json::{Value, json};
use testkit::{Gate, MockBackend, Received, Reply};

/// The key that it wants to see.
pub(super) const KEY: &str = "a-key-of-googles";

/// Its answer.
pub(super) const ANSWER: &str = "The field is quiet.";

/// The command that it runs when it is asked to leave a note.
pub(super) const COMMAND: &str = "touch note-42";

/// A server that answers.
pub(super) async fn start() -> MockBackend {
    let backend = MockBackend::start(&[]).await;
    backend.answer_with(reply);
    backend
}

fn reply(received: &Received) -> Reply {
    if received.header("x-goog-api-key") != Some(KEY) {
        let message = "API key not valid. Please pass a valid API key.";
        let error = json!({"code": 400, "message": message, "status": "INVALID_ARGUMENT"});
        return Reply::json(400, &json!({ "error": error }));
    }
    let path = received.target.split('?').next().unwrap_or_default();
    let answer = answer(&received.json());
    match path.rsplit(':').next().unwrap_or_default() {
        "countTokens" => Reply::json(200, &json!({"totalTokens": 7})),
        "generateContent" => Reply::json(200, &answer),
        "streamGenerateContent" => {
            Reply::stream([format!("data: {answer}\r\n\r\n")], &Gate::opened())
        }
        _ => Reply::file_not_found(),
    }
}

fn answer(request: &Value) -> Value {
    json!({
        "candidates": [{
            "content": {"role": "model", "parts": [part(request)]},
            "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 4, "totalTokenCount": 11},
        "modelVersion": "gemini-2.5-flash",
    })
}

/// A tool's result ends the calling.
fn part(request: &Value) -> Value {
    let last = request["contents"].as_array().and_then(|all| all.last()).unwrap_or(&Value::Null);
    let parts = || last["parts"].as_array().into_iter().flatten();
    let asks = parts().any(|part| part["text"].as_str().is_some_and(|it| it.contains("a note")));
    let knows = parts().any(|part| part["functionResponse"].is_object());
    let offered = request["tools"].to_string().contains("\"run_shell_command\"");
    match asks && offered && !knows {
        true => {
            json!({"functionCall": {"name": "run_shell_command", "args": {"command": COMMAND}}})
        }
        false => json!({ "text": ANSWER }),
    }
}
