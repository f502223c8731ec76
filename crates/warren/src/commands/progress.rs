//! Shows the progress of a transfer: as a bar on a terminal, elsewhere as a line now and then; and that of a file, as a bar
//! on a terminal.

use std::{
    io::{IsTerminal, stderr},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::note;

/// The time between two lines if only the number of bytes changes.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A file below this size needs no bar, in bytes: it is there before the bar is read.
const SMALL: u64 = 1024 * 1024;

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
        Self::Bar(bar(0, TRANSFER))
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

/// A bar for a file, if standard error is a terminal and the file is not small.
pub(crate) fn file_bar(name: &str, total: u64) -> ProgressBar {
    if total < SMALL || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = bar(total, FILE);
    bar.set_message(base::plain::line(name));
    bar
}

/// The bar of a transfer.
const TRANSFER: &str = "[{bar:24}] {percent:>3} % {wide_msg}";

/// The bar of a file.
const FILE: &str = "[{bar:24}] {percent:>3} % {binary_bytes} of {binary_total_bytes}, \
    {binary_bytes_per_sec}, {eta} left {wide_msg}";

fn bar(total: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    // A test proves both templates valid; a bar without its style is a bar, too.
    match style(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn style(template: &str) -> Result<ProgressStyle, indicatif::style::TemplateError> {
    Ok(ProgressStyle::with_template(template)?.progress_chars("=> "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_have_their_style() {
        assert!(style(TRANSFER).is_ok() && style(FILE).is_ok());
        assert!(file_bar("a", 1).is_hidden());
    }
}
