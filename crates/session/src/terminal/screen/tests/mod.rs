//! Tests of the screen, on streams as programs write them and on random streams.
//!
//! - `laws`: a snapshot repaints the screen, and later output has the same effect on both; splits and
//!   skimming change nothing
//! - `engine`: sequences have the same effect as in the engine alone
//! - `answers`: what a screen answers to a program
//! - `sequences`: what single sequences show, and that a snapshot keeps it
//! - `painting`: single parts of a snapshot; `bounds`: the bounds
//! - `halves`: wide characters that lose a cell, compared with a plain `model` of a screen
//! - `state`: the comparison of two screens; `streams`: generated input

mod answers;
mod bounds;
mod engine;
mod halves;
mod laws;
mod model;
mod painting;
mod sequences;
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

/// Another screen that has read a snapshot of this one.
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
