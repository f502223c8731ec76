//! An agent that answers at once: lines of JSON both ways, as Claude Code reads and writes them.

use std::io::{self, BufRead, Write};

use anyhow::Result;
use serde_json::{Value, json};

const VERSION: &str = "2.1.197 (Claude Code)";

const ANSWER: &str = "pong";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut out = io::stdout().lock();
    if arguments.iter().any(|argument| argument == "--version") {
        return Ok(writeln!(out, "{VERSION}")?);
    }
    let id = conversation(arguments);
    for line in io::stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        for answer in answers(&line, &id) {
            writeln!(out, "{answer}")?;
            out.flush()?;
        }
    }
    Ok(())
}

/// A prompt as a line of the agent's input.
pub(crate) fn prompt(text: &str) -> Value {
    json!({
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": null,
        "session_id": "",
    })
}

/// The id of the resumed conversation, or a new id.
fn conversation(arguments: &[String]) -> String {
    let given = arguments.iter().find_map(|argument| argument.strip_prefix("--resume="));
    let new = || format!("00000000-0000-4000-8000-{:012x}", std::process::id());
    given.map_or_else(new, str::to_owned)
}

fn answers(line: &Value, id: &str) -> Vec<Value> {
    match line["type"].as_str() {
        Some("user") => turn(id),
        Some("control_request") => vec![json!({
            "type": "control_response",
            "response": {"subtype": "success", "request_id": line["request_id"]},
        })],
        _ => Vec::new(),
    }
}

fn turn(id: &str) -> Vec<Value> {
    let delta = json!({"type": "text_delta", "text": ANSWER});
    let content = json!([{"type": "text", "text": ANSWER}]);
    vec![
        json!({
            "type": "system", "subtype": "init", "session_id": id, "cwd": "/", "model": "bench",
            "tools": [], "mcp_servers": [], "permissionMode": "default",
        }),
        json!({
            "type": "stream_event", "session_id": id, "parent_tool_use_id": null,
            "event": {"type": "content_block_delta", "index": 0, "delta": delta},
        }),
        json!({
            "type": "assistant", "session_id": id, "parent_tool_use_id": null,
            "message": {"role": "assistant", "content": content},
        }),
        json!({
            "type": "result", "subtype": "success", "is_error": false, "session_id": id,
            "result": ANSWER, "num_turns": 1, "total_cost_usd": 0.0,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_answered_by_a_whole_turn() {
        let said = answers(&prompt("ping"), "id");
        let kinds: Vec<&str> = said.iter().filter_map(|line| line["type"].as_str()).collect();
        assert_eq!(kinds, ["system", "stream_event", "assistant", "result"]);
        assert!(answers(&json!({"type": "other"}), "id").is_empty());
    }

    #[test]
    fn a_conversation_goes_on_under_its_id() {
        let arguments = ["-p", "--resume=abc"].map(str::to_owned);
        assert_eq!(conversation(&arguments), "abc");
        assert_eq!(conversation(&[]).len(), 36);
    }
}
