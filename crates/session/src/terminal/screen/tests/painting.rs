//! Single parts of a snapshot.

use super::{assert_repaints, fed, repainted, screen};

#[test]
fn a_blank_screen_needs_next_to_nothing() {
    assert!(screen(80, 24).snapshot().len() < 8);
}

#[test]
fn the_primary_page_is_there_behind_the_alternate_one() {
    let mut full = fed(20, 4, "$ vim\r\n\x1b[31mred\x1b[?1049h\x1b[2;3Hinside");
    assert_repaints(&mut full);
    let mut other = repainted(&mut full);
    assert_eq!(other.text(), "\n  inside");
    other.feed(b"\x1b[?1049l!");
    assert_eq!(other.text(), "$ vim\nred!");
}

#[test]
fn a_wrapped_line_is_one_that_goes_on() {
    let mut wrapped = fed(6, 4, "abcdefghi");
    assert_repaints(&mut wrapped);
    let mut other = repainted(&mut wrapped);
    for screen in [&mut wrapped, &mut other] {
        screen.resize(super::Size::new(12, 4));
        assert_eq!(screen.text(), "abcdefghi");
    }
}

#[test]
fn a_cursor_behind_the_last_column_wraps_with_the_next_character() {
    let mut other = repainted(&mut fed(4, 3, "abcd\x1b[m"));
    other.feed(b"e");
    assert_eq!(other.text(), "abcd\ne");
}

#[test]
fn a_sequence_that_is_half_read_goes_on() {
    let mut other = repainted(&mut fed(20, 2, "a\x1b[3"));
    other.feed(b"2mgreen");
    assert_eq!(other.text(), "agreen");
    assert_eq!(other.snapshot(), fed(20, 2, "a\x1b[32mgreen").snapshot());
}

#[test]
fn a_sequence_that_is_dropped_is_dropped_there_too_however_it_goes_on() {
    let mut copying = fed(20, 2, "\x1b]52;c;a");
    let mut other = repainted(&mut copying);
    for screen in [&mut copying, &mut other] {
        screen.feed(b"Gk=");
    }
    assert_eq!(copying.snapshot(), other.snapshot());
}

#[test]
fn a_character_that_is_half_read_goes_on() {
    let mut screen = screen(20, 2);
    screen.feed(&"漢".as_bytes()[..2]);
    assert_eq!(screen.unread(), &"漢".as_bytes()[..2]);
    let mut other = repainted(&mut screen);
    other.feed(&"漢".as_bytes()[2..]);
    assert_eq!(other.text(), "漢");
}

#[test]
fn a_repetition_after_the_snapshot_repeats_what_was_printed_before_it() {
    let mut other = repainted(&mut fed(20, 2, "ab\x1b[31m-"));
    other.feed(b"\x1b[4b");
    assert_eq!(other.text(), "ab-----");
}

#[test]
fn a_mark_after_the_snapshot_is_put_on_what_was_printed_before_it() {
    let mut marked = fed(20, 2, "ab");
    marked.feed("\u{301}".as_bytes());
    assert!(marked.snapshot().ends_with("b\u{301}"), "{:?}", marked.snapshot());
    let mut other = repainted(&mut marked);
    other.feed("\u{302}\x1b[2b".as_bytes());
    assert_eq!(other.text(), "ab\u{301}\u{302}bb");
}

#[test]
fn in_insert_mode_too_what_was_printed_is_repeated_and_marked() {
    for text in ["abc\x1b[4h\x1b[1;2Hx", "abc\x1b[4h\x1b[1;2H漢", "\x1b[4h12345678"] {
        let mut inserted = fed(8, 2, text);
        assert_repaints(&mut inserted);
        let mut other = repainted(&mut inserted);
        for screen in [&mut inserted, &mut other] {
            screen.feed("\u{301}\x1b[b".as_bytes());
        }
        assert_eq!(inserted.text(), other.text(), "{text:?}");
    }
}

#[test]
fn a_row_that_goes_on_stays_one_where_its_character_was_inserted() {
    assert_repaints(&mut fed(4, 3, "\x1b[4haaa漢漢a\r\x1b[da漢漢"));
}

#[test]
fn margins_tab_stops_modes_and_saved_cursors_are_there() {
    assert_repaints(&mut fed(
        30,
        8,
        "\x1b[3g\x1b[5G\x1bH\x1b[2;6r\x1b[?6h\x1b[4h\x1b[?7l\x1b[?25l\x1b[?1h\x1b=\x1b[?1002h\x1b[?1006h\
         \x1b[?1004h\x1b[?2004h\x1b[20h\x1b[5 q\x1b[1;44m\x1b)0\x1b7\x1b[m\x0e\x1b[3;3Hxq\x1b[>1u\x1b[>4;2m\
         \x1b[?1016h\x1b]4;7;rgb:12/34/56\x07\x1b]2;one\x07\x1b[22;2t\x1b]2;two\x07",
    ));
}

#[test]
fn a_cursor_that_is_shown_again_keeps_the_shape_that_the_user_has_chosen() {
    let mut shown = fed(20, 2, "\x1b[?25l\x1b[?12l\x1b[?25h");
    assert_repaints(&mut shown);
    assert_eq!(shown.snapshot(), "\x1b[?12l\x1b[H");
    assert_repaints(&mut fed(20, 2, "\x1b[?12h\x1b[4 q"));
    assert_repaints(&mut fed(20, 2, "\x1b[4 q\x1b[?12h"));
    assert_repaints(&mut fed(20, 2, "\x1b[?12h\x1b[4 q\x1b[0 q"));
}

