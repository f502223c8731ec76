//! opencode: `opencode run --format json`, a process for each turn.
//!
//! Its traps:
//!
//! - No line reports the end of a turn; the process just ends.
//! - A process may exit with success and without an answer, when a permission was refused for it.
//! - It puts quotes around an argument that has a space. So prompts go through its input.
//! - It replaces `{env:…}` anywhere in its settings.

use serde_json::{Map, Value, json};

use super::{
    json::{from_state, number, owned, part, readable, text, to_state},
    run::Run,
    words,
};
use crate::agent::{
    dialect::contract::{AgentOutput, Dialect, Halt, ParsedLine, Start, TurnResult},
    launch::{Exit, Launch, PrivateFile, Signal},
    settings::{BadSettings, PermissionMode, Settings},
    usage::Usage,
};

#[derive(Debug)]
pub(crate) struct Opencode {
    settings: Settings,
    run: Run,
    /// The session that this process named first. Its helpers have other sessions.
    session: String,
    is_done: bool,
    used: Usage,
}

const SETTINGS_FILE: &str = "opencode.json";

const RESERVED: [&str; 14] = [
    "format", "session", "continue", "fork", "model", "command", "attach", "password", "dir",
    "port", "auto", "agent", "help", "version",
];

impl Opencode {
    pub(crate) fn new(settings: Settings) -> Result<Self, BadSettings> {
        settings.check(&RESERVED)?;
        let (run, session, used) = <_>::default();
        Ok(Self { settings, run, session, is_done: false, used })
    }

    fn args(&self) -> Vec<String> {
        let mut args = vec!["run".to_owned(), "--format=json".to_owned()];
        if self.settings.permissions == PermissionMode::Bypass {
            args.push("--auto".to_owned());
        }
        args.extend(self.choices());
        args.extend(self.run.conversation.iter().map(|id| format!("--session={id}")));
        args
    }

    /// The flags that are also in the command line for a person at the program's own terminal.
    fn choices(&self) -> Vec<String> {
        let plans = self.settings.permissions == PermissionMode::Plan;
        let agent = plans.then(|| "--agent=plan".to_owned());
        let model = model(&self.settings).map(|model| format!("--model={model}"));
        let extra = self.settings.extra_args.iter().cloned();
        model.into_iter().chain(agent).chain(extra).collect()
    }

    /// The command line for a person at the program's own terminal.
    pub(super) fn interactive(&self) -> Launch {
        self.with(self.choices())
    }

    fn with(&self, args: Vec<String>) -> Launch {
        let program = self.settings.program.clone().unwrap_or_else(|| "opencode".to_owned());
        let mut launch = Launch { program, args, ..Launch::default() };
        configure(&self.settings, false, &mut launch);
        launch
    }

    fn is_of_other_session(&self, session: &str) -> bool {
        !session.is_empty() && session != self.session
    }

    fn text(&mut self, line: &Value) -> Option<AgentOutput> {
        let said = text(line, "/part/text");
        self.run.answer.set(said);
        (!said.is_empty()).then(|| AgentOutput::text(said, false))
    }

    /// Counts the usage of one request to the model. A turn may have several requests.
    fn step(&mut self, line: &Value) -> Option<AgentOutput> {
        let tokens = ["input", "cache/read", "cache/write"]
            .map(|name| number(line, &format!("/part/tokens/{name}")));
        let written =
            ["output", "reasoning"].map(|name| number(line, &format!("/part/tokens/{name}")));
        let used = &mut self.used;
        used.input_tokens = tokens.into_iter().fold(used.input_tokens, u64::saturating_add);
        used.output_tokens = written.into_iter().fold(used.output_tokens, u64::saturating_add);
        if let Some(cost) = line.pointer("/part/cost").and_then(Value::as_f64) {
            used.cost_usd = Some(used.cost_usd.unwrap_or(0.0) + cost);
        }
        self.is_done = text(line, "/part/reason") == "stop";
        self.is_done.then_some(AgentOutput::Leaving)
    }
}

impl Dialect for Opencode {
    fn provider(&self) -> &str {
        "opencode"
    }

    fn launch(&mut self, start: Start<'_>) -> Launch {
        self.run = Run::new(start);
        self.session.clear();
        self.is_done = false;
        self.used = Usage::default();
        Launch { stdin: Some(start.prompt.as_bytes().to_vec()), ..self.with(self.args()) }
    }

