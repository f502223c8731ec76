//! The command line of Claude Code.

use serde_json::json;

use super::Claude;
use crate::agent::{
    launch::{Launch, PrivateFile},
    settings::PermissionMode,
};

const MCP_FILE: &str = "claude-mcp.json";

/// Flags that would change the conversation or the form of its input and output.
pub(super) const RESERVED: [&str; 17] = [
    "print",
    "input-format",
    "output-format",
    "verbose",
    "permission-prompt-tool",
    "permission-mode",
    "resume",
    "continue",
    "session-id",
    "fork-session",
    "model",
    "version",
    "help",
    "replay-user-messages",
    "include-partial-messages",
    "no-session-persistence",
    "dangerously-skip-permissions",
];

impl Claude {
    pub(super) fn args(&self) -> Vec<String> {
        let fixed = [
            "-p",
            "--input-format=stream-json",
            "--output-format=stream-json",
            "--verbose",
            "--include-partial-messages",
            "--replay-user-messages",
            "--permission-prompt-tool=stdio",
        ];
        let mut args: Vec<String> = fixed.map(str::to_owned).into();
        args.extend(self.choices());
        args.extend(self.conversation.iter().map(|id| format!("--resume={id}")));
        args
    }

    /// The flags that are also in the command line for a person at the program's own terminal.
    fn choices(&self) -> Vec<String> {
        let settings = &self.settings;
        let mut args = vec![format!("--permission-mode={}", mode(settings.permissions))];
        args.extend(settings.model().map(|model| format!("--model={model}")));
        if !settings.mcp_servers.is_empty() {
            args.push(format!("--mcp-config={}", settings.path_of(MCP_FILE)));
            let tools: Vec<String> =
                settings.mcp_servers.iter().map(|server| format!("mcp__{}", server.name)).collect();
            args.push(format!("--allowedTools={}", tools.join(",")));
        }
        args.extend(settings.extra_args.iter().cloned());
        args
    }

    /// The command line for a person at the program's own terminal.
    pub(in crate::agent::dialect) fn interactive(&self) -> Launch {
        Launch {
            program: self.program(),
            args: self.choices(),
            env: self.env(),
            files: self.files(),
            ..Launch::default()
        }
    }

    pub(super) fn program(&self) -> String {
        self.settings.program.clone().unwrap_or_else(|| "claude".to_owned())
    }

    pub(super) fn env(&self) -> Vec<(String, String)> {
        let Some(gateway) = &self.settings.gateway else { return Vec::new() };
        let model = &gateway.model;
        [
            ("ANTHROPIC_BASE_URL", gateway.base_url.as_str()),
            // The key is not passed as an API key: at a terminal the program asks for each new API key
            // whether it may be used. The variable for an API key is emptied, since the program warns if
            // both are set.
            ("ANTHROPIC_AUTH_TOKEN", gateway.key.expose()),
            ("ANTHROPIC_API_KEY", ""),
            ("ANTHROPIC_DEFAULT_OPUS_MODEL", model),
            ("ANTHROPIC_DEFAULT_SONNET_MODEL", model),
            ("ANTHROPIC_DEFAULT_HAIKU_MODEL", model),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// The files with settings that may hold secrets: the command line is visible to all users of the
    /// machine.
    pub(super) fn files(&self) -> Vec<PrivateFile> {
        if self.settings.mcp_servers.is_empty() {
            return Vec::new();
        }
        let servers = self.settings.mcp_object(&[("type", json!("stdio"))]);
        let contents = json!({ "mcpServers": servers }).to_string();
        vec![PrivateFile { name: MCP_FILE.to_owned(), contents }]
    }
}

fn mode(permissions: PermissionMode) -> &'static str {
    match permissions {
        PermissionMode::Ask => "default",
        PermissionMode::AcceptEdits => "acceptEdits",
        PermissionMode::Plan => "plan",
        PermissionMode::Bypass => "bypassPermissions",
    }
}
