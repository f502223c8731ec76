//! Lists for people: aligned columns that fit the terminal.

use std::collections::BTreeMap;

use ::tui::text::middle;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::{say, say_json};

/// The width of a list without a terminal.
const WIDTH: usize = 80;

/// The widths to which a column of text may be shortened: the first one, so that times stay whole, and the
/// second one if that is not enough.
const NARROW: [usize; 2] = [18, 10];

/// The spaces between two columns.
const GAP: usize = 2;

/// The columns that keep their room, and those that lose it first, in a table that is too wide.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Precedence {
    /// The column that is not shortened.
    pub(crate) whole: Option<usize>,
    /// The columns that are left out for it, one after the other, once shorter texts are not enough.
    pub(crate) spare: &'static [usize],
}

/// Rows under a header, each column as wide as its widest cell, and all together as wide as the terminal at most.
/// `right`: how many columns, from the last, hold numbers.
///
/// Where there is too little room, texts are shortened in the middle, except in the first column: people name
/// a row by it in other commands. If that is not enough, the last columns are left out, and a line says so.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>], right: usize) -> String {
    Precedence::default().within(terminal_width(), header, rows, right)
}

/// The columns of the terminal at standard output; elsewhere the number in `COLUMNS`, or the usual one.
pub(crate) fn terminal_width() -> usize {
    if cfg!(test) {
        // Tests of commands look at whole rows, whatever terminal they run on.
        return 200;
    }
    let size = crate::system::output_width();
    let given = || std::env::var_os("COLUMNS")?.to_str()?.parse().ok();
    size.filter(|width| *width > 0).or_else(given).filter(|width| *width > 0).unwrap_or(WIDTH)
}

impl Precedence {
    /// A [`table`] in this much room, where some columns come before others.
    pub(crate) fn within(
        self,
        room: usize,
        header: &[&str],
        rows: &[Vec<String>],
        right: usize,
    ) -> String {
        let header: Vec<String> = header.iter().map(|name| name.to_uppercase()).collect();
        let all: Vec<&Vec<String>> = std::iter::once(&header).chain(rows).collect();
        let widest = |at: usize| all.iter().map(|row| row[at].width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..header.len()).map(widest).collect();
        let texts = widths.len().saturating_sub(right);
        let shown = self.shown(&widths, texts, room);
        let is_out = |at: &usize| shown.iter().all(|(shown, _)| shown != at);
        let out = (0..header.len()).filter(is_out).map(|at| header[at].as_str());
        let lines = all.iter().map(|row| line(row, &shown, texts));
        lines.chain(left_out(&out.collect::<Vec<_>>())).collect::<Vec<_>>().join("\n")
    }

    /// The columns that are shown, with their widths.
    fn shown(self, widths: &[usize], texts: usize, room: usize) -> Vec<Column> {
        let all = || widths.iter().copied().enumerate();
        let without = |spare: &[usize]| {
            let mut columns: Vec<Column> = all().filter(|(at, _)| !spare.contains(at)).collect();
            shorten(&mut columns, |at| at < texts && Some(at) != self.whole, room);
            (total(&columns) <= room).then_some(columns)
        };
        (0..=self.spare.len()).find_map(|most| without(&self.spare[..most])).unwrap_or_else(|| {
            // Nothing keeps its room in a terminal as narrow as this.
            let mut columns: Vec<Column> = all().collect();
            shorten(&mut columns, |at| at < texts, room);
            // The first column is always shown.
            while columns.len() > 1 && total(&columns) > room {
                columns.pop();
            }
            columns
        })
    }
}

/// A column's place, and its width.
type Column = (usize, usize);

/// Takes the surplus from the widest of the columns that may be shortened, never from the first column.
fn shorten(columns: &mut [Column], may_shrink: impl Fn(usize) -> bool, room: usize) {
    for narrow in NARROW {
        for _ in room..total(columns) {
            let texts = columns.iter_mut().skip(1).filter(|(at, _)| may_shrink(*at));
            let widths = texts.map(|(_, width)| width).filter(|width| **width > narrow);
            let Some(widest) = widths.max() else { break };
            *widest -= 1;
        }
    }
}

fn total(columns: &[Column]) -> usize {
    let widths: usize = columns.iter().map(|(_, width)| width).sum();
    widths + GAP * columns.len().saturating_sub(1)
}

fn left_out(header: &[&str]) -> Option<String> {
    let names = header.join(", ").to_lowercase();
    (!names.is_empty())
        .then(|| format!("(no room for {names}: a wider terminal shows them, and --json)"))
}

fn line(row: &[String], columns: &[Column], texts: usize) -> String {
    let cell = |&(at, width): &Column| {
        let text = if at == 0 { row[at].clone() } else { middle(&row[at], width) };
        let spaces = " ".repeat(width.saturating_sub(text.width()));
        if at < texts { text + &spaces } else { spaces + &text }
    };
    let cells: Vec<String> = columns.iter().map(cell).collect();
    cells.join(&" ".repeat(GAP)).trim_end().to_owned()
}

