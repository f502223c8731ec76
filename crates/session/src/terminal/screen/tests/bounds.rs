//! The bounds of a screen, each reached.

use super::super::{MAX_COLS, MAX_ROWS, Screen, Size};
use super::{assert_repaints, fed, screen};

#[test]
fn a_size_is_made_one_that_a_screen_can_have() {
    assert_eq!(Size::new(0, 0), Size { cols: 2, rows: 1 });
    assert_eq!(Size::new(u16::MAX, u16::MAX), Size { cols: MAX_COLS, rows: MAX_ROWS });
    assert_eq!(Screen::new(Size { cols: 1, rows: 0 }).size(), Size::new(2, 1));
}

#[test]
fn wide_characters_end_on_the_narrowest_screen() {
    let mut narrow = screen(1, 1);
    narrow.feed("漢字a漢\x1b[?7l漢\x1b[4h漢".repeat(50).as_bytes());
    assert_repaints(&mut narrow);
    narrow.resize(Size::new(1, 3));
    narrow.feed("漢".as_bytes());
    assert_repaints(&mut narrow);
}

#[test]
fn a_title_has_256_characters_and_ten_are_saved() {
    let mut screen = screen(20, 2);
    for n in 0..50 {
        screen.feed(format!("\x1b]2;{n}{}\x07\x1b[22t", "t".repeat(1000)).as_bytes());
    }
    assert_eq!(screen.title().map(str::len), Some(256));
    assert_eq!(screen.emulator.titles.saved().len(), 10);
    assert_repaints(&mut screen);
}

#[test]
fn a_link_that_is_too_long_is_none() {
    let link = |len| format!("\x1b]8;;https://e.org/{}\x07x", "u".repeat(len));
    let longest = 2083 - link(0).len() + "\x1b]8;;\x07x".len();
    assert!(fed(20, 2, &link(longest)).snapshot().contains("e.org"));
    assert_repaints(&mut fed(20, 2, &link(longest)));
    assert!(!fed(20, 2, &link(longest + 1)).snapshot().contains("e.org"));
}

#[test]
fn a_character_has_thirty_two_marks() {
    let mut marked = fed(20, 2, &format!("e{}", "\u{301}".repeat(100_000)));
    assert_eq!(marked.text().chars().count(), 33);
    assert_repaints(&mut marked);
}

#[test]
fn keyboard_flags_are_eight_deep() {
    let mut screen = fed(20, 2, &"\x1b[>1u".repeat(5000));
    assert_eq!(screen.emulator.keys.all().len(), 8);
    assert_repaints(&mut screen);
}

#[test]
fn a_sequence_that_never_ends_is_not_kept() {
    for start in ["\x1b]2;", "\x1b]52;c;", "\x1bP", "\x1b_G", "\x1b[1", "\x1b(", "\x1b"] {
        let filler = if start == "\x1b" { "\n" } else { "0" };
        let filler = if start == "\x1b(" { "(" } else { filler };
        let mut screen = fed(20, 2, start);
        for _ in 0..100 {
            screen.feed(filler.repeat(1000).as_bytes());
        }
        assert!(screen.scanner.tail().len() <= 4096, "{start:?}");
        assert_repaints(&mut screen);
        screen.feed(b"m\x1b\\\x1b[2J\x1b[Hafter");
        assert_eq!(screen.text(), "after", "{start:?}");
    }
}

#[test]
fn huge_numbers_do_what_the_largest_sensible_ones_do() {
    let all = "ABCDEFGHIJKLMPSTXZ@`abdegr";
    for end in all.chars() {
        let mut screen = fed(30, 5, "one\r\ntwo\r\nthree漢");
        let huge = format!("\x1b[99999999999999999999;99999999999999999999{end}");
        screen.feed(huge.repeat(50).as_bytes());
        assert_repaints(&mut screen);
    }
}

#[test]
fn repetitions_stop_at_a_full_screen() {
    let mut screen = fed(80, 24, "x");
    screen.feed("\x1b[65535bx".repeat(1000).as_bytes());
    assert_eq!(screen.text().lines().next().map(str::len), Some(80));
}

#[test]
fn ten_megabytes_of_garbage_end_and_leave_a_screen_that_can_be_painted() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()
    };
    let mut screen = screen(80, 24);
    for _ in 0..160 {
        let garbage: Vec<u8> = (0..8192).flat_map(|_| next()).collect();
        screen.feed(&garbage);
    }
    assert!(screen.snapshot().len() < 1024 * 1024);
    assert_repaints(&mut screen);
}
