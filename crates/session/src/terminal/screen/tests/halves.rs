//! A wide character is whole or gone: whenever one of its cells is overwritten, the other becomes blank.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::Screen;
use super::model::{Look, Model, ModelCell, Step, Text, shown};
use super::state::ScreenState;
use super::{Size, assert_repaints, fed, repainted, screen};

/// The pen of the first text, and the pen that writes or erases afterwards.
const OLD: &str = "\x1b[34;45;1;7m";
const NEW: &str = "\x1b[0;37;40m";

/// Cases on a screen of six columns and two rows: the text of the old pen, the input of the new pen,
/// the cells of both rows, and their looks. A `·` is the second cell of a wide character. A look is
/// `o` or `n` for the two pens, `e` for cells that the new pen erased, `.` for untouched cells.
const CASES: [(&str, &str, [&str; 2], [&str; 2]); 36] = [
    // Printed over.
    ("漢", "\x1b[1GX", ["X", ""], ["nn....", "......"]),
    ("漢", "\x1b[2GX", [" X", ""], ["nn....", "......"]),
    ("漢\u{301}", "\x1b[2G─", [" ─", ""], ["nn....", "......"]),
    ("漢字", "\x1b[2G中", [" 中·", ""], ["nnnn..", "......"]),
    ("漢字", "\x1b[1G中", ["中·字·", ""], ["nnoo..", "......"]),
    ("漢字", "\x1b[2GXY", [" XY", ""], ["nnnn..", "......"]),
    ("漢字", "\x1b[1GX\x1b[b", ["XX字·", ""], ["nnoo..", "......"]),
    ("漢字", "\x1b[1GY\x1b[2b", ["YYY", ""], ["nnnn..", "......"]),
    // At the edge.
    ("\x1b[5G漢", "\x1b[6GX", ["     X", ""], ["....nn", "......"]),
    ("\x1b[5G漢", "\x1b[5GX", ["    X", ""], ["....nn", "......"]),
    ("\x1b[5G漢", "\x1b[6G中", ["", "中·"], ["....nn", "nn...."]),
    ("12345\x1b[2H漢", "\x1b[1;6HXY", ["12345X", "Y"], ["ooooon", "nn...."]),
    ("12345\x1b[2H 漢", "\x1b[1;6H中", ["12345", "中·"], ["ooooon", "nnn..."]),
    ("\x1b[5G漢", "\x1b[?7l\x1b[6G中", ["    漢·", ""], ["....oo", "......"]),
    ("\x1b[5G漢", "\x1b[?7l中", ["    漢·", ""], ["....oo", "......"]),
    ("\x1b[5G漢", "\x1b[?7lX", ["     X", ""], ["....nn", "......"]),
    // Inserted and deleted.
    ("a漢b", "\x1b[3G\x1b[@", ["a   b", ""], ["oeeeo.", "......"]),
    ("a漢b", "\x1b[2G\x1b[@", ["a 漢·b", ""], ["oeooo.", "......"]),
    ("\x1b[5G漢", "\x1b[1G\x1b[@", ["", ""], ["e....e", "......"]),
    ("\x1b[5G漢", "\x1b[1G\x1b[2@", ["", ""], ["ee....", "......"]),
    ("漢bc", "\x1b[1G\x1b[P", [" bc", ""], ["eoo..e", "......"]),
    ("漢bc", "\x1b[2G\x1b[P", [" bc", ""], ["eoo..e", "......"]),
    ("a漢字", "\x1b[1G\x1b[2P", [" 字·", ""], ["eoo.ee", "......"]),
    ("a漢", "\x1b[4h\x1b[3GX", ["a X", ""], ["onnn..", "......"]),
    ("漢漢漢", "\x1b[4h\x1b[1GX", ["X漢·漢·", ""], ["noooon", "......"]),
    ("ab漢漢", "\x1b[4h\x1b[2GX", ["aXb漢·", ""], ["onooon", "......"]),
    ("ab漢漢", "\x1b[4h\x1b[3G中", ["ab中·漢·", ""], ["oonnoo", "......"]),
    ("\x1b[2Hab", "\x1b[4h\x1b[1;6H中", ["", "中·ab"], [".....n", "nnoo.."]),
    // Erased.
    ("漢", "\x1b[1G\x1b[X", ["", ""], ["ee....", "......"]),
    ("漢", "\x1b[2G\x1b[X", ["", ""], ["ee....", "......"]),
    ("漢字中", "\x1b[2G\x1b[2X", ["    中·", ""], ["eeeeoo", "......"]),
    ("漢字", "\x1b[4G\x1b[K", ["漢·", ""], ["ooeeee", "......"]),
    ("漢字中", "\x1b[K", ["漢·字·中·", ""], ["oooooo", "......"]),
    ("漢字", "\x1b[1G\x1b[1K", ["  字·", ""], ["eeoo..", "......"]),
    ("漢字\x1b[2Hab", "\x1b[1;4H\x1b[J", ["漢·", ""], ["ooeeee", "eeeeee"]),
    ("ab\x1b[2H漢字", "\x1b[3G\x1b[1J", ["", ""], ["eeeeee", "eeee.."]),
];

