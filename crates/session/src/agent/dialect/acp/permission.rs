//! Permission requests of an agent, and the options for the answer.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::json::{line, list, owned, part, text};
use crate::agent::{
    dialect::contract::{AgentOutput, Decision},
    settings::PermissionMode,
};

/// The requests that wait for a decision.
#[derive(Debug)]
pub(super) struct Permissions {
    mode: PermissionMode,
    open: HashMap<String, Open>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Open {
    /// The id of the request, as the agent wrote it.
    id: Value,
    /// The ids of the options that allow or refuse this one request.
    allow: Option<String>,
    refuse: Option<String>,
}

impl Permissions {
    pub(super) fn new(mode: PermissionMode) -> Self {
        Self { mode, open: HashMap::new() }
    }

    /// Forgets all requests: the process that waited for the answers has ended.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    pub(super) const fn open(&self) -> &HashMap<String, Open> {
        &self.open
    }

    /// Takes the requests that were open.
    pub(super) fn restore(&mut self, open: HashMap<String, Open>) {
        self.open = open;
    }

    /// Handles a permission request. The permission mode answers some requests at once; the others
    /// are passed on.
    pub(super) fn ask(&mut self, request: &Value) -> Vec<AgentOutput> {
        let open = Open::read(request);
        let call = part(request, "/params/toolCall");
        if let Some(allow) = self.decision_by_mode(text(&call, "/kind")) {
            return vec![AgentOutput::Write(open.answer(allow))];
        }
        let key = open.id.to_string();
        self.open.insert(key.clone(), open);
        vec![AgentOutput::Ask { key, tool: tool(&call), input: input(&call) }]
    }

    pub(super) fn answer(&mut self, key: &str, decision: Decision<'_>) -> Vec<u8> {
        let Some(open) = self.open.remove(key) else { return Vec::new() };
        match decision {
            Decision::Allow => open.answer(true),
            Decision::Deny(_) => open.answer(false),
            Decision::Cancelled => open.reply(&json!({ "outcome": "cancelled" })),
        }
    }

    fn decision_by_mode(&self, kind: &str) -> Option<bool> {
        let changes = matches!(kind, "edit" | "delete" | "move" | "execute");
        match self.mode {
            PermissionMode::Ask => None,
            PermissionMode::AcceptEdits => (kind == "edit").then_some(true),
            PermissionMode::Plan => changes.then_some(false),
            PermissionMode::Bypass => Some(true),
        }
    }
}

impl Open {
    fn read(request: &Value) -> Self {
        let options = list(request, "/params/options");
        let of = |kind: &str| {
            let option = options.iter().find(|option| text(option, "/kind") == kind);
            option.map(|option| owned(option, "/optionId"))
        };
        Self { id: part(request, "/id"), allow: of("allow_once"), refuse: of("reject_once") }
    }

    /// Allows or refuses this one request. It never chooses an option that would hold for later
    /// requests, since a person decides about one request at a time. If the agent offers no such
    /// option, the request is cancelled.
    fn answer(&self, allow: bool) -> Vec<u8> {
        let option = if allow { &self.allow } else { &self.refuse };
        self.reply(&match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        })
    }

    fn reply(&self, outcome: &Value) -> Vec<u8> {
        line(&json!({ "jsonrpc": "2.0", "id": self.id, "result": { "outcome": outcome } }))
    }
}

/// The title of a tool call, which says more than the tool's name; if it has none, the name or the
/// kind.
fn tool(call: &Value) -> String {
    let names = ["/title", "/name", "/kind"].map(|pointer| text(call, pointer));
    let name = names.into_iter().find(|name| !name.is_empty());
    name.unwrap_or("a tool").to_owned()
}

/// The tool's input; if it has none, its preview.
fn input(call: &Value) -> Value {
    match part(call, "/rawInput") {
        Value::Null => part(call, "/content"),
        input => input,
    }
}
