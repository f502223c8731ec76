//! The commands of `warren` by purpose.

use clap::Command;
use unicode_width::UnicodeWidthStr;

/// The purposes, each with its commands. The first is shown with the effect of each command even where there is little
/// room.
pub(super) const GROUPS: [(&str, &[&str]); 5] = [
    ("Start", &["up", "serve", "worker", "stop", "service"]),
    (
        "Use",
        &[
            "ask", "chat", "models", "web", "tui", "open", "session", "project", "files", "git",
            "team",
        ],
    ),
    ("Share", &["invite", "join", "room", "mesh", "cluster", "database"]),
    (
        "Administer",
        &[
            "status", "model", "usage", "key", "logs", "config", "backup", "restore", "doctor",
            "version", "cert",
        ],
    ),
    ("Your shell", &["completions", "man"]),
];

/// The heading of commands without a group. A test proves that there are none.
pub(super) const OTHERS: &str = "Others";

/// The greatest width of the help.
const WIDEST: usize = 100;

/// The space for the names of commands.
const NAMES: usize = 15;

/// The help of `warren` as a template for clap.
pub(super) fn shown(command: &Command, is_brief: bool, width: usize) -> String {
    let width = width.min(WIDEST);
    let groups: Vec<(&str, Vec<&Command>)> = grouped(command);
    let mut all = Vec::new();
    for (at, (purpose, commands)) in groups.iter().enumerate() {
        if is_brief && at > 0 {
            let names: Vec<&str> = commands.iter().map(|command| command.get_name()).collect();
            all.push(entry(&format!("{purpose}:"), &names.join(", "), width));
            continue;
        }
        let entries = commands.iter().map(|command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            entry(&format!("  {}", command.get_name()), &about, width)
        });
        all.push(format!("{purpose}:\n{}", entries.collect::<Vec<_>>().join("\n")));
    }
    let gap = if is_brief { "\n" } else { "\n\n" };
    let more = if is_brief { "`warren --help` says what each command is for, and\n" } else { "" };
    format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{}\n\nOptions:\n{{options}}\n\n\
         {more}`warren COMMAND -h` shows the usual options of one.\n",
        all.join(gap)
    )
}

/// The commands that are shown, by purpose.
fn grouped(command: &Command) -> Vec<(&'static str, Vec<&Command>)> {
    let of = |name: &&str| command.find_subcommand(name);
    let known = GROUPS.map(|(purpose, names)| (purpose, names.iter().filter_map(of).collect()));
    let is_known =
        |command: &Command| GROUPS.iter().any(|(_, names)| names.contains(&command.get_name()));
    let others: Vec<&Command> = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && !is_known(below))
        .collect();
    let others = (!others.is_empty()).then_some((OTHERS, others));
    known.into_iter().chain(others).collect()
}

/// A name and its meaning, which continues below itself.
fn entry(name: &str, words: &str, width: usize) -> String {
    let mut lines = vec![format!("{name:<NAMES$}")];
    for word in words.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.width());
        let is_first = line <= NAMES;
        if !is_first && line + 1 + word.width() > width {
            lines.push(" ".repeat(NAMES));
        }
        if let Some(last) = lines.last_mut() {
            if last.width() > NAMES {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines.join("\n")
}
