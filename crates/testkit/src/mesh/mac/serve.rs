//! The task of a link, which answers one message after the other.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, interval_at},
};

use super::{files, link::Shared};

pub(super) fn is_for_it(kind: &str) -> bool {
    matches!(kind, "heartbeat" | "inferenceRequest" | "modelQuery" | "modelTransferRequest")
}

/// Answers one message after the other, until the other end is gone.
pub(super) async fn serve(shared: Arc<Shared>, mut waiting: mpsc::Receiver<(String, Value)>) {
    let every = shared.settings.heartbeat;
    let mut beat = interval_at(Instant::now() + every, every);
    loop {
        tokio::select! {
            said = waiting.recv() => match said {
                Some((kind, body)) => answer(&shared, &kind, &body).await,
                None => return,
            },
            _ = beat.tick() => shared.say("heartbeat", &shared.settings.heartbeat()).await,
        }
    }
}

async fn answer(shared: &Shared, kind: &str, body: &Value) {
    match kind {
        "heartbeat" => shared.say("heartbeatAck", &shared.settings.heartbeat()).await,
        "inferenceRequest" => infer(shared, body).await,
        "modelQuery" => query(shared, body).await,
        _ => files::send(shared, body).await,
    }
}

async fn infer(shared: &Shared, body: &Value) {
    let (script, models) = (&shared.settings.script, &shared.settings.models);
    let id = json!(body["requestID"].as_str().map(str::to_uppercase));
    let model = &body["request"]["model"];
    if !models.iter().any(|served| *served == *model) {
        let message = format!("Model {model} is not loaded");
        let error = json!({"requestID": id, "errorMessage": message});
        return shared.say("inferenceError", &error).await;
    }
    let chunks = script.chunks(&models[0]);
    for (number, chunk) in chunks.iter().enumerate() {
        if number > 0 {
            script.pass().await;
        }
        shared.say("inferenceChunk", &json!({"requestID": id, "chunk": chunk})).await;
    }
    let (kind, mut end) = script.end(&id, chunks.len());
    // Macs know neither.
    for unknown in ["tokensOut", "code"] {
        end.as_object_mut().expect("an object").remove(unknown);
    }
    shared.say(kind, &end).await;
}

async fn query(shared: &Shared, body: &Value) {
    let id = body["modelID"].as_str().unwrap_or_default();
    let answer = match shared.settings.files.get(id) {
        Some(files) => {
            let size: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
            json!({"modelID": id, "available": true, "totalSizeBytes": size})
        }
        None => json!({"modelID": id, "available": false}),
    };
    shared.say("modelQueryResponse", &answer).await;
}
