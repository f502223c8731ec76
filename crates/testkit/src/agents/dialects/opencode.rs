//! opencode: `opencode run --format=json [--session=ID]`. Nothing says that it is done; it ends.

use std::process::exit;

use serde_json::{Value, json};

use super::{print, prompt};
use crate::agents::{
    memory::Memory,
    script::{End, Life, Voice, complain, perform},
    setting::{Setting, new_id, variable},
    tools::{Server, pairs, texts},
};

pub(super) fn run(setting: &Setting) {
    let prompt = prompt();
    let memory = match setting.value("--session") {
        None => Memory::begin(setting, Some(&format!("ses_{}", new_id()))),
        Some(id) => Memory::find(setting, id).unwrap_or_else(|| {
            complain("Error: NotFoundError: Session not found");
            exit(1)
        }),
    };
    let mut opencode = Opencode { id: memory.id.clone() };
    opencode.line("step_start", json!({ "type": "step-start" }));
    let mut life = Life::default();
    if let End::Done(_) = perform(&prompt, &mut opencode, setting, &memory, &mut life) {
        let tokens = json!({
            "input": 50, "output": 5, "reasoning": 0, "cache": { "read": 0, "write": 0 },
        });
        let part = json!({
            "type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0.5,
        });
        opencode.line("step_finish", part);
    }
    life.end(0);
}

struct Opencode {
    id: String,
}

impl Opencode {
    fn line(&self, kind: &str, mut part: Value) {
        part["id"] = json!(format!("prt_{}", new_id()));
        part["sessionID"] = json!(self.id);
        let line = json!({ "type": kind, "timestamp": 1, "sessionID": self.id, "part": part });
        print(&line.to_string());
    }
}

impl Voice for Opencode {
    fn say(&mut self, text: &str) {
        self.line("text", json!({ "type": "text", "text": text }));
    }

    /// A tool is reported only when it is done.
    fn uses(&mut self, tool: &str, input: &Value, ok: bool, output: &str) {
        let state = match ok {
            true => json!({ "status": "completed", "input": input, "output": output }),
            false => json!({ "status": "error", "input": input, "error": output }),
        };
        let part = json!({ "type": "tool", "callID": new_id(), "tool": tool, "state": state });
        self.line("tool_use", part);
    }

    fn server(&self, setting: &Setting) -> Option<Server> {
        let config = setting.json(variable("OPENCODE_CONFIG").as_deref());
        let entry = config["mcp"].as_object()?.values().next()?;
        let mut command = texts(&entry["command"]).into_iter();
        let program = command.next()?;
        Some(Server {
            command: program,
            args: command.collect(),
            env: pairs(&entry["environment"]),
        })
    }
}
