//! The answers of the tools: text for the model, and the same as structure for programs.

use base::error::chain;
use client::ClientError;
use protocol::workspace::{
    SessionId,
    client::{HandoffResult, TeamInbox, TeamWaitResult, WorkerAssigned, WorkerResult},
};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json};

/// The answer of a tool that did its work.
fn success(text: String, structure: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structure);
    result
}

/// The answer of a tool that failed; the model reads it, too.
pub(crate) fn refused(words: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words.into())])
}

pub(crate) fn failed(error: &ClientError) -> CallToolResult {
    refused(match error {
        ClientError::NotAdmitted { words, .. } => format!(
            "The server does not know this member of the team any more ({words}). Its team was \
             deleted, or the server was started again: end your turn."
        ),
        error => chain(error),
    })
}

pub(crate) fn handoff(result: &HandoffResult) -> CallToolResult {
    let worker = result.worker_session_id;
    let text = match (&result.result, result.wait_id) {
        (Some(text), _) => format!("Worker {worker} {}:\n\n{text}", how(result.success)),
        (None, Some(wait)) => {
            format!("Worker {worker} still works. {}", go_on(&wait.to_string()))
        }
        (None, None) => format!("Worker {worker} still works. Call wait for its result."),
    };
    success(text, structure(result))
}

pub(crate) fn assigned(assigned: WorkerAssigned) -> CallToolResult {
    let worker = assigned.worker_session_id;
    let text = format!(
        "Worker {worker} works on it. Go on with other work, then call wait for its result. If you \
         end your turn first, you are told the result when it is there."
    );
    success(text, structure(&assigned))
}

pub(crate) fn waited(waited: &TeamWaitResult) -> CallToolResult {
    let mut parts: Vec<String> = waited.results.iter().map(one).collect();
    if waited.completed_workers.is_empty() && waited.pending_workers.is_empty() {
        parts.push("There is nobody to wait for: no worker has work or has had any.".to_owned());
    }
    if !waited.pending_workers.is_empty() {
        parts.push(format!("Still working: {}.", list(&waited.pending_workers)));
    }
    if let Some(wait) = waited.wait_id {
        parts.push(go_on(&wait.to_string()));
    }
    success(parts.join("\n\n"), structure(waited))
}

pub(crate) fn sent(seq: u64) -> CallToolResult {
    let text = format!(
        "Sent as message {seq}. It reaches its reader before that one's next turn, also when it is \
         busy or the server is started again. Do not send it twice."
    );
    success(text, json!({ "seq": seq }))
}

pub(crate) fn inbox(inbox: &TeamInbox) -> CallToolResult {
    let messages = inbox.messages.iter().map(|message| {
        let (seq, from, at) = (message.seq, message.from_session_id, message.delivered_at);
        format!("[message {seq} from {from}, {at}]\n{}", message.payload)
    });
    let mut parts: Vec<String> = messages.collect();
    if parts.is_empty() {
        parts.push("No messages.".to_owned());
    }
    parts.push(format!("Next time ask with since_seq {}.", inbox.next_seq));
    success(parts.join("\n\n"), structure(inbox))
}

pub(crate) fn reported() -> CallToolResult {
    let text =
        "Your result is with your leader. Only the first one of a turn counts; end your turn.";
    success(text.to_owned(), json!({ "reported": true }))
}

fn one(result: &WorkerResult) -> String {
    let (worker, text) = (result.worker_session_id, &result.result);
    format!("Worker {worker} {}:\n\n{text}", how(result.success))
}

fn how(success: bool) -> &'static str {
    if success { "is done" } else { "has failed" }
}

fn go_on(wait_id: &str) -> String {
    format!("To go on waiting, call wait with wait_id \"{wait_id}\": no result is lost meanwhile.")
}

fn list(sessions: &[SessionId]) -> String {
    let ids: Vec<_> = sessions.iter().map(ToString::to_string).collect();
    ids.join(", ")
}

/// Every type that is passed here has a JSON form, so the default is never used.
fn structure(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}
