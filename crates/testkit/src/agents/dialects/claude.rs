//! Claude Code: `claude -p --input-format=stream-json --output-format=stream-json --verbose`.

use std::{process::exit, time::Duration};

use serde_json::{Value, json};

use super::{Inbox, pieces, print};
use crate::agents::{
    memory::Memory,
    script::{Answer, End, Life, Voice, complain, perform},
    setting::{Setting, new_id},
    tools::Server,
};

/// The cost of one turn, in US dollars.
const PRICE: f64 = 0.25;

pub(super) fn run(setting: &Setting) {
    if setting.value("--output-format") == Some("stream-json") && !setting.has("--verbose") {
        complain("Error: When using --print, --output-format=stream-json requires --verbose");
        exit(1);
    }
    let memory = conversation(setting);
    let mut claude = Claude::new(setting, memory.id.clone());
    let mut life = Life::default();
    while let Some(line) = claude.inbox.next() {
        match line["type"].as_str() {
            Some("user") => {
                claude.turn(&line, setting, &memory, &mut life);
                claude.goes_on(&mut life);
            }
            Some("control_request") => acknowledge(&line),
            _ => {}
        }
    }
    life.end(claude.code);
}

fn conversation(setting: &Setting) -> Memory {
    let Some(id) = setting.value("--resume") else {
        return Memory::begin(setting, setting.value("--session-id"));
    };
    match Memory::find(setting, id) {
        Some(memory) if setting.has("--fork-session") => {
            let fork = Memory::begin(setting, None);
            memory.prompts().iter().for_each(|prompt| fork.tell(prompt));
            fork
        }
        Some(memory) => memory,
        None => {
            let why = format!("No conversation found with session ID: {id}");
            complain(&why);
            print(
                &json!({
                    "type": "result", "subtype": "error_during_execution", "is_error": true,
                    "num_turns": 0, "duration_ms": 0, "duration_api_ms": 0, "total_cost_usd": 0,
                    "usage": {}, "permission_denials": [], "errors": [why], "session_id": new_id(),
                })
                .to_string(),
            );
            exit(1)
        }
    }
}

struct Claude {
    inbox: Inbox,
    id: String,
    model: String,
    has_pieces: bool,
    /// Whether it repeats a prompt that it takes up.
    replays: bool,
    /// Whether it may ask, and whether it need not.
    asks: bool,
    is_free: bool,
    mode: String,
    requests: u64,
    turns: u32,
    code: i32,
    cwd: String,
}

impl Claude {
    fn new(setting: &Setting, id: String) -> Self {
        let mode = setting.value("--permission-mode").unwrap_or("default").to_owned();
        Self {
            inbox: Inbox::open(),
            id,
            model: setting.value("--model").unwrap_or("claude-fake").to_owned(),
            has_pieces: setting.has("--include-partial-messages"),
            replays: setting.has("--replay-user-messages"),
            asks: setting.value("--permission-prompt-tool") == Some("stdio"),
            is_free: mode == "bypassPermissions",
            mode,
            requests: 0,
            turns: 0,
            code: 0,
            cwd: setting.cwd.display().to_string(),
        }
    }

    fn turn(&mut self, line: &Value, setting: &Setting, memory: &Memory, life: &mut Life) {
        self.turns += 1;
        self.init();
        if self.replays {
            let mut echo = line.clone();
            (echo["isReplay"], echo["session_id"]) = (json!(true), json!(self.id));
            print(&echo.to_string());
        }
        let prompt = line["message"]["content"].as_str().unwrap_or_default().to_owned();
        match perform(&prompt, self, setting, memory, life) {
            End::Done(answer) => self.result("success", &json!({ "result": answer })),
            End::Interrupted => {
                self.code = 1;
                self.line(json!({ "type": "user", "parent_tool_use_id": null, "message": {
                    "role": "user",
                    "content": [{ "type": "text", "text": "[Request interrupted by user]" }],
                } }));
                let more = json!({ "terminal_reason": "aborted_tools", "errors": [] });
                self.result("error_during_execution", &more);
            }
        }
    }

    /// A task in the background has ended: a turn that no prompt began. It lasts until a prompt waits.
    fn goes_on(&mut self, life: &mut Life) {
        let Some(text) = life.background.take() else { return };
        self.line(json!({ "type": "system", "subtype": "task_notification", "task_id": "b1" }));
        self.turns += 1;
        self.init();
        self.say(&text);
        if let Some(line) = self.inbox.wait() {
            self.inbox.put_back(line);
        }
        let more = json!({ "result": text, "origin": { "kind": "task-notification" } });
        self.result("success", &more);
    }

