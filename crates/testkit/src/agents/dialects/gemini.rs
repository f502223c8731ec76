//! Gemini CLI: `gemini --output-format=stream-json [--resume=ID]`.

use std::process::exit;

use serde_json::{Value, json};

use super::{pieces, print, prompt};
use crate::agents::{
    memory::Memory,
    model::gemini_settings,
    script::{End, Life, Voice, complain, perform},
    setting::{Setting, new_id},
    tools::Server,
};

pub(super) fn run(setting: &Setting) {
    let prompt = prompt();
    let memory = match setting.value("--resume") {
        None => Memory::begin(setting, None),
        Some(id) => Memory::find(setting, id).unwrap_or_else(|| {
            complain(&format!("Error resuming session: Invalid session identifier \"{id}\"."));
            exit(42)
        }),
    };
    let model = setting.value("--model").unwrap_or("gemini-fake");
    line(json!({ "type": "init", "session_id": memory.id, "model": model }));
    line(json!({ "type": "message", "role": "user", "content": prompt }));
    let mut life = Life::default();
    if let End::Done(_) = perform(&prompt, &mut Gemini, setting, &memory, &mut life) {
        let stats = json!({
            "total_tokens": 33, "input_tokens": 30, "output_tokens": 3, "duration_ms": 5,
            "tool_calls": 0,
        });
        line(json!({ "type": "result", "status": "success", "stats": stats }));
    }
    life.end(0);
}

fn line(mut line: Value) {
    line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
    print(&line.to_string());
}

struct Gemini;

impl Voice for Gemini {
    fn say(&mut self, text: &str) {
        for piece in pieces(text) {
            line(
                json!({ "type": "message", "role": "assistant", "content": piece, "delta": true }),
            );
        }
    }

    fn uses(&mut self, tool: &str, input: &Value, ok: bool, output: &str) {
        let id = new_id();
        line(json!({ "type": "tool_use", "tool_name": tool, "tool_id": id, "parameters": input }));
        let status = if ok { "success" } else { "error" };
        line(json!({ "type": "tool_result", "tool_id": id, "status": status, "output": output }));
    }

    fn server(&self, setting: &Setting) -> Option<Server> {
        let config = setting.json(gemini_settings().as_deref());
        Server::read(config["mcpServers"].as_object()?.values().next()?)
    }
}
