//! A server or a worker that is asked to end: its words, and the question at Ctrl-C whether terminals and agents outlive
//! the server.

use std::{
    io::{IsTerminal as _, Read as _},
    time::Duration,
};

use client::admin::stop::StopProgress;
use daemon::{RunningSessions, SessionsFate};
use tokio::{sync::oneshot, time::timeout};

use super::{
    note, say,
    words::{count, span},
};
use crate::system::QuietTerminal;

/// Says on standard error what a server waits for, and which sessions end with it.
pub(crate) fn server_stops(pending: &StopProgress) {
    note(&stopping(pending.answers));
    if let Some(words) = sessions(pending) {
        note(&words);
    }
}

/// Says on standard error what a worker waits for.
pub(crate) fn worker_stops(answers: u64) {
    note(&stopping(answers));
}

fn stopping(answers: u64) -> String {
    match answers {
        0 => "stopping".to_owned(),
        some => {
            let it = if some == 1 { "it" } else { "them" };
            format!("stopping: {}, a second Ctrl-C ends {it}", running(some))
        }
    }
}

/// The number of running answers in words.
pub(crate) fn running(answers: u64) -> String {
    let verb = if answers == 1 { "is" } else { "are" };
    format!("{} {verb} still running", count(answers, "answer"))
}

/// The fate of the sessions of a server that ends.
pub(crate) fn sessions(pending: &StopProgress) -> Option<String> {
    let StopProgress { terminals, agents, keep_sessions_secs, .. } = *pending;
    let (of_terminals, of_agents) = (count(terminals, "terminal"), count(agents, "agent"));
    let all = match (terminals, agents) {
        (0, 0) => return None,
        (0, _) => of_agents,
        (_, 0) => of_terminals,
        _ => format!("{of_terminals} and {of_agents}"),
    };
    let verb = if terminals + agents == 1 { ["goes", "ends"] } else { ["go", "end"] };
    Some(match keep_sessions_secs {
        0 => format!("{all} {} with the server{KEPT}", verb[1]),
        secs => {
            format!("{all} {} on for {}, for a server that is started again", verb[0], span(secs))
        }
    })
}

/// The end of a sentence about sessions that end: how they could be kept.
const KEPT: &str = "; `warren stop --keep-sessions` lets them go on for the next one";

/// How long the question waits. Without an answer, sessions are kept.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks in the terminal whether sessions outlive the server, if there is a terminal and sessions run, and carries out the
/// decision.
pub(super) async fn ask_about_sessions(sessions: &RunningSessions) {
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
    // If the question cannot be printed, nobody answers it, and sessions are kept.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_answers_is_said_and_what_a_second_signal_does() {
        assert_eq!(stopping(0), "stopping");
        let one = "stopping: 1 answer is still running, a second Ctrl-C ends it";
        assert_eq!(stopping(1), one);
        let two = "stopping: 2 answers are still running, a second Ctrl-C ends them";
        assert_eq!(stopping(2), two);
    }

    #[test]
    fn sessions_that_live_in_the_server_are_named_with_what_becomes_of_them() {
        let words = |terminals, agents, keep_sessions_secs| {
            let some = StopProgress { terminals, agents, ..StopProgress::default() };
            sessions(&StopProgress { keep_sessions_secs, ..some })
        };
        assert_eq!(words(0, 0, 60), None);
        let both = words(1, 2, 0).unwrap();
        assert!(both.starts_with("1 terminal and 2 agents end with the server"), "{both}");
        assert!(both.contains("--keep-sessions"), "{both}");
        let one = words(0, 1, 60).unwrap();
        assert_eq!(one, "1 agent goes on for 1m 0s, for a server that is started again");
    }
}
