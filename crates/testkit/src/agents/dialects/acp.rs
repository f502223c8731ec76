//! The Agent Client Protocol, version 1: JSON-RPC in lines.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Inbox, pieces, print};
use crate::agents::{
    memory::Memory,
    script::{Answer, End, Life, Voice, perform},
    setting::{Setting, new_id},
    tools::{Server, texts},
};

pub(super) fn run(setting: &Setting) {
    let mut acp = Acp { inbox: Inbox::open(), id: String::new(), servers: Value::Null, asked: 0 };
    let mut memory = None;
    let mut life = Life::default();
    while let Some(line) = acp.inbox.next() {
        let params = &line["params"];
        match line["method"].as_str().unwrap_or_default() {
            "initialize" => answer(&line, &able()),
            "session/new" => {
                let new = Memory::begin(setting, None);
                acp.open(&new, params);
                answer(&line, &json!({ "sessionId": new.id }));
                memory = Some(new);
            }
            "session/load" => {
                memory = Memory::find(setting, params["sessionId"].as_str().unwrap_or_default());
                match &memory {
                    Some(memory) => {
                        acp.open(memory, params);
                        acp.tell_again(memory);
                        answer(&line, &json!({}));
                    }
                    None => refuse(&line, -32002, "Resource not found"),
                }
            }
            "session/prompt" => match &memory {
                Some(memory) => acp.turn(&line, setting, memory, &mut life),
                None => refuse(&line, -32602, "there is no session"),
            },
            "session/cancel" | "" => {}
            _ => refuse(&line, -32601, "Method not found"),
        }
    }
    life.end(0);
}

fn able() -> Value {
    json!({
        "protocolVersion": 1, "authMethods": [],
        "agentCapabilities": { "loadSession": true,
            "promptCapabilities": { "image": false, "audio": false, "embeddedContext": false } },
    })
}

fn answer(request: &Value, result: &Value) {
    print(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string());
}

fn refuse(request: &Value, code: i64, message: &str) {
    let error = json!({ "code": code, "message": message });
    print(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string());
}

struct Acp {
    inbox: Inbox,
    id: String,
    servers: Value,
    asked: u64,
}

impl Acp {
    fn open(&mut self, memory: &Memory, params: &Value) {
        self.id.clone_from(&memory.id);
        self.servers = params["mcpServers"].clone();
    }

    /// A client that loads a session gets all of it again.
    fn tell_again(&self, memory: &Memory) {
        for (prompt, said) in memory.prompts().iter().zip(memory.said()) {
            self.update("user_message_chunk", &json!({ "content": block(prompt) }));
            self.update("agent_message_chunk", &json!({ "content": block(&said) }));
        }
    }

    fn turn(&mut self, line: &Value, setting: &Setting, memory: &Memory, life: &mut Life) {
        let prompt = line["params"]["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
        let reason = match perform(&prompt, self, setting, memory, life) {
            End::Done(_) => "end_turn",
            End::Interrupted => "cancelled",
        };
        answer(line, &json!({ "stopReason": reason }));
    }

    fn update(&self, kind: &str, more: &Value) {
        let mut update = more.clone();
        update["sessionUpdate"] = json!(kind);
        let params = json!({ "sessionId": self.id, "update": update });
        let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        print(&line.to_string());
    }
}

fn block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

impl Voice for Acp {
    fn say(&mut self, text: &str) {
        for piece in pieces(text) {
            self.update("agent_message_chunk", &json!({ "content": block(piece) }));
        }
    }

    fn uses(&mut self, tool: &str, input: &Value, ok: bool, output: &str) {
        let id = new_id();
        self.update(
            "tool_call",
            &json!({
                "toolCallId": id, "title": tool, "kind": "execute", "status": "pending",
                "rawInput": input,
            }),
        );
        let status = if ok { "completed" } else { "failed" };
        let content = json!([{ "type": "content", "content": block(output) }]);
        self.update(
            "tool_call_update",
            &json!({
                "toolCallId": id, "status": status, "content": content,
            }),
        );
    }

    fn ask(&mut self, tool: &str, input: &Value) -> Answer {
        self.asked += 1;
        let id = self.asked;
        let call =
            json!({ "toolCallId": new_id(), "title": tool, "kind": "execute", "rawInput": input });
        let options = json!([
            { "optionId": "always", "name": "Always", "kind": "allow_always" },
            { "optionId": "once", "name": "Once", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ]);
        let params = json!({ "sessionId": self.id, "toolCall": call, "options": options });
        let method = "session/request_permission";
        print(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        let mut is_cancelled = false;
        loop {
            let Some(line) = self.inbox.wait() else {
                return Answer::Denied("nobody is there".to_owned());
            };
            is_cancelled |= line["method"] == "session/cancel";
            if line["method"].is_null() && line["id"] == id {
                return match line["result"]["outcome"]["optionId"].as_str() {
                    Some("once") => Answer::Allowed,
                    Some(_) => Answer::Denied("an option was chosen that refuses".to_owned()),
                    None if is_cancelled => Answer::Interrupted,
                    // The answer may come before the word that the turn is cancelled.
                    None => match self.work(Some(Duration::from_secs(5))) {
                        true => Answer::Interrupted,
                        false => Answer::Denied("it was cancelled".to_owned()),
                    },
                };
            }
        }
    }

    fn work(&mut self, time: Option<Duration>) -> bool {
        self.inbox.work(time, |line| line["method"] == "session/cancel", |_| true)
    }

    fn server(&self, _: &Setting) -> Option<Server> {
        let entry = self.servers.as_array()?.first()?;
        let env = entry["env"].as_array().into_iter().flatten();
        let env = env.filter_map(|pair| {
            Some((pair["name"].as_str()?.to_owned(), pair["value"].as_str()?.to_owned()))
        });
        Some(Server {
            command: entry["command"].as_str()?.to_owned(),
            args: texts(&entry["args"]),
            env: env.collect(),
        })
    }
}
