//! Failures of a server, in words that say what to do.

use std::{io, path::MAIN_SEPARATOR, time::Duration};

use process::{Exit, ProcessError, Signal};

use crate::model::EngineModel;

/// The most lines of a log in an error, and the most characters.
const MOST_LINES: usize = 6;
const MOST_CHARACTERS: usize = 700;

/// Words in a log that mean that memory ran out.
const NO_MEMORY: [&str; 6] = [
    "out of memory",
    "outofmemory",
    "failed to allocate",
    "cannot allocate memory",
    "bad_alloc",
    "unable to allocate",
];

/// Advice for when memory has run out.
const SMALLER: &str = "memory ran out: choose a smaller quantisation or a shorter context, or allow models less \
     memory so that fewer are loaded at once";

/// Why a server did not start, or why it has ended.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was told to end.
    Stopped,
    /// The model's file cannot be read.
    File(io::Error),
    /// The command is empty.
    NoCommand,
    /// The program cannot be started.
    Process(ProcessError),
    /// No port could be found for it.
    Address(String),
    /// Another program listens on its port.
    PortTaken { port: u16 },
    /// It has ended by itself.
    Ended { exit: Exit, what: &'static str },
    /// It still ran, but no longer answered.
    Silent,
    /// It did not answer in time.
    Late { after: Duration, listens: bool },
}

impl Failure {
    /// The failure in words, with the last lines of the server's log where they tell more. The folders of the
    /// model are left out: clients read this.
    pub(super) fn words(&self, model: &EngineModel, log: &[String]) -> String {
        let program = &model.program.name;
        let words = match self {
            Self::Stopped => "its server was stopped".to_owned(),
            Self::File(error) => format!("its file cannot be read: {error}"),
            Self::NoCommand => "the command of its model engine is empty".to_owned(),
            Self::Process(ProcessError::NotFound { .. }) => format!(
                "the program {program} is not found on its machine: install it, or set its path as the \
                 command of the model engine"
            ),
            Self::Process(error) => format!("{program} cannot be started: {error}"),
            Self::Address(error) => format!("there is no port for {program}: {error}"),
            Self::PortTaken { .. } => {
                format!("{program} found its port taken again and again: ask once more")
            }
            Self::Ended { exit, what } => {
                format!("{program} {} {what}{}", ended(*exit), last(log, memory(*exit, log)))
            }
            Self::Silent => {
                format!("{program} did not answer any more and was ended{}", last(log, None))
            }
            Self::Late { after, listens } => {
                let did = if *listens {
                    "listens, but its model was not ready"
                } else {
                    "never listened on its port"
                };
                let after = after.as_secs().max(1);
                let hint = if *listens { None } else { Some("does its command use {port}?") };
                format!("{program} {did} within {after} s{}", last(log, hint))
            }
        };
        without_folders(&words, model)
    }
}

fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("ended with code {code}"),
        Exit::Signal(signal) if signal == Signal::Kill.number() => {
            "was killed (SIGKILL)".to_owned()
        }
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::Lost => "ended with the supervisor of processes".to_owned(),
    }
}

/// Advice, if the server may have ended because memory ran out.
fn memory(exit: Exit, log: &[String]) -> Option<&'static str> {
    let told = log.iter().rev().take(MOST_LINES * 3).any(|line| {
        let line = line.to_ascii_lowercase();
        NO_MEMORY.iter().any(|words| line.contains(words))
    });
    match exit {
        _ if told => Some(SMALLER),
        Exit::Signal(signal) if signal == Signal::Kill.number() => Some(
            "somebody has killed it, or the system did because memory ran out: then choose a smaller \
             quantisation or a shorter context",
        ),
        _ => None,
    }
}

/// The advice, and the last lines of the log.
fn last(log: &[String], hint: Option<&str>) -> String {
    let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    let lines = log[log.len().saturating_sub(MOST_LINES)..].join(" | ");
    let skipped = lines.chars().count().saturating_sub(MOST_CHARACTERS);
    let lines: String = lines.chars().skip(skipped).collect();
    match lines.is_empty() {
        true => format!("{hint}; it wrote nothing"),
        false => format!("{hint}; its last words: {lines}"),
    }
}

fn without_folders(words: &str, model: &EngineModel) -> String {
    let mut shown = words.to_owned();
    for folder in [Some(&model.file), model.mmproj.as_ref()].into_iter().flatten() {
        if let Some(folder) = folder.parent().and_then(|it| it.to_str()).filter(|it| it.len() > 1) {
            shown = shown.replace(&format!("{folder}{MAIN_SEPARATOR}"), "");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::model;

    fn words(failure: &Failure, log: &[&str]) -> String {
        let log: Vec<String> = log.iter().map(|&line| line.to_owned()).collect();
        failure.words(&model("m"), &log)
    }

    #[test]
    fn an_early_end_is_told_with_the_last_lines_and_without_folders() {
        let failure = Failure::Ended { exit: Exit::Code(1), what: "while it loaded the model" };
        let told =
            words(&failure, &["a", "b", "c", "d", "e", "f", "invalid magic in /models/m.gguf"]);
        let all = "llama-server ended with code 1 while it loaded the model; its last words: b | c | d | e | f | \
                   invalid magic in m.gguf";
        assert_eq!(told, all);
        assert!(words(&failure, &[]).ends_with("it wrote nothing"));
        let long = words(&failure, &[&"x".repeat(5000)]);
        assert!(long.len() < 900, "{}", long.len());
    }

    #[test]
    fn memory_that_ran_out_is_told_with_what_to_do() {
        let failed = Failure::Ended { exit: Exit::Code(1), what: "" };
        let told = words(&failed, &["cudaMalloc failed: out of memory", "exiting"]);
        assert!(told.contains("smaller quantisation"), "{told}");
        let killed = Failure::Ended { exit: Exit::Signal(9), what: "while it ran" };
        assert!(words(&killed, &[]).contains("memory ran out"));
        assert!(!words(&failed, &["all is well"]).contains("memory"));
    }

    #[test]
    fn each_failure_says_what_to_do() {
        let missing = ProcessError::NotFound { program: "llama-server".into() };
        let late = |listens| Failure::Late { after: Duration::from_secs(62), listens };
        let cases = [
            (Failure::Process(missing), "install it"),
            (late(false), "never listened on its port within 62 s (does its command use {port}?)"),
            (late(true), "its model was not ready within 62 s"),
            (Failure::PortTaken { port: 1 }, "ask once more"),
            (Failure::NoCommand, "command"),
        ];
        for (failure, part) in cases {
            let told = words(&failure, &[]);
            assert!(told.contains(part), "{told}");
        }
    }
}