    fn init(&self) {
        self.line(json!({
            "type": "system", "subtype": "init", "cwd": self.cwd, "model": self.model,
            "tools": ["Bash", "Edit", "Read"], "mcp_servers": [], "permissionMode": self.mode,
            "slash_commands": [], "agents": [], "skills": [], "apiKeySource": "none",
            "claude_code_version": "2.1.197",
        }));
    }

    fn result(&self, subtype: &str, more: &Value) {
        let mut line = json!({
            "type": "result", "subtype": subtype, "is_error": subtype != "success",
            "duration_ms": 5, "duration_api_ms": 4, "num_turns": 1, "stop_reason": "end_turn",
            "total_cost_usd": PRICE * f64::from(self.turns),
            "usage": { "input_tokens": 10, "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 30, "output_tokens": 7 },
            "modelUsage": {}, "permission_denials": [],
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            line[key] = value.clone();
        }
        self.line(line);
    }

    fn message(&self, role: &str, content: &Value) {
        self.line(json!({
            "type": role, "parent_tool_use_id": null,
            "message": { "id": new_id(), "type": "message", "role": role, "model": self.model,
                "content": content },
        }));
    }

    fn line(&self, mut line: Value) {
        line["session_id"] = json!(self.id);
        line["uuid"] = json!(new_id());
        // The kind of a line stands first, as it does in the real one's.
        let kind = line.as_object_mut().and_then(|line| line.remove("type")).unwrap_or_default();
        print(&format!("{{\"type\":{kind},{}", &line.to_string()[1..]));
    }
}

impl Voice for Claude {
    fn say(&mut self, text: &str) {
        if self.has_pieces {
            for piece in pieces(text) {
                let delta = json!({ "type": "text_delta", "text": piece });
                let event = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
                self.line(json!({
                    "type": "stream_event", "event": event, "parent_tool_use_id": null,
                }));
            }
        }
        self.message("assistant", &json!([{ "type": "text", "text": text }]));
    }

    fn uses(&mut self, tool: &str, input: &Value, ok: bool, output: &str) {
        let id = format!("toolu_{}", new_id());
        let used = json!([{ "type": "tool_use", "id": id, "name": tool, "input": input }]);
        self.message("assistant", &used);
        let result = json!([{
            "type": "tool_result", "tool_use_id": id, "content": output, "is_error": !ok,
        }]);
        self.message("user", &result);
    }

    fn ask(&mut self, tool: &str, input: &Value) -> Answer {
        match () {
            () if self.is_free => return Answer::Allowed,
            () if !self.asks => return Answer::Denied("nobody can be asked".to_owned()),
            () => {}
        }
        self.requests += 1;
        let id = format!("req_{}_{}", std::process::id(), self.requests);
        let request = json!({
            "subtype": "can_use_tool", "tool_name": tool, "input": input,
            "tool_use_id": format!("toolu_{}", self.requests), "permission_suggestions": [],
        });
        let asked = json!({ "type": "control_request", "request_id": id, "request": request });
        print(&asked.to_string());
        loop {
            let Some(line) = self.inbox.wait() else {
                return Answer::Denied("nobody is there".to_owned());
            };
            if line["response"]["request_id"] == id.as_str() {
                return decided(&line["response"]["response"], input);
            }
            if is_interrupt(&line) {
                let cancel = json!({ "type": "control_cancel_request", "request_id": id });
                print(&cancel.to_string());
                return Answer::Interrupted;
            }
            if line["type"] == "user" {
                self.inbox.put_back(line);
            }
        }
    }

    fn work(&mut self, time: Option<Duration>) -> bool {
        self.inbox.work(time, is_interrupt, |line| line["type"] == "user")
    }

    fn server(&self, setting: &Setting) -> Option<Server> {
        let config = setting.json(setting.value("--mcp-config"));
        Server::read(config["mcpServers"].as_object()?.values().next()?)
    }
}

fn acknowledge(request: &Value) {
    let response =
        json!({ "subtype": "success", "request_id": request["request_id"], "response": {} });
    print(&json!({ "type": "control_response", "response": response }).to_string());
}

/// Whether a line interrupts the turn. Every request of this kind is acknowledged.
fn is_interrupt(line: &Value) -> bool {
    let is_request = line["type"] == "control_request";
    if is_request {
        acknowledge(line);
    }
    is_request && line["request"]["subtype"] == "interrupt"
}

/// An answer that allows a tool gives the input for it.
fn decided(response: &Value, input: &Value) -> Answer {
    match response["behavior"].as_str() {
        Some("allow") if response["updatedInput"] == *input => Answer::Allowed,
        Some("allow") => Answer::Denied("it was allowed with another input".to_owned()),
        _ => Answer::Denied(response["message"].as_str().unwrap_or("no reason").to_owned()),
    }
}
