//! Codex: `codex exec --json`, a process for each turn.
//!
//! Its traps:
//!
//! - It reports the usage of the whole thread.
//! - A resumed thread falls back to a read-only sandbox unless the flags name the sandbox again.
//! - Without its model's server it prints "Reconnecting" for ever.
//! - Tools of MCP servers are cancelled unless they are approved beforehand.
//! - Errors of its model's server arrive as JSON within JSON.
//! - A command line is visible to other users, so keys go through the environment.

use serde_json::{Value, json};

use super::{
    json::{from_state, number, owned, part, readable, text, to_state},
    run::Run,
    started::StartedTools,
    words,
};
use crate::agent::{
    dialect::contract::{AgentOutput, Dialect, Halt, ParsedLine, Start, TurnResult},
    launch::{Exit, Launch, Signal},
    settings::{BadSettings, McpServer, PermissionMode, Settings},
    usage::Usage,
};

#[derive(Debug)]
pub(crate) struct Codex {
    settings: Settings,
    run: Run,
    /// The usage of the thread so far.
    used: Usage,
    started: StartedTools,
}

const KEY: &str = "AGENT_GATEWAY_KEY";

const RESERVED: [&str; 12] = [
    "json",
    "experimental-json",
    "model",
    "output-schema",
    "output-last-message",
    "last",
    "all",
    "help",
    "version",
    "ephemeral",
    "oss",
    "color",
];

impl Codex {
    pub(crate) fn new(settings: Settings) -> Result<Self, BadSettings> {
        settings.check(&RESERVED)?;
        check_variables(&settings.mcp_servers)?;
        Ok(Self { used: settings.used, settings, run: Run::default(), started: <_>::default() })
    }

    fn args(&self) -> Vec<String> {
        let mut args: Vec<String> =
            ["exec", "--json", "--skip-git-repo-check"].map(str::to_owned).into();
        args.extend(self.choices("never"));
        if let Some(thread) = &self.run.conversation {
            args.extend(["resume".to_owned(), thread.clone()]);
        }
        args.push("-".to_owned());
        args
    }

    /// The flags that are also in the command line for a person at the program's own terminal. `approval`
    /// is the program's policy: that person can be asked, while a turn cannot ask anybody.
    fn choices(&self, approval: &str) -> Vec<String> {
        let mut all = vec![("approval_policy".to_owned(), toml(approval))];
        all.extend(self.overrides());
        let overrides = all.into_iter().map(|(key, value)| format!("--config={key}={value}"));
        let model = self.settings.model().map(|model| format!("--model={model}"));
        overrides.chain(model).chain(self.settings.extra_args.iter().cloned()).collect()
    }

    /// The command line for a person at the program's own terminal.
    pub(super) fn interactive(&self) -> Launch {
        Launch {
            program: self.program(),
            args: self.choices("on-request"),
            env: self.env(),
            ..Launch::default()
        }
    }

    fn program(&self) -> String {
        self.settings.program.clone().unwrap_or_else(|| "codex".to_owned())
    }

    /// The settings, as keys and values of TOML.
    fn overrides(&self) -> Vec<(String, String)> {
        let sandbox = toml(sandbox(self.settings.permissions));
        let mut all = vec![("sandbox_mode".to_owned(), sandbox)];
        if let Some(gateway) = &self.settings.gateway {
            let of = |key: &str| format!("model_providers.warren.{key}");
            let url = format!("{}/v1", gateway.base_url.trim_end_matches('/'));
            all.push(("model_provider".to_owned(), toml("warren")));
            all.push((of("name"), toml("Warren")));
            all.push((of("base_url"), toml(&url)));
            all.push((of("env_key"), toml(KEY)));
            all.push((of("wire_api"), toml("responses")));
        }
        all.extend(self.settings.mcp_servers.iter().flat_map(server_overrides));
        all
    }

    fn env(&self) -> Vec<(String, String)> {
        let servers = self.settings.mcp_servers.iter().flat_map(|server| &server.env);
        let mut env: Vec<(String, String)> =
            servers.map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        env.extend(
            self.settings.gateway.iter().map(|g| (KEY.to_owned(), g.key.expose().to_owned())),
        );
        env.sort();
        env.dedup();
        env
    }

    fn item(&mut self, line: &Value, is_done: bool) -> Vec<AgentOutput> {
        let item = part(line, "/item");
        let said = text(&item, "/text");
        match (text(&item, "/type"), is_done) {
            ("agent_message", true) => {
                self.run.answer.set(said);
                vec![AgentOutput::text(said, false)]
            }
            ("reasoning", true) => vec![AgentOutput::thinking(said)],
            ("error", true) if self.is_known(text(&item, "/message")) => Vec::new(),
            ("error", true) => vec![AgentOutput::notice(text(&item, "/message"))],
            ("agent_message" | "reasoning" | "error" | "todo_list" | "", _) => Vec::new(),
            (kind, _) => self.tool(&item, kind, is_done),
        }
    }

    /// Whether a complaint is not worth showing: in each turn the program says that it does not know
    /// the gateway's model, and nobody can do anything about that.
    fn is_known(&self, complaint: &str) -> bool {
        self.settings.gateway.is_some() && complaint.starts_with("Model metadata for")
    }

