//! A server of tools that the fake agent is configured with, over MCP.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

#[derive(Debug)]
pub(super) struct Server {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

impl Server {
    /// As an entry of `mcpServers` has it.
    pub(super) fn read(entry: &Value) -> Option<Self> {
        Some(Self {
            command: entry["command"].as_str()?.to_owned(),
            args: texts(&entry["args"]),
            env: pairs(&entry["env"]),
        })
    }

    /// Calls a tool (`NAME JSON`), and returns its result.
    pub(super) fn call(&self, call: &str) -> String {
        let (tool, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
        let arguments: Value = serde_json::from_str(arguments).expect("mcp TOOL JSON");
        let mut command = Command::new(&self.command);
        command.args(&self.args).envs(self.env.iter().cloned());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) => return format!("the server of tools does not start: {error}"),
        };
        let mut talk = Talk {
            to: child.stdin.take().expect("it is piped"),
            from: BufReader::new(child.stdout.take().expect("it is piped")),
        };
        let said = talk.call(tool, &arguments).unwrap_or_else(|| "it said nothing".to_owned());
        drop(talk);
        let _ended = child.wait();
        said
    }
}

struct Talk {
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Talk {
    fn call(&mut self, tool: &str, arguments: &Value) -> Option<String> {
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "fake-agent", "version": "0" },
        });
        self.ask(1, "initialize", &hello)?;
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask(2, "tools/call", &params)?;
        Some(match &answer["error"] {
            Value::Null => text(&answer["result"]),
            error => format!("error: {}", error["message"].as_str().unwrap_or_default()),
        })
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Option<Value> {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.from.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let said: Value = serde_json::from_str(&line).ok()?;
            if said["id"] == id {
                return Some(said);
            }
        }
    }

    fn write(&mut self, message: &Value) -> Option<()> {
        self.to.write_all(format!("{message}\n").as_bytes()).ok()
    }
}

fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n").replace('\n', " ")
}

pub(super) fn texts(value: &Value) -> Vec<String> {
    let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
    values.iter().filter_map(|value| Some(value.as_str()?.to_owned())).collect()
}

pub(super) fn pairs(value: &Value) -> Vec<(String, String)> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}