/// Prints a list, as JSON under `name` or as a table. `empty` is printed instead of an empty table.
pub(crate) fn show_list<T: Serialize>(
    all: &[T],
    json: bool,
    name: &str,
    empty: &str,
    table: impl FnOnce(&[T]) -> String,
) -> anyhow::Result<()> {
    if json {
        return Ok(say_json(&BTreeMap::from([(name, all)]))?);
    }
    Ok(say(&if all.is_empty() { empty.to_owned() } else { table(all) })?)
}

/// The first names of a list, and how many more there are.
pub(crate) fn first_of(names: &[String]) -> String {
    const NAMED: usize = 3;
    let named = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(",");
    match names.len().checked_sub(NAMED) {
        Some(more @ 1..) => plain(&format!("{named} and {more} more")),
        _ => plain(&named),
    }
}

/// A name that a stranger chose, made safe for a terminal; `-` if it is empty.
pub(crate) fn plain(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { base::plain::line(text) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row = |name: &str, count: u32| vec![name.to_owned(), count.to_string()];
        let rows = [row("a", 1_000), row("größer", 7)];
        assert_eq!(table(&["name", "n"], &rows, 1), "NAME       N\na       1000\ngrößer     7");
    }

    fn within(room: usize, header: &[&str], rows: &[Vec<String>], right: usize) -> String {
        Precedence::default().within(room, header, rows, right)
    }

    fn rows(cells: &[&[&str]]) -> Vec<Vec<String>> {
        let row = |row: &&[&str]| row.iter().map(|&cell| cell.to_owned()).collect();
        cells.iter().map(row).collect()
    }

    fn widest(table: &str) -> usize {
        table.lines().map(UnicodeWidthStr::width).max().unwrap()
    }

    #[test]
    fn texts_lose_their_middle_where_there_is_too_little_room_but_the_first_column_stays() {
        let long = "a-model-with-a-very-long-name-q4_k_m";
        let given = rows(&[&["p-0123456789abcdef", long, long, "1234567"]]);
        let table = within(60, &["id", "model", "served", "tokens"], &given, 1);
        assert_eq!(widest(&table), 60, "{table}");
        assert!(table.contains("p-0123456789abcdef") && table.contains("1234567"), "{table}");
        assert!(table.contains("a-model") && table.contains("…") && table.contains("q4_k_m"));
        let roomy = within(200, &["id", "model", "served", "tokens"], &given, 1);
        assert!(!roomy.contains('…'), "{roomy}");
    }

    #[test]
    fn the_last_columns_are_left_out_only_in_words() {
        let given = rows(&[&["an-id-of-its-own", "text", "123456789", "123456789"]]);
        let table = within(40, &["id", "name", "in", "out"], &given, 2);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[1], "an-id-of-its-own  text  123456789");
        assert!(lines[2].contains("no room for out:") && lines[2].contains("--json"), "{table}");
    }

    #[test]
    fn a_column_stays_whole_as_long_as_leaving_out_spare_ones_makes_room_for_it() {
        let precedence = Precedence { whole: Some(1), spare: &[3, 2] };
        let given = rows(&[&["id", "a-route → elsewhere", "123456", "12345", "99"]]);
        let header = ["id", "route", "in", "first", "n"];
        let at = |room| precedence.within(room, &header, &given, 3);
        assert_eq!(at(42).lines().nth(1), Some("id  a-route → elsewhere  123456  12345  99"));
        let without = "id  a-route → elsewhere  123456  99\n(no room for first:";
        assert!(at(41).contains(without), "{}", at(41));
        let without = "id  a-route → elsewhere  99\n(no room for in, first:";
        assert!(at(34).contains(without), "{}", at(34));
        assert!(at(26).contains('…') && at(26).contains("(no room for first, n:"), "{}", at(26));
    }

    #[test]
    fn characters_of_two_columns_are_counted_as_such() {
        let given = rows(&[&["模型", "1"], &["a", "22"]]);
        assert_eq!(within(80, &["名", "n"], &given, 1), "名     N\n模型   1\na     22");
    }

    proptest! {
        #[test]
        fn no_list_is_wider_than_its_room_unless_its_first_column_is(
            cells in proptest::collection::vec(proptest::collection::vec("[a-z模]{0,60}", 4), 1..5),
            room in 60..120_usize,
            right in 0..4_usize,
        ) {
            let first = cells.iter().map(|row| row[0].width()).max().unwrap();
            let table = within(room, &["a", "b", "c", "d"], &cells, right);
            let rows = table.lines().take(cells.len() + 1).collect::<Vec<_>>().join("\n");
            prop_assert!(widest(&rows) <= room.max(first), "{}", table);
        }
    }

    #[test]
    fn control_characters_in_names_are_replaced() {
        assert_eq!(
            plain("a\u{1b}[2J\u{9b}\u{202e}\u{2066}b"),
            "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}b"
        );
        assert_eq!(plain(""), "-");
    }
}