    /// Handles an item about a tool. Some tools are reported only when they are done.
    fn tool(&mut self, item: &Value, kind: &str, is_done: bool) -> Vec<AgentOutput> {
        let id = owned(item, "/id");
        let mut outputs = Vec::new();
        if self.started.begin(&id) {
            outputs.push(AgentOutput::tool_started(&id, &tool_name(item, kind), tool_input(item)));
        }
        if is_done {
            self.started.end(&id);
            outputs.push(AgentOutput::tool_finished(&id, went_well(item), tool_output(item)));
        }
        outputs
    }

    fn completed(&mut self, line: &Value) -> TurnResult {
        let total = Usage {
            input_tokens: number(line, "/usage/input_tokens"),
            output_tokens: number(line, "/usage/output_tokens"),
            cost_usd: None,
        };
        let usage = self.used.until(total);
        self.used = total;
        TurnResult::completed(self.run.answer.take(), usage)
    }
}

impl Dialect for Codex {
    fn provider(&self) -> &str {
        "codex"
    }

    fn used(&self) -> Option<Usage> {
        Some(self.used)
    }

    fn launch(&mut self, start: Start<'_>) -> Launch {
        if start.conversation.is_none() {
            self.used = Usage::default();
        }
        self.run = Run::new(start);
        self.started.clear();
        Launch {
            program: self.program(),
            args: self.args(),
            env: self.env(),
            files: Vec::new(),
            stdin: Some(start.prompt.as_bytes().to_vec()),
            keep_stdin_open: false,
        }
    }

    fn parse(&mut self, line: &Value) -> ParsedLine {
        let kind = text(line, "/type");
        self.run.has_begun |= matches!(kind, "thread.started" | "turn.started");
        match kind {
            "thread.started" => ParsedLine::progress(self.run.note_id(text(line, "/thread_id"))),
            "turn.started" => ParsedLine::progress(Vec::new()),
            "item.started" | "item.updated" => ParsedLine::progress(self.item(line, false)),
            "item.completed" => ParsedLine::progress(self.item(line, true)),
            "turn.completed" => {
                ParsedLine::progress(vec![AgentOutput::Ended(self.completed(line))])
            }
            "turn.failed" => {
                let ended = TurnResult::failed(text(line, "/error/message"), Usage::default());
                ParsedLine::progress(vec![AgentOutput::Ended(ended)])
            }
            "error" => self.run.complain(words::notice(text(line, "/message"))),
            _ => ParsedLine::default(),
        }
    }

    fn interrupt(&mut self) -> Halt {
        Halt::Signal(Signal::Int)
    }

    fn state(&self) -> Value {
        to_state(&(&self.run, self.used, &self.started))
    }

    fn restore(&mut self, state: Value) -> bool {
        from_state(state).map(|state| (self.run, self.used, self.started) = state).is_some()
    }

    fn exited(&mut self, exit: Exit, tail: &str) -> Vec<AgentOutput> {
        self.run.exited(exit, tail)
    }
}

/// The sandbox for these permissions. The program cannot ask for permission, so it works within a
/// sandbox instead.
fn sandbox(permissions: PermissionMode) -> &'static str {
    match permissions {
        PermissionMode::Plan => "read-only",
        PermissionMode::Ask | PermissionMode::AcceptEdits => "workspace-write",
        PermissionMode::Bypass => "danger-full-access",
    }
}

fn server_overrides(server: &McpServer) -> Vec<(String, String)> {
    let of = |key: &str| format!("mcp_servers.{}.{key}", server.name);
    let args: Vec<String> = server.args.iter().map(|arg| toml(arg)).collect();
    let variables: Vec<String> = server.env.iter().map(|(name, _)| toml(name)).collect();
    vec![
        (of("command"), toml(&server.command)),
        (of("args"), format!("[{}]", args.join(","))),
        (of("env_vars"), format!("[{}]", variables.join(","))),
        (of("default_tools_approval_mode"), toml("approve")),
    ]
}

fn check_variables(servers: &[McpServer]) -> Result<(), BadSettings> {
    let all = || servers.iter().flat_map(|server| &server.env);
    let clash = all().find(|(name, value)| all().any(|(n, v)| n == name && v != value));
    match clash {
        Some((name, _)) => Err(BadSettings::Variable { variable: name.clone() }),
        None => Ok(()),
    }
}

/// A string of TOML. It has the escapes of JSON, and one for DEL.
fn toml(text: &str) -> String {
    Value::String(text.to_owned()).to_string().replace('\u{7f}', "\\u007F")
}

fn tool_name(item: &Value, kind: &str) -> String {
    match kind {
        "mcp_tool_call" => format!("{}.{}", text(item, "/server"), text(item, "/tool")),
        kind => kind.to_owned(),
    }
}

fn tool_input(item: &Value) -> Value {
    let found = ["command", "changes", "arguments", "query"]
        .into_iter()
        .find_map(|name| item.get(name).map(|value| (name, value)));
    match found {
        Some(("arguments", value)) => value.clone(),
        Some((name, value)) => json!({ name: value }),
        None => Value::Null,
    }
}

fn tool_output(item: &Value) -> String {
    let found = ["/aggregated_output", "/result/content", "/error/message"]
        .into_iter()
        .map(|pointer| readable(&part(item, pointer)))
        .find(|output| !output.is_empty());
    found.unwrap_or_default()
}

fn went_well(item: &Value) -> bool {
    let code = item.get("exit_code").and_then(Value::as_i64).unwrap_or(0);
    code == 0 && !matches!(text(item, "/status"), "failed" | "declined")
}
