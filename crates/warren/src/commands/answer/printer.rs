//! An answer on a terminal, as plain text or as JSON.

use std::{
    io::{IsTerminal, Write, stderr, stdout},
    time::{Duration, Instant},
};

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tui::markdown::{Painter, ansi};

use super::Answer;
use crate::commands::{has_colour, say, say_json_line, terminal_size};

/// The longest answer that is kept, in bytes.
const LONGEST: usize = 16 << 20;

/// The least time between two paintings.
const FRAME: Duration = Duration::from_millis(30);

/// Painting takes at most one part in this many of the time.
const SHARE: u32 = 10;

/// How an answer is shown
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct Style {
    /// Print the answer as the model wrote it. Otherwise its Markdown is rendered on a terminal
    #[arg(long, hide_short_help = true)]
    pub(crate) raw: bool,
    /// The thoughts of a model before its answer. They are never part of the output of a pipe: there `show`
    /// writes them to standard error [default: show on a terminal, hide elsewhere]
    #[arg(long, value_enum, value_name = "WHETHER", hide_short_help = true)]
    pub(crate) thoughts: Option<Thoughts>,
}

/// Whether thoughts are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Thoughts {
    /// Show them dimmed
    Show,
    /// Hide them
    Hide,
}

/// Prints an answer as it comes.
pub(crate) struct Printer {
    form: Form,
    shows_thoughts: bool,
    position: Position,
    /// The answer so far, if it is kept.
    whole: Option<String>,
}

enum Form {
    /// Each piece as a line of JSON.
    Lines,
    /// Nothing until the end.
    Silent,
    /// As it comes. Control characters must not reach a terminal.
    Plain { is_terminal: bool },
    /// Rendered on a terminal: the painter, and when it may paint next.
    Painted { painter: Box<Painter>, next: Instant },
}

/// The part of the answer that the last written line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Nothing,
    Thought,
    Text,
    /// Text whose last line is not ended.
    OpenText,
}

impl Printer {
    pub(crate) fn new(style: Style) -> Self {
        let is_terminal = stdout().is_terminal();
        let form = if is_terminal && !style.raw && !is_dumb() {
            let painter = Box::new(Painter::new(has_colour(), terminal_size()));
            Form::Painted { painter, next: Instant::now() }
        } else {
            Form::Plain { is_terminal }
        };
        let shows_thoughts = match style.thoughts {
            Some(thoughts) => thoughts == Thoughts::Show,
            None => is_terminal,
        };
        Self::of(form, shows_thoughts)
    }

    /// Prints each piece as a line of JSON.
    pub(crate) fn lines() -> Self {
        Self::of(Form::Lines, false)
    }

    /// Prints nothing, and keeps the answer.
    pub(crate) fn silent() -> Self {
        Self::of(Form::Silent, false).keeping()
    }

    /// Keeps the answer, too.
    pub(crate) fn keeping(mut self) -> Self {
        self.whole = Some(String::new());
        self
    }

    fn of(form: Form, shows_thoughts: bool) -> Self {
        Self { form, shows_thoughts, position: Position::Nothing, whole: None }
    }

    /// Takes the answer so far out of the printer; empty if it was not kept.
    pub(crate) fn take_text(&mut self) -> String {
        self.whole.take().unwrap_or_default()
    }

    /// The time of the next painting, even if nothing more arrives.
    pub(super) fn due(&self) -> Option<Instant> {
        match &self.form {
            Form::Painted { painter, next } if painter.is_dirty() => Some(*next),
            _ => None,
        }
    }

    /// Paints what has arrived.
    pub(super) fn paint(&mut self) -> anyhow::Result<()> {
        if let Form::Painted { painter, next } = &mut self.form {
            let begins = Instant::now();
            write(&painter.paint(terminal_size()))?;
            *next = begins + FRAME.max(begins.elapsed() * SHARE);
        }
        Ok(())
    }

    pub(super) fn text(&mut self, participant: &str, text: &str) -> anyhow::Result<()> {
        self.keep(text)?;
        if self.position == Position::Thought {
            self.end_thoughts()?;
        }
        match &mut self.form {
            Form::Lines => {
                let line = json!({"type": "token", "participantId": participant, "token": text});
                return Ok(say_json_line(&line)?);
            }
            Form::Silent => {}
            Form::Plain { is_terminal: true } => write(&base::plain::lines(text))?,
            Form::Plain { is_terminal: false } => write(text)?,
            Form::Painted { painter, next } => {
                painter.push(text);
                if *next <= Instant::now() {
                    self.paint()?;
                }
            }
        }
        self.position = if text.ends_with('\n') { Position::Text } else { Position::OpenText };
        Ok(())
    }

    /// Prints a thought of the model: dimmed on a terminal, and never part of the output of a pipe.
    pub(super) fn thought(&mut self, text: &str) -> anyhow::Result<()> {
        // Some models go on thinking after the first words of their answer. Such thoughts do not interrupt
        // the answer.
        if !self.shows_thoughts || matches!(self.position, Position::Text | Position::OpenText) {
            return Ok(());
        }
        match &self.form {
            Form::Lines | Form::Silent => return Ok(()),
            Form::Plain { is_terminal: false } => {
                let mut err = stderr().lock();
                // A closed standard error is no failure.
                let _ = err.write_all(base::plain::lines(text).as_bytes());
            }
            Form::Plain { .. } | Form::Painted { .. } => {
                write(&ansi::dim(&base::plain::lines(text)))?;
            }
        }
        self.position = Position::Thought;
        Ok(())
    }

    /// Prints an answer that is complete.
    pub(crate) fn whole(mut self, text: &str) -> anyhow::Result<()> {
        self.text("", text)?;
        self.finish()
    }

    /// Ends the output with a whole line.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        if self.position == Position::Thought {
            self.end_thoughts()?;
        }
        match &mut self.form {
            Form::Painted { painter, .. } => write(&painter.finish(terminal_size()))?,
            Form::Plain { .. } if self.position == Position::OpenText => say("")?,
            _ => {}
        }
        self.position = Position::Nothing;
        Ok(())
    }

    /// Prints the last line of an answer that is printed as lines of JSON.
    pub(super) fn complete(&self, answer: &Answer) -> anyhow::Result<()> {
        let (participant, metrics) = (&answer.participant, &answer.metrics);
        let line: Value =
            json!({"type": "complete", "participantId": participant, "metrics": metrics});
        Ok(say_json_line(&line)?)
    }

    fn end_thoughts(&mut self) -> anyhow::Result<()> {
        self.position = Position::Nothing;
        match self.form {
            Form::Plain { is_terminal: false } => {
                let _ = stderr().lock().write_all(b"\n");
                Ok(())
            }
            _ => write("\n\n"),
        }
    }

    fn keep(&mut self, text: &str) -> anyhow::Result<()> {
        let Some(whole) = &mut self.whole else { return Ok(()) };
        if whole.len() + text.len() > LONGEST {
            bail!("the answer is longer than {} MiB", LONGEST >> 20);
        }
        whole.push_str(text);
        Ok(())
    }
}

/// Whether the terminal knows no escape sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_kept_is_bounded() {
        let mut printer = Printer::silent();
        let piece = "x".repeat(1 << 20);
        for _ in 0..LONGEST >> 20 {
            printer.text("", &piece).unwrap();
        }
        assert!(printer.text("", "x").unwrap_err().to_string().contains("16 MiB"));
        assert_eq!(printer.take_text().len(), LONGEST);
    }
}
