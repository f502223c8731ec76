//! The same text through a terminal's state machine, and nothing else: what keeping a screen costs.

use std::time::{Duration, Instant};

use alacritty_terminal::{
    Term,
    event::VoidListener,
    grid::Dimensions,
    term::Config,
    vte::ansi::{Processor, Timeout},
};
use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::{
    flood::Outcome,
    terminal::{COLUMNS, ROWS},
};
use crate::{
    proc,
    programs::flood::{Kind, written},
};

const PIECE: usize = 64 << 10;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Engine {
    pub(crate) kind: Kind,
    pub(crate) megabytes: u64,
}

pub(super) fn run(plan: &Engine) -> Result<Outcome> {
    let own = plan.kind.page();
    let page = as_read(&own);
    let all = written(plan.kind, plan.megabytes);
    let config = Config { scrolling_history: 0, ..Config::default() };
    let mut term = Term::new(config, &Size, VoidListener);
    let mut processor = Processor::<Immediate>::new();
    let me = [std::process::id()];
    let (before, begun) = (proc::cpu(&me)?, Instant::now());
    for _ in 0..all / own.len() as u64 {
        for piece in page.chunks(PIECE) {
            processor.advance(&mut term, piece);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = proc::cpu(&me)?.saturating_sub(before);
    Ok(Outcome { written: all, seconds, cpu: Some(cpu.as_secs_f64()), ..Outcome::default() })
}

/// The text as a terminal passes it on.
fn as_read(page: &[u8]) -> Vec<u8> {
    let mut read = Vec::with_capacity(page.len() + page.len() / 64);
    for &byte in page {
        if byte == b'\n' {
            read.push(b'\r');
        }
        read.push(byte);
    }
    read
}

struct Size;

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        ROWS.into()
    }

    fn columns(&self) -> usize {
        COLUMNS.into()
    }
}

/// Synchronised updates are applied at once: there is no viewer to spare.
#[derive(Default)]
struct Immediate;

impl Timeout for Immediate {
    fn set_timeout(&mut self, _: Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_begins_lines_at_their_beginning() {
        assert_eq!(as_read(b"a\nb\n"), b"a\r\nb\r\n");
    }

    #[test]
    fn all_is_fed_once() {
        for kind in Kind::ALL {
            let outcome = run(&Engine { kind, megabytes: 1 }).unwrap();
            assert_eq!(outcome.written, kind.page().len() as u64);
            assert!(outcome.seconds > 0.0);
        }
    }
}
