//! The settings of an agent session.

use base::Secret;
use serde_json::{Map, Value, json};

/// The settings of an agent session.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The program, where it is not the provider's usual name.
    pub program: Option<String>,
    /// Where it works: an absolute path.
    pub working_dir: String,
    /// Where [`crate::agent::PrivateFile`]s are written: an absolute path.
    pub private_dir: String,
    /// By its name at the provider. A gateway's model goes before it.
    pub model: Option<String>,
    /// More arguments, each a whole `--flag` or `--flag=value`.
    pub extra_args: Vec<String>,
    /// The permissions that the agent has without asking.
    pub permissions: PermissionMode,
    /// Tools beside its own, trusted.
    pub mcp_servers: Vec<McpServer>,
    /// Where it finds its model, if not at its maker's.
    pub gateway: Option<Gateway>,
    /// What the resumed conversation took so far, as the last [`crate::agent::Output::Used`] had it.
    pub used: super::usage::Usage,
}

/// The permissions of an agent without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PermissionMode {
    /// It asks, where it can; where it cannot, it stays within its own sandbox.
    #[default]
    Ask,
    /// Files of the project are changed unasked.
    AcceptEdits,
    /// Nothing is changed.
    Plan,
    /// Everything.
    Bypass,
}

/// A program that offers tools over MCP on its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Letters, digits, `_` and `-`.
    pub name: String,
    /// The program: an absolute path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment. Values never stand in a command line.
    pub env: Vec<(String, Secret)>,
}

/// A server of models that stands in for the maker's.
#[derive(Debug, Clone)]
pub struct Gateway {
    /// `http://HOST:PORT`, without `/v1`.
    pub base_url: String,
    /// The key for it.
    pub key: Secret,
    /// The model's name there.
    pub model: String,
}

/// Why an agent cannot be started like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// No such provider.
    #[error("there is no agent \"{name}\"; known are: {known}")]
    UnknownProvider {
        /// The requested name.
        name: String,
        /// All names.
        known: String,
    },
    /// An argument that is no flag.
    #[error("extra argument \"{argument}\" is not of the form --flag or --flag=value")]
    NotAFlag {
        /// The argument, shortened.
        argument: String,
    },
    /// A flag that Warren itself sets.
    #[error("extra argument \"{argument}\" is set by Warren itself; leave it out")]
    Reserved {
        /// The argument, shortened.
        argument: String,
    },
    /// A model's name that cannot be one.
    #[error("the model's name is empty, longer than 256 bytes, or has characters that none has")]
    Model,
    /// A name of an MCP server that not every agent takes.
    #[error("MCP server \"{name}\": a name has 1 to 64 letters, digits, _ and -")]
    ServerName {
        /// The name, shortened.
        name: String,
    },
    /// Two MCP servers want one variable to be different things, and the agent has one environment.
    #[error("two MCP servers set the variable {variable} differently, which this agent cannot do")]
    Variable {
        /// Its name.
        variable: String,
    },
}

impl Settings {
    /// The model to ask for.
    pub(crate) fn model(&self) -> Option<&str> {
        self.gateway.as_ref().map(|gateway| gateway.model.as_str()).or(self.model.as_deref())
    }

    /// Where a private file will be.
    pub(crate) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.private_dir.trim_end_matches('/'))
    }

    /// Checks what came from a client; `reserved` are the flags that the dialect sets.
    pub(crate) fn check(&self, reserved: &[&str]) -> Result<(), BadSettings> {
        self.extra_args.iter().try_for_each(|argument| check_argument(argument, reserved))?;
        self.model().map_or(Ok(()), check_model)?;
        self.mcp_servers.iter().try_for_each(|server| check_name(&server.name))
    }

    /// `{NAME: {command, args, env}}`, as Claude and Gemini read it, with `more` in each.
    pub(crate) fn mcp_object(&self, more: &[(&str, Value)]) -> Value {
        let object = self.mcp_servers.iter().map(|server| {
            let mut entry = Map::new();
            entry.insert("command".to_owned(), json!(server.command));
            entry.insert("args".to_owned(), json!(server.args));
            entry.insert("env".to_owned(), server.env_object());
            entry.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
            (server.name.clone(), Value::Object(entry))
        });
        Value::Object(object.collect())
    }
}

impl McpServer {
    pub(crate) fn env_object(&self) -> Value {
        let pairs = self.env.iter().map(|(name, value)| (name.clone(), json!(value.expose())));
        Value::Object(pairs.collect())
    }
}

fn check_argument(argument: &str, reserved: &[&str]) -> Result<(), BadSettings> {
    let shown = || argument.chars().take(100).collect();
    let name = argument.strip_prefix("--").unwrap_or_default().split('=').next();
    let name = name.unwrap_or_default();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || argument.contains('\0') {
        return Err(BadSettings::NotAFlag { argument: shown() });
    }
    match reserved.contains(&name) {
        true => Err(BadSettings::Reserved { argument: shown() }),
        false => Ok(()),
    }
}

/// Braces too are refused: one of the programs reads them as a place to fill in.
fn check_model(model: &str) -> Result<(), BadSettings> {
    let odd = |c: char| c.is_control() || matches!(c, '{' | '}');
    match (1..=256).contains(&model.len()) && !model.contains(odd) {
        true => Ok(()),
        false => Err(BadSettings::Model),
    }
}

fn check_name(name: &str) -> Result<(), BadSettings> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match (1..=64).contains(&name.len()) && name.bytes().all(fits) {
        true => Ok(()),
        false => Err(BadSettings::ServerName { name: name.chars().take(100).collect() }),
    }
}
