//! What the process ends with: 0 done, 1 failed, 2 wrong usage, 3 could not reach the server, 4 not
//! found.

use std::{fmt, io, process::ExitCode};

use base::plain;
use client::ClientError;
use daemon::stopped::KeyError;

/// An error that the one who typed the command can mend. It says what the error itself says.
#[derive(Debug)]
struct Usage(anyhow::Error);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Usage {}

/// Marks an error as one of usage.
pub(crate) fn usage(error: anyhow::Error) -> anyhow::Error {
    Usage(error).into()
}

/// Tells an error, and the code that says what kind it was.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if has_nobody_to_read(&error) {
        return ExitCode::SUCCESS;
    }
    let code = number(&error);
    #[expect(clippy::print_stderr, reason = "the last word of the process")]
    {
        eprintln!("error: {}", shown(&error));
    }
    ExitCode::from(code)
}

/// The text of an error, made safe for a terminal, because it may quote a stranger. If an error has a
/// context, its text is the whole chain, outermost first.
fn shown(error: &anyhow::Error) -> String {
    plain::lines(&format!("{error:#}"))
}

/// Whether what is wrong is only that nobody reads the output any more, say `head`, which has seen enough.
/// Connections that break are errors of other types.
fn has_nobody_to_read(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn number(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        return 2;
    }
    match (error.downcast_ref::<ClientError>(), error.downcast_ref::<KeyError>()) {
        (Some(ClientError::Refused { status: 400, .. }), _) | (_, Some(KeyError::Invalid(_))) => 2,
        (Some(error), _) if error.is_unreachable() => 3,
        (Some(ClientError::NotFound { .. }), _) | (_, Some(KeyError::NotFound(_))) => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_usage_says_what_it_says_and_no_more() {
        let error = usage(anyhow::anyhow!("7 is no port").context("--listen"));
        assert_eq!(format!("{error:#}"), "--listen: 7 is no port");
        assert_eq!(number(&error.context("starting")), 2);
    }

    #[test]
    fn what_a_stranger_said_is_shown_without_what_steers_a_terminal() {
        let error = anyhow::anyhow!("no\u{1b}[2J\u{202e}").context("\u{2066}asking");
        assert_eq!(shown(&error), "\u{fffd}asking: no\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn that_the_output_is_read_no_further_is_no_failure() {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(has_nobody_to_read(&anyhow::Error::from(gone()).context("writing")));
        let unreachable =
            ClientError::Unreachable { url: String::new(), reason: gone().to_string() };
        assert!(!has_nobody_to_read(&unreachable.into()));
        assert!(!has_nobody_to_read(&io::Error::other("full").into()));
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
