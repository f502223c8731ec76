//! The pages of the book that are made from the code: every command, and every setting.
//!
//! Tests compare them with what is committed, and write them with `UPDATE=1`.

mod commands;
mod settings;

use std::{env, fs, path::PathBuf};

use clap::Arg;

/// The command that renews the pages.
const RENEW: &str = "UPDATE=1 cargo test -p warren --bin warren reference";

/// Compares a page of the book with its new text, or writes it if `UPDATE` is set.
fn check(page: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/src").join(page);
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "docs/src/{page} is stale. Renew it with:\n  {RENEW}\n");
}

/// The first line of a page, which forbids edits by hand.
fn note() -> String {
    format!("<!-- Made from the code. To renew it: {RENEW} -->\n\n")
}

/// The help of an argument, and the default that it states.
fn help_of(arg: &Arg) -> (String, Option<String>) {
    let text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut default = None;
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let (meaning, told) = split(paragraph);
        default = default.take().or(told);
        meaning
    });
    let meaning = paragraphs.collect::<Vec<_>>().join(" ");
    (meaning, default)
}

/// Splits help in two: the text, and the default in `[default: …]`.
fn split(help: &str) -> (String, Option<String>) {
    let Some((before, rest)) = help.split_once("[default") else {
        return (sentence(help), None);
    };
    let (default, after) = rest.rsplit_once(']').unwrap();
    let default = default.strip_prefix(": ").unwrap_or(default.trim());
    (sentence(&format!("{}{after}", before.trim_end())), Some(default.to_owned()))
}

fn sentence(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    if text.is_empty() { String::new() } else { format!("{text}.") }
}

/// The values that an argument takes, with what each means, if they are few.
fn values_of(arg: &Arg) -> String {
    let values = arg.get_possible_values();
    let named = values.iter().filter(|value| !value.is_hide_set()).map(|value| {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.trim_end_matches('.');
        if help.is_empty() {
            code(value.get_name())
        } else {
            format!("{} ({help})", code(value.get_name()))
        }
    });
    named.collect::<Vec<_>>().join(", ")
}

/// `--flag VALUE`, or `VALUE` of an argument without a flag.
fn spelled(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let value = values.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
    let takes_value = arg.get_action().takes_values();
    let optional = arg.is_require_equals_set();
    match (arg.get_long(), arg.get_short()) {
        (None, None) if arg.get_num_args().is_some_and(|number| number.max_values() > 1) => {
            format!("{value}…")
        }
        (None, None) => value,
        (Some(long), _) if !takes_value => format!("--{long}"),
        (Some(long), _) if optional => format!("--{long}[={value}]"),
        (Some(long), _) => format!("--{long} {value}"),
        (None, Some(short)) => format!("-{short} {value}"),
    }
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// A row of a table. A bar would end its cell, and an angle bracket begin HTML.
fn row(cells: &[&str]) -> String {
    let cells = cells.iter().map(|cell| cell.replace('|', "\\|").replace('<', "&lt;"));
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// The head of a table.
fn head(cells: &[&str]) -> String {
    format!("{}{}", row(cells), row(&vec!["---"; cells.len()]))
}