#[test]
fn half_a_wide_character_becomes_a_blank_of_what_took_the_other() {
    for (before, then, texts, looks) in CASES {
        let mut screen = fed(6, 2, &format!("{OLD}{before}{NEW}{then}"));
        let (rows, _) = shown(&screen);
        let drawn =
            rows.iter().map(|row| row.iter().map(|cell| cell.0.drawn()).collect::<String>());
        let drawn: Vec<String> = drawn.map(|row| row.trim_end().to_owned()).collect();
        assert_eq!(drawn, texts, "{before:?}, then {then:?}");
        let seen = rows.iter().map(|row| row.iter().map(|cell| letter(cell.1)).collect::<String>());
        assert_eq!(seen.collect::<Vec<_>>(), looks, "{before:?}, then {then:?}");
        assert_repaints(&mut screen);
    }
}

/// The characters of a row, and the looks of its cells.
fn drawn(row: &[ModelCell]) -> (String, String) {
    row.iter().map(|(text, look)| (text.drawn(), letter(*look))).unzip()
}

fn letter(look: Look) -> char {
    let pen = |text| Look::of(&fed(6, 2, text).emulator.grid().cursor.template);
    let letters = [(pen(OLD), 'o'), (pen(NEW), 'n'), (pen(NEW).erasing(), 'e'), (pen(""), '.')];
    letters.into_iter().find(|(known, _)| *known == look).map_or('?', |(_, letter)| letter)
}

#[test]
fn a_run_over_wide_characters_is_printed_like_its_characters_one_by_one() {
    let run = format!("{NEW}\x1b[1;2Habcdefghijklmn");
    for before in ["漢字漢字漢字", "ab漢cd漢", "\x1b[2;2H漢字", "\x1b[4h漢字漢", "\x1b[?7l漢字漢"]
    {
        let mut whole = fed(6, 3, &format!("{OLD}{before}"));
        let mut single = fed(6, 3, &format!("{OLD}{before}"));
        whole.feed(run.as_bytes());
        run.bytes().for_each(|byte| single.feed(&[byte]));
        assert_eq!(ScreenState::of(&whole), ScreenState::of(&single), "{before:?}");
        assert_repaints(&mut whole);
    }
}

/// In a flood, only the last lines are read.
#[test]
fn a_flood_leaves_no_half_either() {
    let line = format!("{OLD}漢字\u{8}{NEW}Z{OLD}漢漢\r\n{NEW}");
    let (mut skimming, mut plain) = (screen(8, 4), screen(8, 4));
    plain.set_skimming(false);
    for screen in [&mut skimming, &mut plain] {
        screen.feed(line.repeat(200).as_bytes());
        let row = drawn(&shown(screen).0[0]);
        assert_eq!(row, ("漢· Z漢·漢·".to_owned(), "oonnoooo".to_owned()));
    }
    assert_eq!(ScreenState::of(&skimming), ScreenState::of(&plain));
    assert_repaints(&mut skimming);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(1024)))]

    #[test]
    fn every_cell_is_as_in_a_plain_model(
        (cols, rows) in (2u16..9, 1u16..4),
        steps in vec(step(), 1..60),
    ) {
        let mut screen = Screen::new(Size::new(cols, rows));
        let mut model = Model::new(cols.into(), rows.into());
        for step in &steps {
            screen.feed(step.sequence().as_bytes());
            model.take(*step);
            prop_assert_eq!(shown(&screen), (model.rows.clone(), model.cursor()), "after {:?}", step);
        }
        prop_assert_eq!(shown(&repainted(&mut screen)), (model.rows.clone(), model.cursor()));
    }
}

fn step() -> impl Strategy<Value = Step> {
    let text = prop_oneof![
        3 => select(vec!['漢', '字', '中', '한', '！']).prop_map(Text::Wide),
        2 => select(vec!['a', 'b', ' ', 'é', '─']).prop_map(Text::Narrow),
    ];
    let count = 1usize..6;
    prop_oneof![
        12 => text.prop_map(Step::Print),
        5 => (0usize..4, 0usize..9).prop_map(|(row, column)| Step::Go(row, column)),
        1 => Just(Step::NextLine),
        3 => (0usize..8, 0usize..8, any::<bool>()).prop_map(|(fg, bg, swap)| Step::Pen(fg, bg, swap)),
        2 => count.clone().prop_map(Step::Insert),
        2 => count.clone().prop_map(Step::Delete),
        2 => count.prop_map(Step::Erase),
        2 => (0usize..3).prop_map(Step::EraseRow),
        1 => (0usize..3).prop_map(Step::ErasePage),
        1 => any::<bool>().prop_map(Step::InsertMode),
        1 => any::<bool>().prop_map(Step::Wrapping),
    ]
}
