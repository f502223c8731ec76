//! Dialects by their providers' names.

use super::{
    AcpCommand, acp::Acp, claude::Claude, codex::Codex, gemini::Gemini, opencode::Opencode,
};
use crate::agent::{
    dialect::contract::Dialect,
    launch::Launch,
    settings::{BadSettings, Settings},
};

/// A provider that needs no configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
    /// The provider's name in requests.
    pub name: &'static str,
    /// The name of its program, which is searched in `PATH`.
    pub program: &'static str,
    /// The command that installs the program.
    pub install: &'static str,
}

/// All providers that need no configuration.
pub const KNOWN: [BuiltIn; 6] = [
    BuiltIn { name: "claude", program: "claude", install: CLAUDE },
    BuiltIn { name: "codex", program: "codex", install: "npm install -g @openai/codex" },
    BuiltIn { name: "gemini", program: "gemini", install: GEMINI },
    BuiltIn { name: "opencode", program: "opencode", install: OPENCODE },
    BuiltIn { name: "gemini-acp", program: "gemini", install: GEMINI },
    BuiltIn { name: "opencode-acp", program: "opencode", install: OPENCODE },
];

const CLAUDE: &str = "npm install -g @anthropic-ai/claude-code";
const GEMINI: &str = "npm install -g @google/gemini-cli";
const OPENCODE: &str = "npm install -g opencode-ai";

/// The built-in provider with this name.
pub fn known(name: &str) -> Option<&'static BuiltIn> {
    KNOWN.iter().find(|known| known.name == name)
}

/// The dialect of a provider: one of `configured`, or one of [`KNOWN`].
///
/// # Errors
///
/// When there is no such provider, or it cannot be started with these settings.
pub fn open(
    provider: &str,
    configured: &[AcpCommand],
    settings: Settings,
) -> Result<Box<dyn Dialect>, BadSettings> {
    if let Some(command) = configured.iter().find(|command| command.name == provider) {
        return Ok(Box::new(Acp::new(command.clone(), settings)?));
    }
    Ok(match provider {
        "claude" => Box::new(Claude::new(settings)?),
        "codex" => Box::new(Codex::new(settings)?),
        "gemini" => Box::new(Gemini::new(settings)?),
        "opencode" => Box::new(Opencode::new(settings)?),
        "gemini-acp" => Box::new(Acp::gemini(settings)?),
        "opencode-acp" => Box::new(Acp::opencode(settings)?),
        _ => return Err(unknown(provider, configured)),
    })
}

/// The command line of a provider for a person at a terminal, in its own interface.
///
/// # Errors
///
/// As for [`open`]. Programs that are known only by configuration have no interface.
pub fn interactive(provider: &str, settings: Settings) -> Result<Launch, BadSettings> {
    Ok(match provider {
        "claude" => Claude::new(settings)?.interactive(),
        "codex" => Codex::new(settings)?.interactive(),
        "gemini" | "gemini-acp" => Gemini::new(settings)?.interactive(),
        "opencode" | "opencode-acp" => Opencode::new(settings)?.interactive(),
        _ => return Err(unknown(provider, &[])),
    })
}

fn unknown(provider: &str, configured: &[AcpCommand]) -> BadSettings {
    let known = KNOWN.iter().map(|known| known.name);
    let names: Vec<&str> = known.chain(configured.iter().map(|c| c.name.as_str())).collect();
    let name = provider.chars().take(100).collect();
    BadSettings::UnknownProvider { name, known: names.join(", ") }
}
