//! What a server or a worker says when it is asked to end.

use client::admin::stop::StopProgress;

use super::{note, words::count};

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

/// How many answers are running.
pub(crate) fn running(answers: u64) -> String {
    let verb = if answers == 1 { "is" } else { "are" };
    format!("{} {verb} still running", count(answers, "answer"))
}

/// What becomes of the sessions of a server that ends.
pub(crate) fn sessions(pending: &StopProgress) -> Option<String> {
    let StopProgress { terminals, agents, .. } = *pending;
    let (of_terminals, of_agents) = (count(terminals, "terminal"), count(agents, "agent"));
    Some(match (terminals, agents) {
        (0, 0) => return None,
        (0, _) => format!("{of_agents} here: {AGENTS}"),
        (_, 0) => format!("{of_terminals} here: {TERMINALS}"),
        _ => format!("{of_terminals} and {of_agents} here: {TERMINALS};\n{AGENTS}"),
    })
}

/// What becomes of terminals, and how they are kept.
const TERMINALS: &str = "terminals end with the server.\n\
                         To keep them, run it as a service and let it run (see the book, deployment)";

/// What becomes of agents.
const AGENTS: &str = "agents go on with their conversations when the server starts again";

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
    fn sessions_that_live_in_the_server_are_named() {
        let told = |terminals, agents| {
            sessions(&StopProgress { terminals, agents, ..StopProgress::default() })
        };
        assert_eq!(told(0, 0), None);
        let both = told(1, 2).unwrap();
        assert!(both.starts_with("1 terminal and 2 agents here: terminals end"), "{both}");
        assert!(both.contains("as a service") && both.ends_with("starts again"), "{both}");
        assert!(
            !told(0, 1).unwrap().contains("terminal") && !told(3, 0).unwrap().contains("agent")
        );
    }
}
