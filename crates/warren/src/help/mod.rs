//! The command line as clap has it, with its help.
//!
//! `-h` fits one screen: it leaves out the rarer options, the environment variables, and of most commands all but
//! the names. `--help` has everything.
//!
//! - `groups`: the commands of `warren` by purpose

mod groups;
#[cfg(test)]
mod tests;

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Command, CommandFactory, builder::Resettable};

use crate::{Cli, commands::table::terminal_width};

/// The flags that a server's own worker does not need: it lends to that server.
const ELSEWHERE: [&str; 4] = ["server", "protocol", "secret", "provider"];

/// The flags that a machine that joins by a code seldom needs.
const BY_CODE: [&str; 5] = ["server", "backend", "models", "gguf", "demo"];

/// More commands than this leave no room for examples on one screen.
const MANY: usize = 7;

/// The heading before the examples of a command.
const EXAMPLES: &str = "Examples:\n";

/// How many examples the short help shows.
const SHOWN: usize = 3;

/// The whole command line, for these arguments: what its help shows depends on how it is asked for.
pub(crate) fn command(args: &[OsString]) -> Command {
    within(terminal_width(), args)
}

fn within(width: usize, args: &[OsString]) -> Command {
    let is_bare = args.len() < 2;
    let is_brief = is_bare || own(args).any(|arg| arg == "-h");
    let command = whole();
    let shown = groups::shown(&command, is_brief, width);
    let command = command.help_template(shown);
    if is_brief { brief(command) } else { command }
}

/// The whole command line, with all that `--help` shows.
pub(crate) fn whole() -> Command {
    let whole = Cli::command().mut_subcommand("up", |up| {
        ELSEWHERE.iter().fold(up, |up, name| up.mut_arg(name, |arg| arg.hide(true)))
    });
    let whole = whole.mut_subcommand("join", |join| {
        BY_CODE.iter().fold(join, |join, name| join.mut_arg(name, |arg| arg.hide_short_help(true)))
    });
    plain_switches(whole)
}

/// Without the list of values of a switch: that it is true or false needs no telling.
fn plain_switches(command: Command) -> Command {
    let plain = |argument: Arg| {
        let is_switch = argument.is_require_equals_set();
        if is_switch { argument.hide_possible_values(true) } else { argument }
    };
    command.mut_args(plain).mut_subcommands(plain_switches)
}

/// Without what takes many rows: the names of variables, explanations below the options, and examples where many
/// commands are listed.
fn brief(command: Command) -> Command {
    let is_long = command.get_subcommands().count() > MANY;
    let examples = command.get_after_help().map(ToString::to_string);
    let examples = examples.filter(|_| !is_long).and_then(|text| first_examples(&text));
    let command = match examples {
        Some(examples) => command.after_help(examples),
        None => command.after_help(Resettable::Reset),
    };
    command.mut_args(|argument| argument.hide_env(true)).mut_subcommands(brief)
}

/// The examples in a text, as many as there is room for.
fn first_examples(text: &str) -> Option<String> {
    let (_, examples) = text.split_once(EXAMPLES)?;
    let first = examples.lines().take(SHOWN).collect::<Vec<_>>().join("\n");
    Some(format!("{EXAMPLES}{first}"))
}

/// The arguments that are this program's own, and not those of a command that it starts.
fn own(args: &[OsString]) -> impl Iterator<Item = &OsString> {
    args.iter().skip(1).take_while(|arg| *arg != "--")
}

/// Whether a command line that was understood asks for JSON.
pub(crate) fn wants_json(mut found: &ArgMatches) -> bool {
    while let Some((_, below)) = found.subcommand() {
        found = below;
    }
    matches!(found.try_get_one::<bool>("json"), Ok(Some(true)))
}

/// Whether a command line that was not understood asks for JSON.
pub(crate) fn asks_for_json(args: &[OsString]) -> bool {
    own(args).any(|arg| arg == "--json")
}
