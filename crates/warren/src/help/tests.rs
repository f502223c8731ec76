//! Every command's help: how much room it takes, what it shows, and whether its examples work.

use std::ffi::OsString;

use clap::Command;
use unicode_width::UnicodeWidthStr;

use super::{
    groups::{GROUPS, OTHERS},
    *,
};

/// A terminal.
const ROWS: usize = 24;
const COLUMNS: usize = 80;

/// Commands without `--json`, each with the reason.
const WITHOUT_JSON: [(&str, &str); 15] = [
    ("warren up", "it serves until it is stopped; its log can be JSON"),
    ("warren serve", "it serves until it is stopped; its log can be JSON"),
    ("warren worker", "it lends until it is stopped; its log can be JSON"),
    ("warren mesh relay", "it serves until it is stopped; its log can be JSON"),
    ("warren room join", "it lends until it is stopped; its log can be JSON"),
    ("warren session attach", "it is a terminal"),
    ("warren tui", "it is a terminal"),
    ("warren chat", "it is a terminal"),
    ("warren join", "it lends until it is stopped; its log can be JSON"),
    ("warren service install", "it says what it does"),
    ("warren service remove", "it says what it does"),
    ("warren files cat", "it prints a file as it is"),
    ("warren team mcp", "it speaks JSON on its standard output in any case"),
    ("warren completions", "it prints a script"),
    ("warren man", "it prints a page"),
];

/// All commands that are shown, each with its path.
fn all() -> Vec<(String, Command)> {
    let mut whole = whole().term_width(COLUMNS);
    whole.build();
    let mut all = Vec::new();
    below("", &whole, &mut all);
    all
}

fn below(parent: &str, command: &Command, all: &mut Vec<(String, Command)>) {
    let path = format!("{parent} {}", command.get_name()).trim().to_owned();
    for command in command.get_subcommands() {
        if !command.is_hide_set() && command.get_name() != "help" {
            below(&path, command, all);
        }
    }
    all.push((path, command.clone()));
}

fn args(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[test]
fn the_command_line_is_consistent() {
    whole().debug_assert();
}

#[test]
fn every_short_help_fits_one_screen() {
    let mut faults = Vec::new();
    for (path, _) in all() {
        let line = args(&format!("{path} -h"));
        let brief = within(COLUMNS, &line).term_width(COLUMNS);
        let help = brief.try_get_matches_from(&line).unwrap_err().to_string();
        let rows = help.trim_end().lines().count();
        let widest = help.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
        if rows >= ROWS || widest > COLUMNS {
            faults.push(format!("{path} -h has {rows} rows of {widest} columns:\n{help}"));
        }
    }
    let faults = faults.join("\n");
    assert!(faults.is_empty(), "{faults}\nhide the options that few need with hide_short_help");
}

#[test]
fn every_command_is_shown_under_its_purpose() {
    for line in ["warren -h", "warren --help", "warren"] {
        let whole = within(COLUMNS, &args(line));
        let help = whole.try_get_matches_from(args(line)).unwrap_err().to_string();
        assert!(
            !help.contains(OTHERS),
            "add the new commands to a group in help/groups.rs: {help}"
        );
        for (purpose, names) in GROUPS {
            let all =
                help.contains(&format!("{purpose}:")) && names.iter().all(|it| help.contains(it));
            assert!(all, "{purpose}: {names:?}\n{help}");
        }
    }
    let mut whole = whole();
    whole.build();
    for name in GROUPS.iter().flat_map(|(_, names)| *names) {
        assert!(
            whole.find_subcommand(name).is_some(),
            "help/groups.rs has {name}, which is no command"
        );
    }
}

#[test]
fn the_long_help_has_its_options_under_headings() {
    let line = args("warren up --help");
    let error = command(&line).try_get_matches_from(&line).unwrap_err();
    let help = error.to_string();
    let mut at = 0;
    for heading in ["Options", "Model servers", "Network and TLS", "Mesh", "Workspace", "Cluster"] {
        let found = help.find(&format!("\n{heading}:\n"));
        let found = found.unwrap_or_else(|| panic!("{heading} is missing:\n{help}"));
        assert!(heading == "Cluster" || found > 0, "{heading}");
        at = at.max(found);
    }
    assert!(at > 0 && help.contains("WARREN_LISTEN") && !help.contains("--provider"), "{help}");
}

#[test]
fn every_command_has_examples_that_are_right() {
    let mut faults = Vec::new();
    for (path, command) in all().into_iter().filter(|(path, _)| path != "warren") {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let Some((_, examples)) = help.split_once(EXAMPLES) else {
            faults.push(format!("{path} has none: #[command(after_help = \"Examples:\\n  …\")]"));
            continue;
        };
        let lines: Vec<&str> =
            examples.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert!(!lines.is_empty(), "{path}");
        for line in lines {
            let words = words(line);
            assert_eq!(words.first().map(String::as_str), Some("warren"), "{path}: {line}");
            if let Err(error) = whole().try_get_matches_from(&words) {
                faults.push(format!("{path}: {line}\n{error}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The words of a line's `warren` as a shell reads them, without variables before it and a remark behind it.
fn words(line: &str) -> Vec<String> {
    let line = line.split("  (").next().unwrap_or_default();
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars().chain([' ']) {
        match (character, quote) {
            ('\'' | '"', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (end, Some(open)) if end == open => quote = None,
            (' ', None) => words.extend(word.take()),
            (character, _) => word.get_or_insert_default().push(character),
        }
    }
    let mut commands = words.split(|word| matches!(word.as_str(), "|" | ">"));
    let from_name = |command: &[String]| {
        let at = command.iter().position(|word| word == "warren")?;
        // What is before it sets variables or the user.
        let sets = |word: &String| word.contains('=') || word == "sudo";
        command[..at].iter().all(sets).then(|| command[at..].to_vec())
    };
    commands.find_map(from_name).unwrap_or_default()
}

#[test]
fn every_command_that_prints_data_prints_json_too() {
    let mut faults = Vec::new();
    for (path, command) in all() {
        let runs = !command.has_subcommands() || !command.is_subcommand_required_set();
        let has_it = command.get_arguments().any(|arg| arg.get_id() == "json");
        let reason = WITHOUT_JSON.iter().find(|(known, _)| *known == path);
        if path != "warren" && runs && has_it == reason.is_some() {
            faults.push(path);
        }
    }
    assert!(faults.is_empty(), "give them --json, or a reason in help/tests.rs: {faults:?}");
}

#[test]
fn json_is_asked_for_by_the_command_and_not_by_what_it_starts() {
    let wants = |line: &str| {
        let found = whole().try_get_matches_from(args(line)).unwrap();
        (wants_json(&found), asks_for_json(&args(line)))
    };
    assert_eq!(wants("warren key list --json"), (true, true));
    assert_eq!(wants("warren key list"), (false, false));
    assert_eq!(wants("warren open -- ls --json"), (false, false));
}

#[test]
fn one_verb_removes_everything_and_its_other_names_go_on() {
    for line in [
        "key remove k",
        "key rm k",
        "key revoke k",
        "room remove c",
        "room rm c",
        "room close c",
        "session remove s",
        "session rm s",
        "session kill s",
        "project rm p",
        "files rm p:a",
        "team rm t",
        "cluster peers rm h:1",
        "cluster remove n",
    ] {
        let line = args(&format!("warren {line}"));
        assert!(whole().try_get_matches_from(&line).is_ok(), "{line:?}");
    }
}
