//! The parts of a new session.

use protocol::workspace::{ProjectId, TeamId};

/// A session to be made. The asker may have all that is in it: that has been checked.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) what: What,
    pub(crate) name: Option<String>,
    pub(crate) working_dir: String,
    pub(crate) project_id: Option<ProjectId>,
    /// Overrides the project's.
    pub(crate) run_as_user: Option<String>,
    pub(crate) hidden: bool,
    pub(crate) tags: Vec<String>,
    pub(crate) team: Option<(TeamId, /* leader */ bool)>,
    pub(crate) size: Option<(u16, u16)>,
}

/// Its engine.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A terminal running any command (`open_terminal`), or with the tag `dev-server` a command line.
    Shell { command: String, args: Option<Vec<String>> },
    /// An agent's own interactive interface in a terminal (mode `pty`).
    Interactive { provider: String, model: Option<String>, extra_args: Vec<String> },
    /// An agent driven turn by turn (mode `sdk`).
    Agent { provider: String, model: Option<String>, extra_args: Vec<String> },
    /// A process that runs already (mode `adopted`).
    Adopted { pid: u32 },
}
