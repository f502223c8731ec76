//! Shows a transfer: as a bar on a terminal, elsewhere as a line now and then.

use std::{
    io::{IsTerminal, stderr},
    time::{Duration, Instant},
};

use client::admin::mesh::MeshTransfer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::short;
use crate::commands::{
    note,
    table::plain,
    words::{bytes, count, span},
};

/// How often a line is written, where nothing but the number of bytes changes.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The display.
pub(super) enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// As lines: the state of the last one, and when it was written.
    Lines(Option<(String, Instant)>),
}

impl Progress {
    /// On standard error, which people look at.
    pub(super) fn new() -> Self {
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

    pub(super) fn show(&mut self, step: &MeshTransfer) {
        match self {
            Self::Bar(bar) => {
                bar.set_length(step.total.unwrap_or(0));
                bar.set_position(step.bytes);
                bar.set_message(line(step));
            }
            Self::Lines(told) => {
                let is_news = told
                    .as_ref()
                    .is_none_or(|(state, at)| *state != step.state || at.elapsed() >= LINE_EVERY);
                if is_news {
                    note(&format!("{}: {}", plain(&step.model), line(step)));
                    *told = Some((step.state.clone(), Instant::now()));
                }
            }
        }
    }

    /// Takes the bar off the terminal.
    pub(super) fn end(self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn style() -> Result<ProgressStyle, indicatif::style::TemplateError> {
    let style = ProgressStyle::with_template("[{bar:24}] {percent:>3} % {wide_msg}")?;
    Ok(style.progress_chars("=> "))
}

/// A step in one line: amount, speed, time left, source.
fn line(step: &MeshTransfer) -> String {
    let mut parts = vec![plain(&step.state)];
    match step.total {
        Some(total) => parts.push(format!("{} of {}", bytes(step.bytes), bytes(total))),
        None if step.bytes > 0 => parts.push(bytes(step.bytes)),
        None => {}
    }
    if step.state == "running" {
        parts.push(format!("{}/s", bytes(step.rate)));
        parts.extend(step.eta_secs.map(|secs| format!("{} left", span(secs))));
    }
    match &step.peers[..] {
        [] => {}
        [one] => parts.push(format!("from {}", plain(&short(one)))),
        several => parts.push(format!("from {}", count(several.len() as u64, "peer"))),
    }
    parts.extend(step.detail.as_deref().map(plain));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_its_style() {
        assert!(style().is_ok());
    }

    #[test]
    fn a_line_shows_amount_speed_time_left_and_source() {
        let mut step = MeshTransfer { state: "searching".to_owned(), ..MeshTransfer::default() };
        assert_eq!(line(&step), "searching");
        step = MeshTransfer {
            state: "running".to_owned(),
            bytes: 1 << 20,
            total: Some(4 << 20),
            rate: 1 << 20,
            eta_secs: Some(3),
            peers: vec!["ab".repeat(32)],
            ..step
        };
        let told = "running, 1.0 MiB of 4.0 MiB, 1.0 MiB/s, 3s left, from abababab";
        assert_eq!(line(&step), told);
        step.peers.push("cd".repeat(32));
        assert!(line(&step).ends_with("from 2 peers"));
    }
}
