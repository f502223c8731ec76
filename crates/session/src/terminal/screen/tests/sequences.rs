//! The effect of sequences that the engine does not know, as in the terminals that people attach with. Each is
//! on the screen, and a snapshot keeps it with all that later output depends on.

use super::{assert_repaints, fed, repainted};

/// On a screen of 10 by 4 cells: what is written, and its rows, joined by `/`.
const CASES: [(&str, &str); 59] = [
    // The alternate page in its older forms. It is blank each time; the cursor goes along.
    ("one\x1b[?47htwo", "   two"),
    ("one\x1b[?47htwo\x1b[?47lx", "one   x"),
    ("one\x1b[?1047h\x1b[Htwo\x1b[?1047lx", "onex"),
    ("one\x1b[?47htwo\x1b[?47l\x1b[?47h", ""),
    ("one\x1b7\x1b[?47h\x1b[3Htwo\x1b[?47l\x1b8x", "onex"),
    ("one\x1b[?47h\x1b[2;2H\x1b7\x1b[?47l\x1b[?47h\x1b8x", "/ x"),
    ("one\x1b[?1049h\x1b[3Htwo\x1b[?1049lx", "onex"),
    ("one\x1b[?1049h\x1b[3Htwo\x1b[?47lx", "one//   x"),
    ("one\x1b[?47h\x1b[3Htwo\x1b[?1049lx", "xne"),
    ("one\x1b[?47h\x1bcx", "x"),
    // The saved cursor as a mode.
    ("abc\x1b[?1048h\x1b[3;5Hx\x1b[?1048ldef", "abcdef//    x"),
    ("ab\x1b[?1048h\x1b[3Hx\x1b8c", "abc//x"),
    // Protected cells.
    ("\x1b[1\"qkeep\x1b[0\"qgone\x1b[?2J", "keep"),
    ("\x1b[1\"qkeep\x1b[2\"qgone\x1b[?2K", "keep"),
    ("ab\x1b[1\"qkeep\x1b[\"qgo\x1b[1;1H\x1b[?K", "  keep"),
    ("ab\x1b[1\"qkeep\x1b[\"qgo\x1b[1;7H\x1b[?1K", "  keep o"),
    ("one\r\n\x1b[1\"qtwo\x1b[\"q2\r\nthree\x1b[2;2H\x1b[?J", "one/two"),
    ("one\r\n\x1b[1\"qtwo\x1b[\"q2\r\nthree\x1b[2;4H\x1b[?1J", "/two/three"),
    ("abc\r\ndef\x1b[?2J", ""),
    ("\x1b[1\"qkeep\x1b[0\"q\x1b[2J", ""),
    ("\x1b[1\"qkeep\x1b[0m\x1b[4D\x1b[?K", "keep"),
    ("\x1b[1\"qkeep\x1b[!pgone\x1b[?2K", "keep"),
    ("\x1b[1\"q漢\x1b[\"q字\x1b[?2K", "漢"),
    ("漢\x1b[1\"qx\x1b[\"q\x1b[2G\x1b[?K", "  x"),
    ("\x1bVkeep\x1bWgone\x1b[2K", "keep"),
    ("\x1bVkeep\x1bWgone\x1b[2J", "keep"),
    ("\x1bVkeep\x1bWgone\x1b[3G\x1b[9X", "keep"),
    ("\x1bVkeep\x1bW\x1bcgone\x1b[2K", ""),
    // Columns.
    ("abcdef\r\nghijkl\x1b[1;3H\x1b[2'}", "ab  cdef/gh  ijkl"),
    ("abcdef\r\nghijkl\x1b[1;3H\x1b[2'~", "abef/ghkl"),
    ("abcdef\x1b[1;3H\x1b['}x", "abxcdef"),
    ("a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[2;1H\x1b['}", "a/ b/ c/d"),
    ("a\r\nb\r\nc\x1b[2;3r\x1b[1;1H\x1b['}", "a/b/c"),
    ("0123456789\x1b[1;9H\x1b[9'}", "01234567"),
    ("0123456789\x1b[1;3H\x1b[99'~", "01"),
    ("abcdef\x1b[2 @", "cdef"),
    ("abcdef\x1b[2 A", "  abcdef"),
    ("a漢字b\x1b[1;3H\x1b['}", "a   字b"),
    ("a漢字b\x1b[1;3H\x1b['~", "a 字b"),
    // Character sets.
    ("\x1b(A#\x1b(B#", "£#"),
    ("\x1b(K[\\]{|}~\x1b(B[", "ÄÖÜäöüß["),
    ("\x1b*0\x1bnqq\x0fq", "──q"),
    ("\x1b+0\x1boqq\x0fq", "──q"),
    ("\x1b)0\x1b~qq\x0fq", "──q"),
    ("\x1b)A\x0e#\x0f#", "£#"),
    ("\x1b(0q\x1b7\x1b(Bq\x1b8q", "──"),
    ("\x1b(0q\x1b%Gq", "─q"),
    ("\x1b)0\x1b%Gq\x0eq", "q─"),
    ("\x1b(?#", "#"),
    // Control characters of eight bits.
    ("a\u{85}b", "a/b"),
    ("\u{9b}31mred", "red"),
    ("a\u{84}b", "a/ b"),
    ("\u{9d}2;title\u{9c}a", "a"),
    // Others.
    ("ab\x1b[5;5H\x1b#8\x1b[2Jx", "x"),
    ("\x1b[?45h0123456789ab\r\x08\x08x", "01234567x9/ab"),
    ("\x1b[?45h0123456789\x08x", "012345678x"),
    ("\x1b[?45hab\r\n\x08x", "ab/x"),
    ("a\x1b[1\n1mb", "a/ b"),
    ("soft\u{ad}hyphen", "soft\u{ad}hyphe/n"),
];

