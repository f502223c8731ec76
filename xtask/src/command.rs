//! Running other programs.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs a program with this terminal, and fails when it does.
pub(crate) fn run(mut command: Command) -> Result<()> {
    println!("+ {}", shown(&command));
    let status = command.status().with_context(|| format!("cannot start {}", shown(&command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(&command));
    }
    Ok(())
}

/// Runs a program and gives back what it wrote to its standard output.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", shown(&command)))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}:\n{told}", shown(&command), output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_an_error_that_names_it() {
        let error = run(Command::new("false")).unwrap_err().to_string();
        assert!(error.starts_with("false ended with"), "{error}");
        assert!(output(Command::new("false")).is_err());
    }

    #[test]
    fn output_is_what_was_written() {
        let mut echo = Command::new("echo");
        echo.arg("hello");
        assert_eq!(output(echo).unwrap(), "hello\n");
    }
}
