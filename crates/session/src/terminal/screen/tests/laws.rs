//! A snapshot repaints the screen, and later output has the same effect on both. Splits of the input
//! and skimming change nothing.

use proptest::prelude::*;

use super::super::Screen;
use super::repainted;
use super::state::ScreenState;
use super::streams::{cuts, happenings, play, sizes, text_and_pens};

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_makes_an_equal_screen(size in sizes(), past in happenings(8), cuts in cuts()) {
        let mut screen = Screen::new(size);
        play(&mut screen, &past, &cuts);
        let other = repainted(&mut screen);
        prop_assert_eq!(ScreenState::of(&screen), ScreenState::of(&other));
    }

    #[test]
    fn an_equal_screen_stays_equal(
        size in sizes(),
        (past, future) in (happenings(6), happenings(6)),
        (first, second) in (cuts(), cuts()),
    ) {
        let mut screen = Screen::new(size);
        play(&mut screen, &past, &first);
        let mut other = repainted(&mut screen);
        play(&mut screen, &future, &first);
        play(&mut other, &future, &second);
        prop_assert_eq!(ScreenState::of(&screen), ScreenState::of(&other));
    }

    #[test]
    fn taking_a_snapshot_changes_nothing_that_shows(size in sizes(), past in happenings(6)) {
        let mut screen = Screen::new(size);
        play(&mut screen, &past, &[usize::MAX]);
        let first = screen.snapshot();
        prop_assert_eq!(first, screen.snapshot());
    }

    #[test]
    fn splits_change_nothing(size in sizes(), past in happenings(8), cuts in cuts()) {
        let (mut whole, mut split) = (Screen::new(size), Screen::new(size));
        play(&mut whole, &past, &[usize::MAX]);
        play(&mut split, &past, &cuts);
        prop_assert_eq!(ScreenState::of(&whole), ScreenState::of(&split));
    }

    #[test]
    fn skimming_changes_nothing(
        size in sizes(),
        past in happenings(4),
        flood in text_and_pens(120),
        future in happenings(2),
        cuts in cuts(),
    ) {
        let (mut skimming, mut plain) = (Screen::new(size), Screen::new(size));
        plain.set_skimming(false);
        for screen in [&mut skimming, &mut plain] {
            play(screen, &past, &[usize::MAX]);
        }
        skimming.feed(&flood);
        for piece in flood.chunks(cuts[0].min(flood.len().max(1))) {
            plain.feed(piece);
        }
        for screen in [&mut skimming, &mut plain] {
            play(screen, &future, &cuts);
        }
        prop_assert_eq!(ScreenState::of(&skimming), ScreenState::of(&plain));
    }
}

/// The number of cases. `PROPTEST_CASES` can raise it for a long run.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(512)
}
