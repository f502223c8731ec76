//! Lists for people: aligned columns.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{say, say_json};

/// Rows under a header, each column as wide as its widest cell. `right`: how many columns, from
/// the last, hold numbers.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>], right: usize) -> String {
    let header: Vec<String> = header.iter().map(|name| name.to_uppercase()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&header).chain(rows).collect();
    let width = |at: usize| all.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let lines: Vec<String> = all.iter().map(|row| line(row, &widths, right)).collect();
    lines.join("\n")
}

fn line(row: &[String], widths: &[usize], right: usize) -> String {
    let cell = |(at, (text, width)): (usize, (&String, &usize))| {
        if at + right >= row.len() { format!("{text:>width$}") } else { format!("{text:<width$}") }
    };
    let cells: Vec<String> = row.iter().zip(widths).enumerate().map(cell).collect();
    cells.join("  ").trim_end().to_owned()
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
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row = |name: &str, count: u32| vec![name.to_owned(), count.to_string()];
        let rows = [row("a", 1_000), row("größer", 7)];
        assert_eq!(table(&["name", "n"], &rows, 1), "NAME       N\na       1000\ngrößer     7");
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
