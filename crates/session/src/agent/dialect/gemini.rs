//! Gemini CLI: `gemini -o stream-json`, a process for each turn.
//!
//! Its traps:
//!
//! - It reports a wrong key only in plain text.
//! - It refuses to send a key from its environment to an address that is not Google's, unless its settings
//!   name a kind of authentication.
//! - It reads system settings only from files that root owns.
//! - It refuses to start in an untrusted directory.

use serde_json::{Map, Value, json};

use super::{
    json::{from_state, number, part, readable, text, to_state},
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
pub(crate) struct Gemini {
    settings: Settings,
    run: Run,
}

pub(super) const SETTINGS_FILE: &str = "gemini-settings.json";

/// The file of the user's settings in a home that belongs to the session alone.
pub(super) const HOME_SETTINGS_FILE: &str = ".gemini/settings.json";

const RESERVED: [&str; 15] = [
    "prompt",
    "prompt-interactive",
    "output-format",
    "resume",
    "model",
    "approval-mode",
    "yolo",
    "acp",
    "experimental-acp",
    "list-sessions",
    "delete-session",
    "list-extensions",
    "help",
    "version",
    "skip-trust",
];

impl Gemini {
    pub(crate) fn new(settings: Settings) -> Result<Self, BadSettings> {
        settings.check(&RESERVED)?;
        Ok(Self { settings, run: Run::default() })
    }

    fn args(&self) -> Vec<String> {
        let mut args = vec!["--output-format=stream-json".to_owned()];
        args.extend(self.choices());
        args.extend(self.run.conversation.iter().map(|id| format!("--resume={id}")));
        args
    }

    /// The flags that are also in the command line for a person at the program's own terminal.
    fn choices(&self) -> Vec<String> {
        let mut args = vec!["--skip-trust".to_owned()];
        args.push(format!("--approval-mode={}", mode(self.settings.permissions)));
        args.extend(self.settings.model().map(|model| format!("--model={model}")));
        args.extend(self.settings.extra_args.iter().cloned());
        args
    }

    /// The command line for a person at the program's own terminal.
    pub(super) fn interactive(&self) -> Launch {
        self.with(self.choices())
    }

    fn with(&self, args: Vec<String>) -> Launch {
        let program = self.settings.program.clone().unwrap_or_else(|| "gemini".to_owned());
        let mut launch = Launch { program, args, ..Launch::default() };
        configure(&self.settings, true, &mut launch);
        launch
    }

    fn message(&mut self, line: &Value) -> Vec<AgentOutput> {
        let content = text(line, "/content");
        if text(line, "/role") != "assistant" || content.is_empty() {
            return Vec::new();
        }
        let delta = line.get("delta") == Some(&Value::Bool(true));
        match delta {
            true => self.run.answer.push(content),
            false => self.run.answer.set(content),
        }
        vec![AgentOutput::text(content, delta)]
    }

    /// Handles the use of a tool. Text before it is not the final answer.
    fn tool_use(&mut self, line: &Value) -> Vec<AgentOutput> {
        self.run.answer.clear();
        let input = part(line, "/parameters");
        vec![AgentOutput::tool_started(text(line, "/tool_id"), text(line, "/tool_name"), input)]
    }

    fn result(&mut self, line: &Value) -> TurnResult {
        let usage = Usage {
            input_tokens: number(line, "/stats/input_tokens"),
            output_tokens: number(line, "/stats/output_tokens"),
            cost_usd: None,
        };
        match text(line, "/status") {
            "success" => TurnResult::completed(self.run.answer.take(), usage),
            status => TurnResult::failed(&failure(line, status), usage),
        }
    }
}

impl Dialect for Gemini {
    fn provider(&self) -> &str {
        "gemini"
    }

    fn launch(&mut self, start: Start<'_>) -> Launch {
        self.run = Run::new(start);
        Launch { stdin: Some(start.prompt.as_bytes().to_vec()), ..self.with(self.args()) }
    }

    fn parse(&mut self, line: &Value) -> ParsedLine {
        let kind = text(line, "/type");
        match kind {
            "init" => {
                self.run.has_begun = true;
                ParsedLine::progress(self.run.note_id(text(line, "/session_id")))
            }
            "message" => ParsedLine::progress(self.message(line)),
            "tool_use" => ParsedLine::progress(self.tool_use(line)),
            "tool_result" => ParsedLine::progress(vec![tool_result(line)]),
            "result" => ParsedLine::progress(vec![AgentOutput::Ended(self.result(line))]),
            "error" => self.run.complain(words::notice(text(line, "/message"))),
            _ => ParsedLine::default(),
        }
    }

    fn interrupt(&mut self) -> Halt {
        Halt::Signal(Signal::Int)
    }

    fn state(&self) -> Value {
        to_state(&self.run)
    }

    fn restore(&mut self, state: Value) -> bool {
        from_state(state).map(|run| self.run = run).is_some()
    }

    fn exited(&mut self, exit: Exit, tail: &str) -> Vec<AgentOutput> {
        self.run.exited(exit, tail)
    }
}

/// Adds settings that point the program at a gateway, and at the MCP servers if `with_servers`. With a gateway, the
/// session has a home of its own, so that neither a login nor a setting of the user's leads elsewhere. Without a
/// gateway, the settings are passed as system settings, and those of the user stay.
pub(super) fn configure(settings: &Settings, with_servers: bool, launch: &mut Launch) {
    let mut object = Map::new();
    if let Some(gateway) = &settings.gateway {
        object
            .insert("security".to_owned(), json!({ "auth": { "selectedType": "gemini-api-key" } }));
        launch.env.push(("GOOGLE_GEMINI_BASE_URL".to_owned(), gateway.base_url.clone()));
        launch.env.push(("GEMINI_API_KEY".to_owned(), gateway.key.expose().to_owned()));
    }
    if with_servers && !settings.mcp_servers.is_empty() {
        let servers = settings.mcp_object(&[("trust", Value::Bool(true))]);
        object.insert("mcpServers".to_owned(), servers);
    }
    if object.is_empty() {
        return;
    }
    let (name, variable, path) = match settings.gateway {
        Some(_) => (HOME_SETTINGS_FILE, "GEMINI_CLI_HOME", settings.private_dir.clone()),
        None => (SETTINGS_FILE, "GEMINI_CLI_SYSTEM_SETTINGS_PATH", settings.path_of(SETTINGS_FILE)),
    };
    launch.env.push((variable.to_owned(), path));
    let contents = Value::Object(object).to_string();
    launch.files.push(PrivateFile { name: name.to_owned(), contents });
}

/// The program's name for a permission mode.
pub(super) fn mode(permissions: PermissionMode) -> &'static str {
    match permissions {
        PermissionMode::Ask => "default",
        PermissionMode::AcceptEdits => "auto_edit",
        PermissionMode::Plan => "plan",
        PermissionMode::Bypass => "yolo",
    }
}

fn tool_result(line: &Value) -> AgentOutput {
    let ok = text(line, "/status") == "success";
    let outputs = ["/output", "/error/message"].map(|pointer| readable(&part(line, pointer)));
    let output = outputs.into_iter().find(|output| !output.is_empty()).unwrap_or_default();
    AgentOutput::tool_finished(text(line, "/tool_id"), ok, output)
}

fn failure(line: &Value, status: &str) -> String {
    match text(line, "/error/message") {
        "" => format!("The turn ended with status \"{status}\"."),
        message => message.to_owned(),
    }
}
