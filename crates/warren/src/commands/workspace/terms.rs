//! Words for the states and times of sessions, projects and teams.

use client::workspace::Ending;
use jiff::Timestamp;
use protocol::workspace::{SessionInfo, SessionKind, SessionMode, SessionStatus};

use crate::commands::{table::plain, words::span};

/// The time since then, in words.
pub(crate) fn ago(at: Timestamp) -> String {
    let secs = Timestamp::now().as_second().saturating_sub(at.as_second());
    format!("{} ago", span(u64::try_from(secs).unwrap_or(0)))
}

/// The state of a session's process.
pub(crate) const fn status(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Running => "running",
        SessionStatus::Idle => "idle",
        SessionStatus::Detached => "detached",
        SessionStatus::Exited => "exited",
    }
}

/// The end of a session that was used, in words.
pub(crate) fn ended(name: &str, ending: Ending) -> String {
    match ending {
        Ending::Exited { code: Some(code) } => format!("{name} has ended with exit code {code}"),
        Ending::Exited { code: None } => format!("{name} has ended"),
        Ending::Killed => format!("{name} was killed"),
    }
}

/// A session's command, or its provider and mode.
pub(crate) fn runs(session: &SessionInfo) -> String {
    match (&session.kind, session.mode) {
        (SessionKind::Shell { command, args }, _) => {
            let args = args.iter().flatten().map(String::as_str);
            let words: Vec<&str> = std::iter::once(command.as_str()).chain(args).collect();
            plain(&words.join(" "))
        }
        (_, SessionMode::Sdk) => format!("{} agent", plain(&session.provider)),
        (_, SessionMode::Pty) => format!("{} in a terminal", plain(&session.provider)),
        (_, SessionMode::Adopted) => {
            let pid = session.adopted_pid.map_or_else(String::new, |pid| format!(" {pid}"));
            format!("{} process{pid}", plain(&session.provider))
        }
    }
}

/// A session's name, or the beginning of its id.
pub(crate) fn called(session: &SessionInfo) -> String {
    session.name.as_deref().map_or_else(|| super::short(session.id), plain)
}
