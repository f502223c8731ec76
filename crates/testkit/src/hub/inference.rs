//! A room's requests: one of a participant at a time, and nothing is queued.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::tcp::WriteHalf, sync::mpsc, time::Instant};

use super::{
    ApiRequest, Shared,
    plane::write,
    rooms::Chosen,
    tunnel::{Order, chat, decoded},
};

/// Frames of an answer that are not read yet.
const MAX_FRAMES: usize = 10_000;

pub(super) async fn answer(
    asked: &ApiRequest,
    code: &str,
    path: &[&str],
    shared: &Arc<Shared>,
    out: &mut WriteHalf<'_>,
) {
    let code = code.to_uppercase();
    if !shared.state().rooms.contains_key(&code) {
        return write(out, 404, &json!({"error": "Room not found"})).await;
    }
    match (asked.method.as_str(), path) {
        ("GET", ["models"]) => {
            let participants = shared.state().rooms[&code].participants();
            let connected =
                participants.iter().filter(|one| one["connection"]["connected"] == true);
            let models: Vec<Value> = connected.map(model).collect();
            write(out, 200, &json!({"object": "list", "data": models})).await;
        }
        ("POST", ["chat", "completions"]) => chat_completions(asked, &code, shared, out).await,
        _ => write(out, 404, &json!({"error": "Not found"})).await,
    }
}

fn model(one: &Value) -> Value {
    json!({
        "id": one["id"], "object": "model", "created": 0, "owned_by": one["nickname"],
        "gambi": {
            "nickname": one["nickname"], "model": one["model"], "endpoint": one["endpoint"],
            "capabilities": one["capabilities"], "connection": one["connection"],
        },
    })
}

async fn chat_completions(
    asked: &ApiRequest,
    code: &str,
    shared: &Arc<Shared>,
    out: &mut WriteHalf<'_>,
) {
    let mut body = asked.json();
    let wanted = body["model"].as_str().unwrap_or_default().to_owned();
    let chosen = shared.state().rooms.get_mut(code).and_then(|room| room.choose(&wanted));
    let Some(Chosen { id, model, orders }) = chosen else {
        let words = "No available participant for the requested model";
        return write(out, 404, &json!({"error": words})).await;
    };
    let request = shared.state().id();
    let since = Instant::now();
    let event = |model: &str| json!({"requestId": request, "participantId": id, "model": model, "protocol": "chatCompletions"});
    tell(shared, code, "llm.request", &event(&wanted));
    body["model"] = json!(model);
    let (answer, mut frames) = mpsc::channel(MAX_FRAMES);
    let frame = chat(&request, &body, body["stream"] == true);
    let sent = orders.send(Order::Ask(request.clone(), frame, answer)).await;
    drop(orders);
    let passed = if sent.is_ok() { pass(&mut frames, out).await } else { Err("gone".to_owned()) };
    if let Some(room) = shared.state().rooms.get_mut(code) {
        room.idle(&id);
    }
    report_end(shared, code, event(&model), since, passed);
}

/// Announces the end of a request, whose `event` has the fields that are the same in all events about it.
fn report_end(
    shared: &Shared,
    code: &str,
    mut event: Value,
    since: Instant,
    passed: Result<(), String>,
) {
    let ms = since.elapsed().as_millis();
    match passed {
        Ok(()) => {
            event["metrics"] = json!({"ttftMs": ms, "durationMs": ms});
            tell(shared, code, "llm.complete", &event);
        }
        Err(error) => {
            event["nickname"] = event["participantId"].clone();
            (event["endpoint"], event["stage"]) = (json!(""), json!("stream"));
            event["error"] = json!(error);
            tell(shared, code, "llm.error", &event);
        }
    }
}

async fn pass(frames: &mut mpsc::Receiver<Value>, out: &mut WriteHalf<'_>) -> Result<(), String> {
    let mut begun = false;
    while let Some(said) = frames.recv().await {
        match said["type"].as_str() {
            Some("tunnel.response.start") => {
                begun = true;
                let kind = said["headers"]["content-type"].as_str().unwrap_or("application/json");
                let head = format!(
                    "HTTP/1.1 {} X\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n",
                    said["status"]
                );
                out.write_all(head.as_bytes()).await.map_err(|error| error.to_string())?;
            }
            Some("tunnel.response.chunk") => {
                out.write_all(&decoded(&said)).await.map_err(|error| error.to_string())?;
            }
            Some("tunnel.response.end") => return Ok(()),
            _ => {
                let error = format!("Error: {}", said["message"].as_str().unwrap_or_default());
                if !begun {
                    let words = format!("Failed to proxy request: {error}");
                    write(out, 502, &json!({"error": words})).await;
                }
                return Err(error);
            }
        }
    }
    if !begun {
        write(out, 502, &json!({"error": "Failed to proxy request"})).await;
    }
    Err("Error: Participant tunnel disconnected.".to_owned())
}

fn tell(shared: &Shared, code: &str, name: &str, data: &Value) {
    if let Some(room) = shared.state().rooms.get(code) {
        room.tell(name, data);
    }
}