#[test]
fn behind_an_emoji_everything_is_in_its_place_however_wide_that_is_elsewhere() {
    let snapshot = fed(12, 3, "a🦀b\u{2714}\u{fe0f}c\r\n漢d").snapshot();
    assert!(snapshot.starts_with("a🦀\x1b[4Gb\u{2714}\u{fe0f}\x1b[6Gc\r\n漢d"), "{snapshot:?}");
    // A terminal in which the crab takes one cell must not put the rest of a wrapped line a row too
    // high.
    let snapshot = fed(4, 3, "ab🦀cd\r\nef").snapshot();
    assert!(snapshot.starts_with("ab🦀c\x1b[2;2Hd\r\nef"), "{snapshot:?}");
}

#[test]
fn the_pen_is_changed_in_the_fewest_numbers() {
    let coloured = "\x1b[38;2;10;20;30;48;2;40;50;60ma\x1b[1mb\x1b[22mc";
    assert!(fed(20, 2, coloured).snapshot().starts_with(coloured));
    assert!(fed(20, 2, "\x1b[1;3;4;31;42ma\x1b[0;7mb").snapshot().contains("a\x1b[0;7mb"));
    // A plain blank between two red words is skipped. A plain blank before a plain word is printed.
    assert!(fed(20, 2, "\x1b[31ma\x1b[m \x1b[31mb").snapshot().starts_with("\x1b[31ma\x1b[Cb"));
    assert!(fed(20, 2, "\x1b[31ma\x1b[m b").snapshot().starts_with("\x1b[31ma\x1b[m b"));
}

#[test]
fn tab_stops_are_there_on_both_pages() {
    let snapshot = fed(20, 2, "\x1b[3g\x1b[5G\x1bH\x1b[?1049h").snapshot();
    let (primary, alternate) = snapshot.split_once("\x1b[?1049h").unwrap();
    assert!(primary.contains("\x1b[5G\x1bH") && alternate.contains("\x1b[5G\x1bH"), "{snapshot:?}");
}

#[test]
fn wide_characters_marks_and_links_are_there() {
    assert_repaints(&mut fed(
        7,
        5,
        "漢字漢字e\u{301}\x1b]8;;https://example.org/\x07link\x1b]8;;\x07🦀\x1b[4:3;58:5:9mcurl",
    ));
}

#[test]
fn a_coloured_background_is_erased_not_printed() {
    let mut screen = fed(80, 24, "\x1b[44m\x1b[2J\x1b[5;5Hwindow\x1b[7;1H");
    assert_repaints(&mut screen);
    let snapshot = screen.snapshot();
    assert!(snapshot.len() < 24 * 12, "{} bytes", snapshot.len());
}

#[test]
fn an_ordinary_screen_takes_less_than_ten_kilobytes() {
    let line = "\x1b[1;32muser@host\x1b[m:\x1b[34m~/src\x1b[m$ cargo test --workspace -p \x1b[3mscreen\x1b[m --quiet ok\r\n";
    let mut screen = fed(80, 24, &line.repeat(30));
    let len = screen.snapshot().len();
    assert!((1000..10 * 1024).contains(&len), "{len} bytes");
}

#[test]
fn a_painting_asks_the_terminal_nothing_and_leaves_the_clipboard_alone() {
    let mut screen = fed(
        40,
        4,
        "\x1b[c\x1b[>c\x1b[6n\x1b[?u\x1b[?4m\x1b[14t\x1b[18t\x1b]10;?\x07\x1b]4;1;?\x07\x1b]52;c;aGk=\x07\x1bP+q544e\x1b\\\
         \x1b[?1$ptext\x1b]52;c;aGkgdGhlcmU",
    );
    let snapshot = screen.snapshot();
    assert!(!snapshot.contains("]52") && !snapshot.contains('?'), "{snapshot:?}");
    assert_repaints(&mut screen);
}

#[test]
fn the_visible_text_has_no_blanks_at_its_ends() {
    assert_eq!(
        fed(20, 5, "one  \r\n\r\n  漢e\u{301}\r\n\x1b[44m   ").text(),
        "one\n\n  漢e\u{301}"
    );
    assert_eq!(screen(20, 5).text(), "");
}

#[test]
fn a_title_is_kept_until_a_reset() {
    let mut screen = fed(20, 2, "\x1b]0; a title \x07");
    assert_eq!(screen.title(), Some("a title"));
    assert_eq!(repainted(&mut screen).title(), Some("a title"));
    screen.feed(b"\x1bc");
    assert_eq!(screen.title(), None);
}

#[test]
fn a_soft_reset_leaves_the_text_and_clears_the_modes() {
    let mut soft = fed(20, 4, "\x1b[2;3r\x1b[?6h\x1b[4h\x1b[31mtext\x1b[!p");
    assert_eq!(soft.text(), "\ntext");
    assert_repaints(&mut soft);
    soft.feed(b"\x1b[1;1Hplain");
    assert_eq!(soft.snapshot(), "plain\r\n\x1b[31mtext\x1b[1;5H\x1b[mn");
}

#[test]
fn a_reset_clears_what_was_coloured_before_the_screen_grew() {
    let mut screen = fed(15, 2, "\x1b[44m\x1b[2J\x1b[m");
    screen.resize(super::Size::new(16, 2));
    screen.feed(b"\x1bc");
    assert_eq!(screen.snapshot(), super::screen(16, 2).snapshot());
}