#[test]
fn each_sequence_shows_what_it_shows_elsewhere_and_a_snapshot_keeps_it() {
    for (text, rows) in CASES {
        let mut screen = fed(10, 4, text);
        assert_eq!(screen.text().replace('\n', "/"), rows, "{text:?}");
        assert_repaints(&mut screen);
        let mut later = repainted(&mut screen);
        for screen in [&mut screen, &mut later] {
            screen.feed(b"#q\x1b[?K\x1b[?47l\x1b8#q\x08\x08y\x1b[?47h\x1b8z");
        }
        assert_eq!(screen.text(), later.text(), "{text:?}");
    }
}

#[test]
fn looks_that_the_engine_does_not_know_are_kept() {
    for look in ["5", "53", "4:4", "4:5", "5;53;4:3;1;58:5:7", "4;53"] {
        let written = format!("\x1b[{look}ma\x1b[mb");
        let snapshot = fed(10, 2, &written).snapshot();
        assert!(snapshot.starts_with("\x1b[") && snapshot.contains("ma\x1b[mb"), "{snapshot:?}");
        assert_repaints(&mut fed(10, 2, &format!("\x1b[{look}mab")));
    }
    let ended = fed(10, 2, "\x1b[5;53;4:5ma\x1b[25;55;24mb").snapshot();
    assert!(ended.starts_with("\x1b[5;53;4:5ma\x1b[mb"), "{ended:?}");
    // There is one kind of blinking.
    assert!(fed(10, 2, "\x1b[6ma").snapshot().starts_with("\x1b[5ma"));
    // The number of a colour is no look.
    for colour in ["\x1b[38;5;53ma", "\x1b[48;2;5;53;55ma"] {
        assert!(fed(10, 2, colour).snapshot().starts_with(colour));
    }
}

#[test]
fn protection_is_told_again_after_a_reset_of_the_pen() {
    let snapshot = fed(10, 2, "\x1b[1\"q\x1b[1;31ma\x1b[mb").snapshot();
    assert!(snapshot.contains("a\x1b[m\x1b[1\"qb"), "{snapshot:?}");
}

#[test]
fn modes_that_change_no_cell_are_passed_on() {
    for mode in [5, 45, 1015, 1034, 2027, 2031, 2048, 9001] {
        let mut screen = fed(10, 2, &format!("\x1b[?{mode}h"));
        assert_eq!(screen.snapshot(), format!("\x1b[?{mode}h\x1b[H"));
        screen.feed(format!("\x1b[?{mode}l").as_bytes());
        assert_eq!(screen.snapshot(), "\x1b[H", "{mode}");
    }
    assert_eq!(fed(10, 2, "\x1b[?66h").snapshot(), "\x1b=\x1b[H");
    assert_eq!(fed(10, 2, "\x1b[?66h\x1b>").snapshot(), "\x1b[H");
    assert_eq!(fed(10, 2, "\x1b[?31337h").snapshot(), "\x1b[H");
}
