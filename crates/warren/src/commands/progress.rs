//! Shows the progress of a transfer: as a bar on a terminal, elsewhere as a line now and then.

use std::{
    io::{IsTerminal, stderr},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::note;

/// The time between two lines if only the number of bytes changes.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The display.
pub(crate) enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// As lines: the state of the last one, and when it was written.
    Lines(Option<(String, Instant)>),
}

/// One step of a transfer.
pub(crate) struct Step<'a> {
    /// The name of the file that is transferred.
    pub(crate) name: &'a str,
    /// The state. A change of it is printed at once.
    pub(crate) state: &'a str,
    /// The bytes that have arrived.
    pub(crate) bytes: u64,
    /// The bytes in all, 0 while that is unknown.
    pub(crate) total: u64,
    /// The step in one line.
    pub(crate) line: String,
}

impl Progress {
    /// The display on standard error, where people look.
    pub(crate) fn new() -> Self {
        if !stderr().is_terminal() {
            return Self::Lines(None);
        }
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        // A test proves the template valid.
        Self::Bar(match style() {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }

    pub(crate) fn show(&mut self, step: Step<'_>) {
        match self {
            Self::Bar(bar) => {
                bar.set_length(step.total);
                bar.set_position(step.bytes);
                bar.set_message(step.line);
            }
            Self::Lines(last) => {
                let is_news = last
                    .as_ref()
                    .is_none_or(|(state, at)| state != step.state || at.elapsed() >= LINE_EVERY);
                if is_news {
                    note(&format!("{}: {}", step.name, step.line));
                    *last = Some((step.state.to_owned(), Instant::now()));
                }
            }
        }
    }

    /// Takes the bar off the terminal.
    pub(crate) fn end(self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn style() -> Result<ProgressStyle, indicatif::style::TemplateError> {
    let style = ProgressStyle::with_template("[{bar:24}] {percent:>3} % {wide_msg}")?;
    Ok(style.progress_chars("=> "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_its_style() {
        assert!(style().is_ok());
    }
}
