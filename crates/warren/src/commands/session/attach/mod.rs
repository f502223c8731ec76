//! `warren session attach`: a session used from here.
//!
//! - `terminal`: makes this terminal raw, and gives it back; `keys`: the typed keys, and the one that detaches
//! - `screen`: a session's output as bytes for this terminal; `rest`: whether other bytes may come between
//! - `modes`: resets the modes that a session leaves behind in this terminal
//! - `using`: uses a terminal's session until it ends, or its user detaches
//! - `chat`, `talking`: the same for an agent's session

mod chat;
mod keys;
mod modes;
mod rest;
mod screen;
mod talking;
mod terminal;
mod using;

use anyhow::anyhow;
use clap::Args;
use client::{
    Workspace,
    workspace::{Addresses, Ending, Follower, FollowerSettings},
};
use daemon::ConfigFile;
use protocol::workspace::{SessionInfo, SessionMode, SessionStatus};

pub(crate) use keys::DetachKey;
pub(crate) use terminal::{has_terminal, size};

use crate::{
    commands::workspace::{WorkspaceServer, named, short, terms::called},
    exit::usage,
};

/// Use a session: a terminal as if it were here, an agent as a chat
#[derive(Args)]
#[command(
    after_help = "Ctrl-] detaches: the session goes on, and attaching again shows it as it is then. When the \
    connection is lost, another is tried for, and nothing is shown twice; what was typed meanwhile is \
    sent then. Of several servers of one cluster, given by --server, the next one is used.\n\n\
    In a chat with an agent first its last turns are shown. Then each line is a prompt, y and n answer \
    its questions, Ctrl-C ends its turn, and Ctrl-D detaches.\n\n\
    Examples:\n  \
    warren session attach build\n  \
    warren session attach 550e --detach-key ctrl-b\n  \
    warren session attach build --server https://one:9178 --server https://two:9178"
)]
pub(super) struct Attach {
    /// The session: its id, the beginning of it, or its name
    session: String,
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    server: WorkspaceServer,
}

/// What is not for the session
#[derive(Args)]
pub(crate) struct Keys {
    /// The key that detaches: ctrl- and a letter or one of ] \ ^ _ @, or none
    #[arg(long, value_name = "KEY", default_value = "ctrl-]")]
    #[arg(hide_short_help = true)]
    detach_key: DetachKey,
}

impl Attach {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let addresses = self.server.addresses(file)?;
        let mut workspace = Workspace::connect_to_any(&addresses).await?;
        let sessions = workspace.sessions(true).await?;
        let session = named(&mut workspace, &sessions, &self.session).await?;
        if session.status == SessionStatus::Exited {
            let id = short(session.id);
            let words = format!(
                "{} has ended; warren session history {id} shows what it wrote",
                called(session)
            );
            return Err(anyhow!(words));
        }
        use_session(workspace, &addresses, session, &self.keys, false).await.map(drop)
    }
}

/// Uses a session until it ends, or until its user detaches. A new session is shown from its first
/// output on, even if it has already ended. Returns how a terminal ended; `None` if its user left it.
pub(crate) async fn use_session(
    workspace: Workspace,
    addresses: &Addresses,
    session: &SessionInfo,
    keys: &Keys,
    from_start: bool,
) -> anyhow::Result<Option<Ending>> {
    let is_agent = session.mode != SessionMode::Pty;
    if !is_agent && !has_terminal() {
        return Err(usage(anyhow!(
            "a terminal is needed for input and output; `warren session send` and `warren session \
             history` do without"
        )));
    }
    if is_agent {
        return talking::talk(workspace, addresses, session).await.map(|()| None);
    }
    let settings =
        FollowerSettings { size: size().ok(), from_start, ..FollowerSettings::default() };
    let follower = Follower::begin(workspace, addresses, session.id, settings)?;
    using::use_terminal(follower, session, keys.detach_key).await
}
