//! The question at Ctrl-C: whether terminals and agents outlive the server.

use std::{
    io::{IsTerminal as _, Read as _},
    time::Duration,
};

use daemon::{RunningSessions, SessionsFate};
use tokio::{sync::oneshot, time::timeout};

use super::say;
use crate::system::QuietTerminal;

/// How long the question waits. Without an answer, sessions are kept.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks in the terminal, if there is one and sessions run. Returns the decision.
pub(super) async fn ask(sessions: &RunningSessions) {
    let (terminals, agents) = sessions.terminals_and_agents();
    let (live, span) = (terminals + agents, sessions.kept_for());
    if live == 0 || span.is_zero() || !std::io::stdin().is_terminal() {
        return;
    }
    let what = if live == 1 {
        "1 terminal or agent runs".to_owned()
    } else {
        format!("{live} terminals and agents run")
    };
    let question = format!(
        "\n{what}. Keep for {} s, for a server that is started again (k), or end (e)? [k]",
        span.as_secs()
    );
    // Without an output nobody reads the question, and its answer is the usual one.
    let _ = say(&question);
    let fate = timeout(PATIENCE, answer()).await.unwrap_or(SessionsFate::Keep);
    sessions.decide(fate);
    let _ = say(match fate {
        SessionsFate::Keep => "They are kept.",
        SessionsFate::End => "They are ended.",
    });
}

async fn answer() -> SessionsFate {
    // Each key counts at once; if that fails, the answer needs Enter.
    let _quiet = QuietTerminal::new();
    let (decide, decision) = oneshot::channel();
    // A thread of its own: a read of the terminal cannot be given up, and the process ends soon.
    std::thread::spawn(move || decide.send(read()));
    decision.await.unwrap_or(SessionsFate::Keep)
}

/// Reads keys until one is an answer.
fn read() -> SessionsFate {
    for byte in std::io::stdin().lock().bytes() {
        match byte {
            Ok(b'e' | b'E') => return SessionsFate::End,
            Ok(b'k' | b'K' | b'\n' | b'\r') | Err(_) => break,
            Ok(_) => {}
        }
    }
    SessionsFate::Keep
}
