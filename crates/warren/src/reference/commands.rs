//! `commands.md`: every command with its arguments, from what clap knows of them.

use clap::{Arg, Command};

use super::{check, code, head, help_of, note, row, sentence, spelled, values_of};
use crate::{exit, help};

#[test]
fn the_page_of_commands_is_fresh() {
    let mut cli = help::whole();
    cli.build();
    check("commands.md", &page(&cli));
}

fn page(cli: &Command) -> String {
    let mut page = note();
    page.push_str(
        "# Commands\n\nEvery command of `warren`, with its arguments. `warren COMMAND --help` shows the \
         same. A flag wins over its\nvariable, and the variable over the [configuration \
         file](settings.md). What stands in brackets may be left out.\n\n",
    );
    page.push_str("Every command takes `--config FILE` (`WARREN_CONFIG`): ");
    let config = cli.get_arguments().find(|arg| arg.get_id() == "config").unwrap();
    let (meaning, default) = help_of(config);
    let meaning = meaning[..1].to_lowercase() + meaning[1..].trim_end_matches('.');
    page.push_str(&format!("{meaning}; by default {}.\n\n", default.unwrap()));
    page.push_str("## Exit codes\n\n");
    page.push_str(&head(&["Code", "Meaning"]));
    for (number, meaning) in exit::CODES {
        page.push_str(&row(&[&number.to_string(), meaning]));
    }
    page.push_str("\n`warren open` ends with the exit code of its command, once that has ended.\n");
    for command in shown(cli) {
        describe(command, "warren", &mut page);
    }
    page
}

/// A command and those below it, in the order of the help.
fn describe(command: &Command, parent: &str, page: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let depth = "#".repeat(1 + name.matches(' ').count());
    page.push_str(&format!("\n{depth} {name}\n\n{}{}\n", sentence(&about), also(command)));
    if command.has_subcommands() {
        // A command that also runs by itself has arguments of its own.
        if !command.is_subcommand_required_set() {
            usage(command, page);
        }
        shown(command).for_each(|below| describe(below, &name, page));
        return;
    }
    usage(command, page);
}

/// The usage of a command, and its arguments.
fn usage(command: &Command, page: &mut String) {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    page.push_str(&format!("\n```text\n{}\n```\n", usage.trim_start_matches("Usage: ")));
    let arguments: Vec<_> = command.get_arguments().filter(|arg| is_listed(arg)).collect();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for heading in arguments.iter().map(|arg| arg.get_help_heading()) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    // Arguments without a heading come first, as in the help.
    headings.sort_by_key(Option::is_some);
    for heading in headings {
        page.push_str(&heading.map(|name| format!("\n{name}:\n")).unwrap_or_default());
        page.push('\n');
        page.push_str(&head(&["Argument", "Variable", "Default", "Meaning"]));
        let below = arguments.iter().filter(|arg| arg.get_help_heading() == heading);
        below.for_each(|arg| page.push_str(&argument(arg)));
    }
}

/// The other names of a command.
fn also(command: &Command) -> String {
    let names: Vec<String> = command.get_visible_aliases().map(code).collect();
    if names.is_empty() { String::new() } else { format!(" Also called {}.", names.join(", ")) }
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// `--help` and `--config` are every command's.
fn is_listed(arg: &Arg) -> bool {
    !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version" | "config")
}

fn argument(arg: &Arg) -> String {
    let (mut meaning, named) = help_of(arg);
    let values = values_of(arg);
    if !values.is_empty() && !arg.is_require_equals_set() && arg.get_action().takes_values() {
        meaning = format!("{meaning} One of {values}.");
    }
    let variable = arg.get_env().map(|name| code(&name.to_string_lossy())).unwrap_or_default();
    let own = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    let own = own.collect::<Vec<_>>().join(",");
    let is_flag = !arg.get_action().takes_values();
    let default = match named {
        Some(named) => named,
        None if arg.is_required_set() => "required".to_owned(),
        None if is_flag => String::new(),
        None => code(&own),
    };
    row(&[&code(&spelled(arg)), &variable, &default, &meaning])
}
