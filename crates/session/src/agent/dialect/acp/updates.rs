//! The updates that an agent sends about a turn.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::{
    json::{owned, part, readable, text},
    started::StartedTools,
    words::Answer,
};
use crate::agent::{
    dialect::contract::{AgentOutput, ParsedLine},
    usage::Usage,
};

/// The state that follows from the updates so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Updates {
    /// Whether the updates are history that the agent sends again.
    is_muted: bool,
    answer: Answer,
    /// The cost of the conversation in US dollars, as last reported. The next field is the cost at the end
    /// of the last turn.
    cost: Option<f64>,
    cost_before: f64,
    started: StartedTools,
}

impl Updates {
    /// The state for a conversation with this cost so far.
    pub(super) fn after(cost_before: f64) -> Self {
        Self { cost_before, ..Self::default() }
    }

    /// The cost of the conversation at the end of the last turn.
    pub(super) fn cost_before(&self) -> f64 {
        self.cost_before
    }

    /// Notes that another conversation begins.
    pub(super) fn begin_anew(&mut self) {
        (self.cost, self.cost_before) = (None, 0.0);
    }

    /// Treats updates as history from now on: they cause no events.
    pub(super) fn mute(&mut self) {
        self.is_muted = true;
    }

    pub(super) fn unmute(&mut self) {
        self.is_muted = false;
        self.cost_before = self.cost.unwrap_or(self.cost_before);
    }

    /// Notes that a prompt was given.
    pub(super) fn begin(&mut self) {
        self.answer.clear();
        self.started.clear();
    }

    /// Ends the turn. Returns its answer and its cost. If the agent reports a lower total than
    /// before, its count has started again.
    pub(super) fn end(&mut self) -> (Option<String>, Usage) {
        let before = self.cost_before;
        let cost_usd = self.cost.map(|cost| if cost < before { cost } else { cost - before });
        self.cost_before = self.cost.unwrap_or(self.cost_before);
        (self.answer.take(), Usage { cost_usd, ..Usage::default() })
    }

    pub(super) fn apply(&mut self, update: &Value) -> ParsedLine {
        let kind = text(update, "/sessionUpdate");
        if kind == "usage_update" {
            self.costs(update);
        }
        if self.is_muted {
            return ParsedLine::progress(Vec::new());
        }
        match kind {
            "agent_message_chunk" => ParsedLine::progress(self.chunk(&part(update, "/content"))),
            "agent_thought_chunk" => {
                ParsedLine::progress(vec![AgentOutput::thinking(text(update, "/content/text"))])
            }
            "tool_call" | "tool_call_update" => ParsedLine::progress(self.tool(update)),
            "plan" | "usage_update" => ParsedLine::progress(Vec::new()),
            _ => ParsedLine::default(),
        }
    }

    fn costs(&mut self, update: &Value) {
        let in_dollars = text(update, "/cost/currency") == "USD";
        let amount = update.pointer("/cost/amount").and_then(Value::as_f64);
        self.cost = amount.filter(|_| in_dollars).or(self.cost);
    }

    fn chunk(&mut self, content: &Value) -> Vec<AgentOutput> {
        let said = text(content, "/text");
        if said.is_empty() {
            return Vec::new();
        }
        self.answer.push(said);
        vec![AgentOutput::text(said, true)]
    }

    /// Handles an update about a tool use. Text before a tool use is not the final answer. Some
    /// agents report a tool that needs permission only when it is done, so a finished tool may have
    /// to be announced first.
    fn tool(&mut self, update: &Value) -> Vec<AgentOutput> {
        let id = owned(update, "/toolCallId");
        let status = text(update, "/status");
        let is_done = matches!(status, "completed" | "failed");
        let begins = is_done || text(update, "/sessionUpdate") == "tool_call";
        let mut outputs = Vec::new();
        if begins && self.started.begin(&id) {
            self.answer.clear();
            outputs.push(AgentOutput::tool_started(&id, name(update), part(update, "/rawInput")));
        }
        if is_done {
            self.started.end(&id);
            outputs.push(AgentOutput::tool_finished(&id, status == "completed", output(update)));
        }
        outputs
    }
}

/// The name of a tool; if it has none, its title or its kind.
fn name(update: &Value) -> &str {
    let names = ["/name", "/title", "/kind"].map(|pointer| text(update, pointer));
    names.into_iter().find(|name| !name.is_empty()).unwrap_or("tool")
}

/// The output of a tool, as text for people.
fn output(update: &Value) -> String {
    let shown = ["/content", "/rawOutput"].map(|pointer| readable(&part(update, pointer)));
    shown.into_iter().find(|output| !output.is_empty()).unwrap_or_default()
}
