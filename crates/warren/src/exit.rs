//! What the process ends with: 0 done, 1 failed, 2 wrong usage.

use std::{fmt, process::ExitCode};

/// An error that the one who typed the command can mend.
#[derive(Debug)]
struct Usage;

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings are not right")
    }
}

impl std::error::Error for Usage {}

/// Marks an error as one of usage.
pub(crate) fn usage(error: anyhow::Error) -> anyhow::Error {
    error.context(Usage)
}

/// Tells an error, and the code that says what kind it was.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let is_usage = error.is::<Usage>();
    // Wrapped by a context, an error's text is its whole chain, from the outermost in.
    #[expect(clippy::print_stderr, reason = "the last word of the process")]
    {
        eprintln!("error: {error:#}");
    }
    if is_usage { ExitCode::from(2) } else { ExitCode::FAILURE }
}
