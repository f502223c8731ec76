//! Questions at a terminal.

use std::io::{IsTerminal, Write, stderr, stdin};

use anyhow::bail;
use base::plain;

/// The most times that a question is asked.
const TRIES: usize = 3;

/// Whether a person is at the terminal.
pub(crate) fn is_attended() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks for a choice. An empty answer means the first; there must be at least one choice.
pub(crate) fn choose(question: &str, choices: &[String]) -> anyhow::Result<usize> {
    let mut text = format!("{question}\n");
    for (at, choice) in choices.iter().enumerate() {
        text.push_str(&format!("  {:>2}  {choice}\n", at + 1));
    }
    for _ in 0..TRIES {
        let answer = ask(&format!("{text}Number [1]: "))?;
        if let Some(chosen) = chosen(&answer, choices.len()) {
            return Ok(chosen);
        }
        text = format!("{:?} is none of 1 to {}.\n", answer.trim(), choices.len());
    }
    bail!("nothing was chosen")
}

/// Asks for a yes. Anything else counts as no.
pub(crate) fn confirm(question: &str) -> anyhow::Result<bool> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn chosen(answer: &str, of: usize) -> Option<usize> {
    match answer.trim() {
        "" => Some(0),
        number => number.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < of),
    }
}

fn ask(text: &str) -> anyhow::Result<String> {
    let mut out = stderr().lock();
    write!(out, "{}", plain::lines(text))?;
    out.flush()?;
    let mut answer = String::new();
    if stdin().read_line(&mut answer)? == 0 {
        bail!("nothing was chosen");
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_chooses_and_an_empty_answer_means_the_first() {
        assert_eq!(["", " 2\n", "3"].map(|answer| chosen(answer, 3)), [Some(0), Some(1), Some(2)]);
        assert_eq!(["0", "4", "x", "-1"].map(|answer| chosen(answer, 3)), [None; 4]);
    }
}
