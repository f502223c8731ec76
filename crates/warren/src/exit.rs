//! The exit codes of the process, and the error that it prints last.

use std::{fmt, io, process::ExitCode};

use base::plain;
use client::ClientError;
use daemon::{offline::KeyError, signals::Stop};
use serde_json::json;

/// The command failed.
const FAILED: u8 = 1;
/// The command line or a setting is wrong. Clap ends with the same code.
const USAGE: u8 = 2;
/// The server could not be reached.
const UNREACHABLE: u8 = 3;
/// The server knows nothing of that name.
const NOT_FOUND: u8 = 4;

/// The codes, for the command reference.
#[cfg(test)]
pub(crate) const CODES: [(u8, &str); 5] = [
    (0, "done; also when the reader of the output has left"),
    (FAILED, "failed"),
    (USAGE, "wrong usage: the command line, a setting, or a request that the server calls invalid"),
    (UNREACHABLE, "the server could not be reached"),
    (NOT_FOUND, "not found"),
];

/// A mistake in what was typed or configured. It shows the text of the error inside.
#[derive(Debug)]
struct Usage(anyhow::Error);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Usage {}

/// A command that ran elsewhere has ended: its exit code becomes this process's. No message is left to print.
#[derive(Debug)]
struct Ended(u8);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it ended with exit code {}", self.0)
    }
}

impl std::error::Error for Ended {}

/// Ends with the exit code of a command that ran elsewhere; a code that is not known is a failure.
///
/// # Errors
/// When the code is not 0.
pub(crate) fn as_ended(code: Option<i32>) -> anyhow::Result<()> {
    match code.map_or(Ok(FAILED), u8::try_from).unwrap_or(FAILED) {
        0 => Ok(()),
        code => Err(Ended(code).into()),
    }
}

/// Fails without an error message if a second signal cut the work short.
///
/// # Errors
/// In that case.
pub(crate) fn unless_forced(stop: &Stop) -> anyhow::Result<()> {
    if stop.is_forced() { as_ended(None) } else { Ok(()) }
}

/// Marks an error as one of usage.
pub(crate) fn usage(error: anyhow::Error) -> anyhow::Error {
    Usage(error).into()
}

/// Prints the error, if there is one, as JSON if that is asked for, and gives the code of its kind.
pub(crate) fn code(result: anyhow::Result<()>, json: bool) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if lost_its_reader(&error) {
        return ExitCode::SUCCESS;
    }
    if let Some(Ended(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    let (code, words) = (number(&error), shown(&error));
    last_words(&if json { as_json(&words, code) } else { format!("error: {words}") });
    ExitCode::from(code)
}

/// Prints help, the version, or what is wrong with the command line, and gives the code.
pub(crate) fn misread(error: &clap::Error, json: bool) -> ExitCode {
    if json && error.use_stderr() {
        let words = error.to_string();
        let words = words.trim().strip_prefix("error: ").unwrap_or(&words);
        // What follows is the usage, for people.
        last_words(&as_json(words.split("\n\n").next().unwrap_or_default(), USAGE));
    } else {
        // A closed output is no failure.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
}

#[expect(clippy::print_stderr, reason = "the last word of the process")]
fn last_words(words: &str) {
    eprintln!("{words}");
}

/// An error for programs: one object on one line.
fn as_json(words: &str, exit: u8) -> String {
    let code = match exit {
        USAGE => "usage",
        UNREACHABLE => "unreachable",
        NOT_FOUND => "not_found",
        _ => "failed",
    };
    let error = json!({"error": {"message": words, "code": code, "exit": exit}});
    plain::escaped(&error.to_string()).into_owned()
}

/// The text of an error, made safe for a terminal, because it may quote a stranger. If an error has a
/// context, its text is the whole chain, outermost first.
fn shown(error: &anyhow::Error) -> String {
    plain::lines(&format!("{error:#}"))
}

/// Whether the only fault is that the reader of standard output has left, as `head` does once it has
/// its lines. A connection that breaks is an error of another type.
fn lost_its_reader(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn number(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        return USAGE;
    }
    match (error.downcast_ref::<ClientError>(), error.downcast_ref::<KeyError>()) {
        (Some(ClientError::Refused { status: 400, .. }), _) | (_, Some(KeyError::Invalid(_))) => {
            USAGE
        }
        (Some(error), _) if error.is_unreachable() => UNREACHABLE,
        (Some(ClientError::NotFound { .. }), _) | (_, Some(KeyError::NotFound(_))) => NOT_FOUND,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_error_shows_its_text_alone() {
        let error = usage(anyhow::anyhow!("7 is no port").context("--listen"));
        assert_eq!(format!("{error:#}"), "--listen: 7 is no port");
        assert_eq!(number(&error.context("starting")), 2);
    }

    #[test]
    fn a_command_that_ran_elsewhere_has_its_own_code_and_an_unknown_one_is_a_failure() {
        let code = |code| as_ended(code).map_err(|error| error.downcast::<Ended>().unwrap().0);
        assert_eq!([Some(0), Some(7), Some(143)].map(code), [Ok(()), Err(7), Err(143)]);
        assert_eq!([None, Some(-1), Some(256)].map(code), [Err(FAILED); 3]);
    }

    #[test]
    fn terminal_controls_are_replaced() {
        let error = anyhow::anyhow!("no\u{1b}[2J\u{202e}").context("\u{2066}asking");
        assert_eq!(shown(&error), "\u{fffd}asking: no\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn for_programs_an_error_is_one_object_on_a_line() {
        let error = anyhow::anyhow!("no \"such\"\u{1b}\nthing").context("asking");
        let line = as_json(&shown(&error), 4);
        assert!(!line.contains(['\n', '\u{1b}']), "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        let message = "asking: no \"such\"\u{fffd}\nthing";
        let error = json!({"message": message, "code": "not_found", "exit": 4});
        assert_eq!(read, json!({ "error": error }));
    }

    #[test]
    fn a_reader_that_leaves_is_no_failure() {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(lost_its_reader(&anyhow::Error::from(gone()).context("writing")));
        let unreachable =
            ClientError::Unreachable { url: String::new(), reason: gone().to_string() };
        assert!(!lost_its_reader(&unreachable.into()));
        assert!(!lost_its_reader(&io::Error::other("full").into()));
    }

    #[test]
    fn each_kind_of_failure_has_its_code() {
        let words = String::new;
        let refused = |status| ClientError::Refused { status, words: words() };
        let unreachable = ClientError::Unreachable { url: words(), reason: words() };
        let not_found = ClientError::NotFound { words: words() };
        let told = |error: ClientError| number(&anyhow::Error::from(error).context("asking"));
        assert_eq!([refused(400), refused(401), unreachable, not_found].map(told), [2, 1, 3, 4]);
        assert_eq!(number(&KeyError::NotFound("k".into()).into()), 4);
        assert_eq!(number(&KeyError::Invalid(words()).into()), 2);
        assert_eq!(number(&usage(anyhow::anyhow!("no"))), 2);
        assert_eq!(number(&anyhow::anyhow!("no")), 1);
    }
}
