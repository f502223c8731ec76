//! The settings of an agent session.

use base::Secret;
use serde_json::{Map, Value, json};

/// The settings of an agent session.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The program, if it is not the provider's usual one.
    pub program: Option<String>,
    /// The working directory: an absolute path.
    pub working_dir: String,
    /// The directory in which [`crate::agent::PrivateFile`]s are written: an absolute path.
    pub private_dir: String,
    /// The model's name at the provider. A gateway's model takes precedence.
    pub model: Option<String>,
    /// Further arguments, each a whole `--flag` or `--flag=value`.
    pub extra_args: Vec<String>,
    /// The actions that the agent may take without asking.
    pub permissions: PermissionMode,
    /// MCP servers with further tools, which the agent trusts.
    pub mcp_servers: Vec<McpServer>,
    /// The server that provides the model; `None` for the model's maker.
    pub gateway: Option<Gateway>,
    /// The usage of the resumed conversation so far, as in the last [`crate::agent::Output::Used`].
    pub used: super::usage::Usage,
}

/// The actions that an agent may take without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PermissionMode {
    /// The agent asks, if it can; if it cannot, it stays within its own sandbox.
    #[default]
    Ask,
    /// The agent changes files of the project without asking.
    AcceptEdits,
    /// The agent changes nothing.
    Plan,
    /// The agent does everything without asking.
    Bypass,
}

/// A program that offers tools over MCP on its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// The program: an absolute path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment variables. Values never appear in a command line.
    pub env: Vec<(String, Secret)>,
}

/// A server of models that replaces the maker's.
#[derive(Debug, Clone)]
pub struct Gateway {
    /// `http://HOST:PORT`, without `/v1`.
    pub base_url: String,
    /// The key for the server.
    pub key: Secret,
    /// The model's name at the server.
    pub model: String,
}

/// The reason why an agent cannot be started with these settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// There is no such provider.
    #[error("there is no agent \"{name}\"; known are: {known}")]
    UnknownProvider {
        /// The requested name.
        name: String,
        /// All known names.
        known: String,
    },
    /// An extra argument is not a flag.
    #[error("extra argument \"{argument}\" is not of the form --flag or --flag=value")]
    NotAFlag {
        /// The argument, shortened.
        argument: String,
    },
    /// An extra argument is a flag that Warren itself sets.
    #[error("extra argument \"{argument}\" is set by Warren itself; leave it out")]
    Reserved {
        /// The argument, shortened.
        argument: String,
    },
    /// The model's name is not a valid one.
    #[error("the model's name is empty, longer than 256 bytes, or has characters that none has")]
    Model,
    /// The name of an MCP server is not one that every agent accepts.
    #[error("MCP server \"{name}\": a name has 1 to 64 letters, digits, _ and -")]
    ServerName {
        /// The name, shortened.
        name: String,
    },
    /// Two MCP servers need different values of one variable, and the agent has only one
    /// environment.
    #[error("two MCP servers set the variable {variable} differently, which this agent cannot do")]
    Variable {
        /// The variable's name.
        variable: String,
    },
}

impl Settings {
    /// The model to request.
    pub(crate) fn model(&self) -> Option<&str> {
        self.gateway.as_ref().map(|gateway| gateway.model.as_str()).or(self.model.as_deref())
    }

    /// The path of a private file.
    pub(crate) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.private_dir.trim_end_matches('/'))
    }

    /// Checks the settings that come from a client. `reserved` are the flags that the dialect sets.
    pub(crate) fn check(&self, reserved: &[&str]) -> Result<(), BadSettings> {
        self.extra_args.iter().try_for_each(|argument| check_argument(argument, reserved))?;
        self.model().map_or(Ok(()), check_model)?;
        self.mcp_servers.iter().try_for_each(|server| check_name(&server.name))
    }

    /// The MCP servers as `{NAME: {command, args, env}}`, the form that Claude and Gemini read,
    /// with the fields `more` added to each.
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

/// Checks a model's name. Braces are refused, since opencode replaces placeholders in braces.
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
