//! Codex: `codex exec --json [resume ID] -`.

use std::process::exit;

use serde_json::{Value, json};

use super::{print, prompt};
use crate::agents::{
    memory::Memory,
    script::{End, Life, Voice, complain, perform},
    setting::{Setting, variable},
    tools::{Server, texts},
};

pub(super) fn run(setting: &Setting) {
    if !setting.has("--json") || setting.args.last().map(String::as_str) != Some("-") {
        complain("error: unexpected arguments");
        exit(2);
    }
    let prompt = prompt();
    let resumed = setting.args.iter().position(|arg| arg == "resume");
    let memory = match resumed.and_then(|at| setting.args.get(at + 1)) {
        None => Memory::begin(setting, None),
        Some(id) => Memory::find(setting, id).unwrap_or_else(|| {
            complain(&format!("Error: thread/resume failed: no rollout found for thread id {id}"));
            exit(1)
        }),
    };
    print(&json!({ "type": "thread.started", "thread_id": memory.id }).to_string());
    print(&json!({ "type": "turn.started" }).to_string());
    let mut life = Life::default();
    let mut codex = Codex { items: 0 };
    if let End::Done(_) = perform(&prompt, &mut codex, setting, &memory, &mut life) {
        // Of the whole thread.
        let turns = memory.prompts().len();
        let usage = json!({
            "input_tokens": 100 * turns, "cached_input_tokens": 0, "output_tokens": 10 * turns,
        });
        print(&json!({ "type": "turn.completed", "usage": usage }).to_string());
    }
    life.end(0);
}

struct Codex {
    items: u32,
}

impl Codex {
    fn id(&mut self) -> String {
        self.items += 1;
        format!("item_{}", self.items)
    }
}

impl Voice for Codex {
    fn say(&mut self, text: &str) {
        let item = json!({ "id": self.id(), "type": "agent_message", "text": text });
        print(&json!({ "type": "item.completed", "item": item }).to_string());
    }

    fn uses(&mut self, tool: &str, _: &Value, ok: bool, output: &str) {
        let mut item = json!({
            "id": self.id(), "type": "command_execution", "command": tool,
            "aggregated_output": "", "exit_code": null, "status": "in_progress",
        });
        print(&json!({ "type": "item.started", "item": item }).to_string());
        item["aggregated_output"] = json!(output);
        item["exit_code"] = json!(i32::from(!ok));
        item["status"] = json!(if ok { "completed" } else { "failed" });
        print(&json!({ "type": "item.completed", "item": item }).to_string());
    }

    /// Its environment is that of Codex, as far as it is named.
    fn server(&self, setting: &Setting) -> Option<Server> {
        let keys = setting.config_keys();
        let name =
            keys.filter_map(|key| key.strip_prefix("mcp_servers.")?.split('.').next()).next();
        let of = |key: &str| setting.config(&format!("mcp_servers.{}.{key}", name?));
        let passed = texts(&of("env_vars").unwrap_or_default());
        Some(Server {
            command: of("command")?.as_str()?.to_owned(),
            args: texts(&of("args")?),
            env: passed.into_iter().filter_map(with_value).collect(),
        })
    }
}

fn with_value(name: String) -> Option<(String, String)> {
    let value = variable(&name)?;
    Some((name, value))
}
