//! The description of a new session.

use protocol::workspace::{ProjectId, TeamId};

/// A session to be made. It has been checked that the client may request all of this.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Its engine.
    pub engine: NewEngine,
    /// Its name.
    pub name: Option<String>,
    /// Its directory; empty: the project's.
    pub working_dir: String,
    /// Its project.
    pub project_id: Option<ProjectId>,
    /// Overrides the project's user.
    pub run_as_user: Option<String>,
    /// Whether only its viewers get its events, and lists leave it out.
    pub hidden: bool,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its team, and whether it leads it.
    pub team: Option<(TeamId, bool)>,
    /// The columns and rows of its terminal; `None`: the usual ones.
    pub size: Option<(u16, u16)>,
}

/// The engine of a new session.
#[derive(Debug, Clone)]
pub enum NewEngine {
    /// A terminal running any command (`open_terminal`).
    Shell {
        /// The program.
        command: String,
        /// Its arguments.
        args: Option<Vec<String>>,
    },
    /// An agent's own interactive interface in a terminal (mode `pty`). With the tag `dev-server`,
    /// a terminal running the command line in `extra_args`.
    Interactive {
        /// The agent's name.
        provider: String,
        /// The model; `None`: the one of the settings.
        model: Option<String>,
        /// Further arguments.
        extra_args: Vec<String>,
    },
    /// An agent driven turn by turn (mode `sdk`).
    Agent {
        /// The agent's name.
        provider: String,
        /// The model; `None`: the one of the settings.
        model: Option<String>,
        /// Further arguments.
        extra_args: Vec<String>,
    },
    /// A process that runs already (mode `adopted`).
    Adopted {
        /// Its process id.
        pid: u32,
    },
}
