//! The description of a new session.

use protocol::workspace::{ProjectId, TeamId};

/// A session to be made. It has been checked that the client may request all of this.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) what: What,
    pub(crate) name: Option<String>,
    pub(crate) working_dir: String,
    pub(crate) project_id: Option<ProjectId>,
    /// Overrides the project's user.
    pub(crate) run_as_user: Option<String>,
    pub(crate) hidden: bool,
    pub(crate) tags: Vec<String>,
    pub(crate) team: Option<(TeamId, /* leader */ bool)>,
    pub(crate) size: Option<(u16, u16)>,
}

/// The engine of a new session.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A terminal running any command (`open_terminal`).
    Shell { command: String, args: Option<Vec<String>> },
    /// An agent's own interactive interface in a terminal (mode `pty`). With the tag `dev-server`,
    /// a terminal running the command line in `extra_args`.
    Interactive { provider: String, model: Option<String>, extra_args: Vec<String> },
    /// An agent driven turn by turn (mode `sdk`).
    Agent { provider: String, model: Option<String>, extra_args: Vec<String> },
    /// A process that runs already (mode `adopted`).
    Adopted { pid: u32 },
}
