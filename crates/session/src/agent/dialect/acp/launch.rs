//! The command lines of programs that speak the protocol.

use base::Secret;

use super::{
    super::{gemini, opencode},
    AcpCommand,
};
use crate::agent::{
    launch::Launch,
    settings::{PermissionMode, Settings},
};

#[derive(Debug)]
pub(super) enum Program {
    Gemini,
    Opencode,
    Configured(AcpCommand),
}

impl Program {
    pub(super) fn provider(&self) -> &str {
        match self {
            Self::Gemini => "gemini-acp",
            Self::Opencode => "opencode-acp",
            Self::Configured(command) => &command.name,
        }
    }

    /// The flags that Warren sets itself, and those that would make the program speak something
    /// else.
    pub(super) fn reserved(&self) -> &'static [&'static str] {
        match self {
            Self::Gemini => &[
                "acp",
                "experimental-acp",
                "model",
                "prompt",
                "prompt-interactive",
                "resume",
                "output-format",
                "approval-mode",
                "yolo",
                "skip-trust",
                "help",
                "version",
            ],
            Self::Opencode => &["help", "version", "port", "hostname", "cwd"],
            Self::Configured(_) => &[],
        }
    }

    /// Whether the command line or its settings name the model.
    pub(super) fn sets_model(&self) -> bool {
        !matches!(self, Self::Configured(_))
    }

    pub(super) fn launch(&self, settings: &Settings) -> Launch {
        let mut launch = match self {
            Self::Gemini => gemini_launch(settings),
            Self::Opencode => opencode_launch(settings),
            Self::Configured(command) => Launch {
                program: command.command.clone(),
                args: command.args.clone(),
                env: exposed(&command.env),
                ..Launch::default()
            },
        };
        if let Some(program) = &settings.program {
            launch.program.clone_from(program);
        }
        launch.args.extend(settings.extra_args.iter().cloned());
        launch
    }
}

fn exposed(env: &[(String, Secret)]) -> Vec<(String, String)> {
    env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

fn gemini_launch(settings: &Settings) -> Launch {
    let mut launch = Launch { program: "gemini".to_owned(), ..Launch::default() };
    launch.args = vec!["--acp".to_owned(), "--skip-trust".to_owned()];
    launch.args.push(format!("--approval-mode={}", gemini::mode(settings.permissions)));
    launch.args.extend(settings.model().map(|model| format!("--model={model}")));
    gemini::configure(settings, false, &mut launch);
    launch
}

fn opencode_launch(settings: &Settings) -> Launch {
    let mut launch = Launch { program: "opencode".to_owned(), ..Launch::default() };
    launch.args = vec!["acp".to_owned()];
    opencode::configure(settings, true, &mut launch);
    launch
}

/// The id of the mode in which the agent changes nothing.
pub(super) const PLAN: &str = "plan";

/// Whether the session must be put into the mode [`PLAN`] once it is open. Gemini CLI gets the mode as a flag.
pub(super) fn wants_plan(settings: &Settings, program: &Program) -> bool {
    settings.permissions == PermissionMode::Plan && !matches!(program, Program::Gemini)
}
