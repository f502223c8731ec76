//! What a screen promises, tested on streams that programs write and on streams that nobody would.
//!
//! - `laws`: a snapshot repaints, and goes on; splits and skimming change nothing
//! - `engine`: what is passed on to the engine does there what it did before
//! - `painting`: single things in a snapshot; `bounds`: what is limited
//! - `halves`: wide characters of which a cell is taken, beside a plain `model` of a screen
//! - `state`: two screens compared; `streams`: generated input

mod bounds;
mod engine;
mod halves;
mod laws;
mod model;
mod painting;
mod state;
mod streams;

use super::{Screen, Size};
use state::ScreenState;

fn screen(cols: u16, rows: u16) -> Screen {
    Screen::new(Size::new(cols, rows))
}

fn fed(cols: u16, rows: u16, text: &str) -> Screen {
    let mut screen = screen(cols, rows);
    screen.feed(text.as_bytes());
    screen
}

/// Another screen, made from a snapshot of this one.
fn repainted(screen: &mut Screen) -> Screen {
    let snapshot = screen.snapshot();
    let mut other = Screen::new(screen.size());
    other.feed(snapshot.as_bytes());
    other.feed(screen.unread());
    other
}

#[track_caller]
fn assert_repaints(screen: &mut Screen) {
    let other = repainted(screen);
    assert_eq!(ScreenState::of(screen), ScreenState::of(&other), "{:?}", screen.snapshot());
}
