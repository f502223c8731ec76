//! Claude Code: JSON lines both ways, one process for many turns.
//!
//! Its traps:
//!
//! - `init` comes with every turn.
//! - The reported cost is that of the whole process.
//! - A text that came in pieces comes once more as a whole, before the next text begins.
//! - A process that resumes a conversation may report an id that does not exist.
//! - A control request without an answer blocks the program.
//! - An interrupted turn may end with `success`; only its `terminal_reason` shows the interrupt.
//! - The program begins turns of its own.
//!
//! Its parts:
//!
//! - `launch`: the command line
//! - `origin`: which turns belong to a prompt

mod launch;
mod origin;

use std::collections::HashMap;

use protocol::{
    json::repair::{Bounds, repaired},
    workspace::{AgentEvent, TurnOutcome},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::origin::Origin;
use super::{
    json::{from_state, line, list, number, owned, part, readable, text, to_state},
    words::{self, Answer},
};
use crate::agent::{
    dialect::contract::{
        AgentOutput, Decision, Dialect, Halt, ParsedLine, Start, TurnResult, settle_id,
    },
    launch::{Exit, Launch},
    settings::{BadSettings, Settings},
    usage::Usage,
};

#[derive(Debug)]
pub(crate) struct Claude {
    settings: Settings,
    conversation: Option<String>,
    was_resumed: bool,
    /// The input of the tool of each open permission request, by the request's id: the answer repeats
    /// the input.
    permission_inputs: HashMap<String, ToolInput>,
    interrupts: u64,
    /// Whether the prompt must be interrupted as soon as its turn begins.
    is_interrupted: bool,
    origin: Origin,
    /// The usage of turns that no prompt began. It is reported with the next prompt's turn.
    unasked: Usage,
    /// The cost of the process so far, in US dollars.
    cost: f64,
    /// Whether text came in pieces and will come once more as a whole; the next field is the same for
    /// thoughts.
    said_in_pieces: bool,
    thought_in_pieces: bool,
    answer: Answer,
}

/// The state without the settings: that of the conversation, of the turn, and of the answer.
type State = (
    (Option<String>, bool, HashMap<String, ToolInput>, u64),
    (bool, Origin, Usage, f64),
    (bool, bool, Answer),
);

/// The input of a tool, for which permission was asked.
#[derive(Debug, Serialize, Deserialize)]
struct ToolInput {
    whole: Value,
    /// The length of its line in bytes, if the line was cut; otherwise 0.
    bytes: usize,
}

/// The most bytes of all inputs of cut lines that wait for a decision.
const MAX_INPUTS: usize = 16 * 1024 * 1024;
/// How much memory the input of a cut line may take, in bytes.
const INPUT: Bounds = Bounds { total: MAX_INPUTS, ..Bounds::WHOLE };

const TOO_MUCH: &str =
    "The tool's input is too long to be shown and confirmed, so it was refused; use smaller steps.";

impl Claude {
    pub(crate) fn new(settings: Settings) -> Result<Self, BadSettings> {
        settings.check(&launch::RESERVED)?;
        Ok(Self {
            settings,
            conversation: None,
            was_resumed: false,
            permission_inputs: HashMap::new(),
            interrupts: 0,
            is_interrupted: false,
            origin: Origin::default(),
            unasked: Usage::default(),
            cost: 0.0,
            said_in_pieces: false,
            thought_in_pieces: false,
            answer: Answer::default(),
        })
    }

    fn take(&mut self, (conversation, turn, answer): State) {
        (self.conversation, self.was_resumed, self.permission_inputs, self.interrupts) =
            conversation;
        (self.is_interrupted, self.origin, self.unasked, self.cost) = turn;
        (self.said_in_pieces, self.thought_in_pieces, self.answer) = answer;
    }

    fn system(&mut self, line: &Value) -> ParsedLine {
        match text(line, "/subtype") {
            "init" => ParsedLine::progress(self.begin(line)),
            "api_retry" => ParsedLine::waiting(vec![AgentOutput::notice(&retry(line))]),
            "compact_boundary" => {
                ParsedLine::progress(vec![AgentOutput::notice("The conversation was compacted.")])
            }
            "" => ParsedLine::default(),
            _ => ParsedLine::progress(Vec::new()),
        }
    }

    /// Handles the beginning of a turn. An interrupt that was sent before did not reach this turn, so it is
    /// sent again.
    fn begin(&mut self, line: &Value) -> Vec<AgentOutput> {
        let mut outputs = self.note_id(text(line, "/session_id"));
        if self.is_interrupted && self.origin.has_prompt() {
            outputs.push(AgentOutput::Write(self.interruption()));
        }
        outputs
    }

    fn interruption(&mut self) -> Vec<u8> {
        self.interrupts += 1;
        line(&json!({
            "type": "control_request",
            "request_id": format!("interrupt-{}", self.interrupts),
            "request": { "subtype": "interrupt" },
        }))
    }

    fn note_id(&mut self, id: &str) -> Vec<AgentOutput> {
        settle_id(&mut self.conversation, id).into_iter().collect()
    }

    /// Handles a piece of a message. The text of the agent's helpers is not part of the session's answer.
    fn piece(&mut self, line: &Value) -> ParsedLine {
        if !is_own(line) {
            return ParsedLine::progress(Vec::new());
        }
        if text(line, "/event/type") == "message_start" {
            (self.said_in_pieces, self.thought_in_pieces) = (false, false);
        }
        ParsedLine::progress(self.delta(&part(line, "/event/delta")).into_iter().collect())
    }

    /// Handles a piece of text. It continues the piece before it in the same block, or begins a new text.
    fn delta(&mut self, delta: &Value) -> Option<AgentOutput> {
        match text(delta, "/type") {
            "text_delta" => {
                let goes_on = std::mem::replace(&mut self.said_in_pieces, true);
                Some(self.text(text(delta, "/text"), goes_on))
            }
            "thinking_delta" => {
                self.thought_in_pieces = true;
                Some(AgentOutput::thinking(text(delta, "/thinking")))
            }
            _ => None,
        }
    }

    fn assistant(&mut self, line: &Value) -> ParsedLine {
        let is_own = is_own(line);
        let blocks = list(line, "/message/content").iter();
        ParsedLine::progress(blocks.filter_map(|block| self.block(block, is_own)).collect())
    }

    fn block(&mut self, block: &Value, is_own: bool) -> Option<AgentOutput> {
        match text(block, "/type") {
            "text" if is_own => {
                self.answer.set(text(block, "/text"));
                // The pieces have been shown; the whole would show the text twice.
                let is_repetition = std::mem::take(&mut self.said_in_pieces);
                (!is_repetition).then(|| self.text(text(block, "/text"), false))
            }
            "thinking" if is_own => {
                let is_repetition = std::mem::take(&mut self.thought_in_pieces);
                (!is_repetition).then(|| AgentOutput::thinking(text(block, "/thinking")))
            }
            "tool_use" => {
                let input = part(block, "/input");
                Some(AgentOutput::tool_started(text(block, "/id"), text(block, "/name"), input))
            }
            _ => None,
        }
    }

    fn text(&self, text: &str, delta: bool) -> AgentOutput {
        let (text, unasked) = (text.to_owned(), self.origin.is_unasked());
        AgentOutput::Event(AgentEvent::Text { text, delta, unasked })
    }

    /// Whether the program says that it does not know the conversation. Its errors may have text of a
    /// model's server, so only its own words count.
    fn resume_was_refused(&self, said: &str) -> bool {
        self.was_resumed && said.to_ascii_lowercase().contains("no conversation found")
    }

    fn result(&mut self, line: &Value) -> Vec<AgentOutput> {
        let errors = errors(line);
        // Counted in any case, as the program reports the cost of the whole process.
        let usage = self.unasked.and(self.usage(line));
        let answer = self.answer.take();
        self.said_in_pieces = false;
        self.thought_in_pieces = false;
        if self.resume_was_refused(&errors) {
            return vec![AgentOutput::ResumeRefused];
        }
        // Read before `ends` clears it.
        let was_marked = self.origin.is_unasked();
        if !self.origin.ends(line) {
            self.unasked = usage;
            return self.end_unasked(answer.is_some() && !was_marked);
        }
        self.unasked = Usage::default();
        let failed = line.pointer("/is_error") == Some(&Value::Bool(true))
            || text(line, "/subtype") != "success";
        let mut outputs = self.note_id(text(line, "/session_id"));
        outputs.push(AgentOutput::Ended(match (was_interrupted(line), failed) {
            (true, _) => {
                TurnResult { outcome: TurnOutcome::Interrupted, text: answer, error: None, usage }
            }
            (false, true) => TurnResult::failed(&errors, usage),
            (false, false) => TurnResult::completed(final_text(line).or(answer), usage),
        }));
        outputs
    }

    /// Handles the end of a turn that no prompt began. If a prompt waits, its turn comes next, and a
    /// notice explains that the text before was not the answer.
    fn end_unasked(&self, was_said: bool) -> Vec<AgentOutput> {
        let is_mistakable = was_said && self.origin.has_prompt();
        is_mistakable.then(|| AgentOutput::notice(UNASKED)).into_iter().collect()
    }

    /// The usage of a turn. The program reports the tokens of the turn, but the cost of the whole
    /// process.
    fn usage(&mut self, line: &Value) -> Usage {
        let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let counts = read.map(|name| number(line, &format!("/usage/{name}")));
        let total = line.pointer("/total_cost_usd").and_then(Value::as_f64);
        let cost_usd = total.map(|total| {
            let before = std::mem::replace(&mut self.cost, total);
            // A new process begins at zero, and rounding may take a little back.
            (total - before).max(0.0)
        });
        Usage {
            input_tokens: counts.into_iter().fold(0, u64::saturating_add),
            output_tokens: number(line, "/usage/output_tokens"),
            cost_usd,
        }
    }

    fn ask(&mut self, line: &Value) -> Vec<AgentOutput> {
        let key = owned(line, "/request_id");
        if !is_question(line) {
            // A request without an answer blocks the program.
            return vec![AgentOutput::Write(unsupported(&key))];
        }
        let input = part(line, "/request/input");
        self.ask_for_input(line, key, input, 0)
    }

    /// Handles a request for permission whose line was cut. It is refused if its input is not known as a
    /// whole, or if the inputs of all open requests take too much memory.
    fn ask_cut(&mut self, line: &Value, whole: Option<&str>) -> Vec<AgentOutput> {
        let key = owned(line, "/request_id");
        let taken: usize = self.permission_inputs.values().map(|input| input.bytes).sum();
        // A long input is held until the decision, as the answer repeats it.
        let whole = whole.filter(|whole| taken + whole.len() <= MAX_INPUTS);
        let read = whole.and_then(|whole| Some((whole.len(), input_of(whole)?)));
        match read {
            Some((bytes, input)) => self.ask_for_input(line, key, input, bytes),
            None => vec![
                AgentOutput::notice(TOO_MUCH),
                AgentOutput::Write(reply(
                    &key,
                    &json!({ "behavior": "deny", "message": TOO_MUCH }),
                )),
            ],
        }
    }

    fn ask_for_input(
        &mut self,
        line: &Value,
        key: String,
        whole: Value,
        bytes: usize,
    ) -> Vec<AgentOutput> {
        self.permission_inputs.insert(key.clone(), ToolInput { whole, bytes });
        let (tool, input) = (owned(line, "/request/tool_name"), part(line, "/request/input"));
        vec![AgentOutput::Ask { key, tool, input }]
    }

    fn withdraw(&mut self, line: &Value) -> Vec<AgentOutput> {
        let key = owned(line, "/request_id");
        self.permission_inputs.remove(&key);
        vec![AgentOutput::AskCancelled { key }]
    }

    /// Handles a new id of the conversation.
    fn reset(&mut self, line: &Value) -> Vec<AgentOutput> {
        let id = text(line, "/new_conversation_id");
        // The id goes into a later command line.
        if !words::is_id(id) {
            return Vec::new();
        }
        self.conversation = None;
        self.note_id(id)
    }
}

impl Dialect for Claude {
    fn provider(&self) -> &str {
        "claude"
    }

    fn is_warm(&self) -> bool {
        true
    }

    fn launch(&mut self, start: Start<'_>) -> Launch {
        self.conversation = start.conversation.map(str::to_owned);
        self.was_resumed = start.conversation.is_some();
        self.permission_inputs.clear();
        // The program counts from its own start.
        self.cost = 0.0;
        self.origin = Origin::default();
        self.answer.clear();
        (self.said_in_pieces, self.thought_in_pieces) = (false, false);
        Launch {
            program: self.program(),
            args: self.args(),
            env: self.env(),
            files: self.files(),
            stdin: Some(self.prompt(start.prompt, start.id)),
            keep_stdin_open: true,
        }
    }

    /// The answer so far is not cleared: if a turn that no prompt began is running, its text goes on until
    /// that turn ends.
    fn prompt(&mut self, text: &str, id: &str) -> Vec<u8> {
        self.origin.note_prompt(id);
        self.is_interrupted = false;
        line(&json!({
            "type": "user",
            "uuid": id,
            "message": { "role": "user", "content": text },
            "parent_tool_use_id": null,
            "session_id": "",
        }))
    }

    fn is_working(&self) -> bool {
        self.origin.is_unasked()
    }

    fn parse(&mut self, line: &Value) -> ParsedLine {
        // First: the meaning of a line depends on whose turn it belongs to.
        self.origin.note_line(line);
        match text(line, "/type") {
            "system" => self.system(line),
            "stream_event" => self.piece(line),
            "assistant" => self.assistant(line),
            "user" => ParsedLine::progress(results(line)),
            "result" => ParsedLine::progress(self.result(line)),
            "control_request" => ParsedLine::progress(self.ask(line)),
            "control_cancel_request" => ParsedLine::progress(self.withdraw(line)),
            "control_response" => ParsedLine::progress(Vec::new()),
            "conversation_reset" => ParsedLine::progress(self.reset(line)),
            "rate_limit_event" => ParsedLine::waiting(rate_limit(line)),
            _ => ParsedLine::default(),
        }
    }

    /// The answer to a permission request repeats the tool's input, so it needs the whole line.
    fn parse_cut(&mut self, line: &Value, whole: Option<&str>) -> ParsedLine {
        match is_question(line) {
            true => ParsedLine::progress(self.ask_cut(line, whole)),
            false => self.parse(line),
        }
    }

    fn interrupt(&mut self) -> Halt {
        self.is_interrupted = true;
        Halt::Write(self.interruption())
    }

    /// A cancelled request needs no answer: the program itself cancels its requests at an interrupt.
    fn answer(&mut self, key: &str, decision: Decision<'_>) -> Vec<u8> {
        let input = self.permission_inputs.remove(key).map_or(Value::Null, |input| input.whole);
        match decision {
            Decision::Allow => reply(key, &json!({ "behavior": "allow", "updatedInput": input })),
            Decision::Deny(why) => reply(key, &json!({ "behavior": "deny", "message": why })),
            Decision::Cancelled => Vec::new(),
        }
    }

    fn state(&self) -> Value {
        to_state(&(
            (&self.conversation, self.was_resumed, &self.permission_inputs, self.interrupts),
            (self.is_interrupted, &self.origin, self.unasked, self.cost),
            (self.said_in_pieces, self.thought_in_pieces, &self.answer),
        ))
    }

    fn restore(&mut self, state: Value) -> bool {
        from_state(state).map(|state| self.take(state)).is_some()
    }

    fn exited(&mut self, _exit: Exit, tail: &str) -> Vec<AgentOutput> {
        // Only the printed text shows this: the exit code is the same for every error.
        match self.resume_was_refused(tail) {
            true => vec![AgentOutput::ResumeRefused],
            false => Vec::new(),
        }
    }
}

const UNASKED: &str =
    "The agent has gone on by itself; that was no answer to the prompt, which it takes up now.";

fn is_question(line: &Value) -> bool {
    text(line, "/type") == "control_request" && text(line, "/request/subtype") == "can_use_tool"
}

/// The tool's input in a whole line; `None` if it would take too much memory.
fn input_of(line: &str) -> Option<Value> {
    let repaired = repaired(line.as_bytes(), INPUT).filter(|repaired| !repaired.is_cut)?;
    let line: Value = serde_json::from_str(&repaired.text).ok()?;
    Some(part(&line, "/request/input"))
}

fn is_own(line: &Value) -> bool {
    line.get("parent_tool_use_id").is_none_or(Value::is_null)
}

fn results(line: &Value) -> Vec<AgentOutput> {
    let blocks = list(line, "/message/content").iter();
    let results = blocks.filter(|block| text(block, "/type") == "tool_result");
    results
        .map(|block| {
            let ok = block.pointer("/is_error") != Some(&Value::Bool(true));
            let output = readable(&part(block, "/content"));
            AgentOutput::tool_finished(text(block, "/tool_use_id"), ok, output)
        })
        .collect()
}

fn final_text(line: &Value) -> Option<String> {
    Some(owned(line, "/result")).filter(|text| !text.is_empty())
}

/// Whether the turn was interrupted. The program reports an interrupted answer as a success, too.
fn was_interrupted(line: &Value) -> bool {
    text(line, "/terminal_reason").starts_with("aborted")
}

/// The errors of a result, in words for people.
fn errors(line: &Value) -> String {
    let errors: Vec<String> = list(line, "/errors").iter().map(readable).collect();
    match (errors.is_empty(), final_text(line)) {
        (false, _) => errors.join("; "),
        (true, Some(text)) => text,
        (true, None) => format!("The turn ended with {}.", text(line, "/subtype")),
    }
}

fn retry(line: &Value) -> String {
    let status = line.get("error_status").map(readable).unwrap_or_default();
    format!(
        "The model's server did not answer (status {status}); attempt {} of {} in {} ms.",
        number(line, "/attempt"),
        number(line, "/max_retries"),
        number(line, "/retry_delay_ms"),
    )
}

fn rate_limit(line: &Value) -> Vec<AgentOutput> {
    let status = text(line, "/rate_limit_info/status");
    match status {
        "" | "allowed" => Vec::new(),
        _ => vec![AgentOutput::notice(&format!("The account's rate limit: {status}."))],
    }
}

fn reply(key: &str, response: &Value) -> Vec<u8> {
    line(&json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": key, "response": response },
    }))
}

fn unsupported(key: &str) -> Vec<u8> {
    line(&json!({
        "type": "control_response",
        "response": { "subtype": "error", "request_id": key, "error": "not supported here" },
    }))
}
