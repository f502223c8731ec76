//! The words of a server or a worker when it is asked to end.

use client::admin::stop::StopProgress;

use super::{
    note,
    words::{count, span},
};

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

/// How sessions are kept.
const KEPT: &str = "; `warren stop --keep-sessions` lets them go on for the next one";

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
        let told = |terminals, agents, keep_sessions_secs| {
            let some = StopProgress { terminals, agents, ..StopProgress::default() };
            sessions(&StopProgress { keep_sessions_secs, ..some })
        };
        assert_eq!(told(0, 0, 60), None);
        let both = told(1, 2, 0).unwrap();
        assert!(both.starts_with("1 terminal and 2 agents end with the server"), "{both}");
        assert!(both.contains("--keep-sessions"), "{both}");
        let kept = told(0, 1, 60).unwrap();
        assert_eq!(kept, "1 agent goes on for 1m 0s, for a server that is started again");
    }
}