    fn parse(&mut self, line: &Value) -> ParsedLine {
        let session = text(line, "/sessionID");
        if self.session.is_empty() {
            session.clone_into(&mut self.session);
        }
        if self.is_of_other_session(session) {
            return ParsedLine::progress(Vec::new());
        }
        if text(line, "/type") == "error" {
            return self.run.complain(complaint(line));
        }
        // Every line names the conversation.
        let mut outputs = self.run.note_id(session);
        self.run.has_begun = true;
        outputs.extend(match text(line, "/type") {
            "text" => self.text(line).into_iter().collect(),
            "reasoning" => vec![AgentOutput::thinking(text(line, "/part/text"))],
            "tool_use" => tool(line),
            "step_finish" => self.step(line).into_iter().collect(),
            "step_start" => Vec::new(),
            _ => return ParsedLine::waiting(outputs),
        });
        ParsedLine::progress(outputs)
    }

    fn interrupt(&mut self) -> Halt {
        Halt::Signal(Signal::Int)
    }

    fn state(&self) -> Value {
        to_state(&(&self.run, &self.session, self.is_done, self.used))
    }

    fn restore(&mut self, state: Value) -> bool {
        from_state(state)
            .map(|state| (self.run, self.session, self.is_done, self.used) = state)
            .is_some()
    }

    fn exited(&mut self, exit: Exit, tail: &str) -> Vec<AgentOutput> {
        if self.run.resume_was_refused(tail) {
            return vec![AgentOutput::ResumeRefused];
        }
        let answer = self.run.answer.take();
        let ended = match (self.run.complaint.as_str(), exit.is_success()) {
            ("", true) if self.is_done || answer.is_some() => {
                TurnResult::completed(answer, self.used)
            }
            ("", true) => TurnResult::failed(SILENT, self.used),
            ("", false) => return Vec::new(),
            _ => self.run.failed(exit, self.used),
        };
        vec![AgentOutput::Ended(ended)]
    }
}

const SILENT: &str =
    "It ended without an answer; perhaps it refused itself a permission that it could not ask for.";

/// The model in the program's own form. In the settings that this module writes, the gateway is the
/// provider `warren`.
pub(super) fn model(settings: &Settings) -> Option<String> {
    match &settings.gateway {
        Some(gateway) => Some(format!("warren/{}", gateway.model)),
        None => settings.model.clone(),
    }
}

/// Adds the settings for a gateway and the MCP servers. Over ACP the program gets the servers later,
/// and must not start them twice; but only these settings can name its model.
pub(super) fn configure(settings: &Settings, over_acp: bool, launch: &mut Launch) {
    let mut object = Map::new();
    if let Some(gateway) = &settings.gateway {
        let url = format!("{}/v1", gateway.base_url.trim_end_matches('/'));
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible",
            "name": "Warren",
            "options": { "baseURL": url, "apiKey": gateway.key.expose() },
            "models": { gateway.model.as_str(): {} },
        });
        object.insert("provider".to_owned(), json!({ "warren": provider }));
    }
    if let Some(model) = model(settings).filter(|_| over_acp || settings.gateway.is_some()) {
        object.insert("model".to_owned(), json!(model));
    }
    if !over_acp && !settings.mcp_servers.is_empty() {
        object.insert("mcp".to_owned(), servers(settings));
    }
    if !object.is_empty() {
        launch.env.push(("OPENCODE_CONFIG".to_owned(), settings.path_of(SETTINGS_FILE)));
        let contents = Value::Object(object).to_string();
        launch.files.push(PrivateFile { name: SETTINGS_FILE.to_owned(), contents });
    }
}

fn servers(settings: &Settings) -> Value {
    let entries = settings.mcp_servers.iter().map(|server| {
        let command: Vec<&String> = std::iter::once(&server.command).chain(&server.args).collect();
        let entry = json!({
            "type": "local",
            "command": command,
            "environment": server.env_object(),
            "enabled": true,
        });
        (server.name.clone(), entry)
    });
    Value::Object(entries.collect())
}

/// The events of a tool use. The program reports a tool only after its end, so both come at once.
fn tool(line: &Value) -> Vec<AgentOutput> {
    let id = match text(line, "/part/callID") {
        "" => text(line, "/part/id"),
        id => id,
    };
    let state = part(line, "/part/state");
    let ok = text(&state, "/status") == "completed";
    let output = match ok {
        true => readable(&part(&state, "/output")),
        false => owned(&state, "/error"),
    };
    vec![
        AgentOutput::tool_started(id, text(line, "/part/tool"), part(&state, "/input")),
        AgentOutput::tool_finished(id, ok, output),
    ]
}

fn complaint(line: &Value) -> String {
    let message = text(line, "/error/data/message");
    let name = text(line, "/error/name");
    words::notice(&match (name, message) {
        ("", "") => readable(&part(line, "/error")),
        ("", message) => message.to_owned(),
        (name, "") => name.to_owned(),
        (name, message) => format!("{name}: {message}"),
    })
}
