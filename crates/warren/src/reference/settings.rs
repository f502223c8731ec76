//! `settings-reference.md`: every key of the configuration file, with the default that it really has.

use std::collections::BTreeMap;

use clap::{Arg, Command};
use daemon::{
    ServeOptions, Settings,
    options::{
        AgentOptions, AliasOptions, BackendOptions, ClusterOptions, EngineModelOptions,
        EngineOptions, Key, MeshOptions, PriceOptions, ProviderPriceOptions, RoomOptions,
        ShareOptions, WorkerOptions, WorkspaceOptions, flag_ids,
    },
    settings::DRAIN,
};
use serde_json::Value;

use super::{check, code, head, help_of, note, row, spelled, split, values_of};
use crate::{commands::config::worker_defaults, help};

#[test]
fn the_page_of_settings_is_fresh() {
    check("settings-reference.md", &page());
}

/// A section of the file: its name, the command that has its flags, its keys.
struct Section {
    name: &'static str,
    about: &'static str,
    command: &'static str,
    keys: &'static [Key],
}

impl Section {
    /// The section whose flags the command has.
    fn root(&self) -> &'static str {
        if self.command == "serve" { "" } else { self.name }
    }

    /// A key with the names of its sections.
    fn path(&self, key: &Key) -> String {
        format!("{}.{}", self.name, key.name).trim_start_matches('.').to_owned()
    }

    /// Whether a field that is no `Option` must be written: such sections have no default as a whole.
    fn is_required(&self) -> bool {
        matches!(
            self.name,
            "models.\"NAME\"" | "worker.backends" | "prices.\"MODEL\".providers.\"NAME\""
        )
    }
}

const fn section(
    name: &'static str,
    command: &'static str,
    keys: &'static [Key],
    about: &'static str,
) -> Section {
    Section { name, about, command, keys }
}

#[rustfmt::skip]
const SECTIONS: [Section; 14] = [
    section("", "serve", ServeOptions::KEYS,
        "`warren serve`, and the server of `warren up`."),
    section("models.\"NAME\"", "", AliasOptions::KEYS,
        "A name that stands for models: see [aliases](aliases.md)."),
    section("prices.\"MODEL\"", "", PriceOptions::KEYS,
        "What a million tokens of a model cost: see [usage](usage.md#what-it-costs)."),
    section("prices.\"MODEL\".providers.\"NAME\"", "", ProviderPriceOptions::KEYS,
        "What they cost at the providers of a name."),
    section("mesh", "serve", MeshOptions::KEYS,
        "The server's part in [the mesh](mesh.md)."),
    section("mesh.share", "", ShareOptions::KEYS,
        "How much of this machine peers may have. It takes the place of `share` in `[mesh]`."),
    section("workspace", "serve", WorkspaceOptions::KEYS,
        "The server's [workspace](workspace.md)."),
    section("workspace.agents", "", AgentOptions::KEYS,
        "How [agents](agents/agents.md) are run."),
    section("cluster", "serve", ClusterOptions::KEYS,
        "The server's place among [several machines](workspace-cluster.md)."),
    section("worker", "worker", WorkerOptions::KEYS,
        "`warren worker`, and the worker of `warren up`."),
    section("worker.backends", "", BackendOptions::KEYS,
        "Backends with settings of their own: `[[worker.backends]]`, one for each."),
    section("worker.engines", "", EngineOptions::KEYS,
        "Model servers that this machine runs itself: `[[worker.engines]]`, see [model engines](model-engines.md)."),
    section("worker.engines.model.\"NAME\"", "", EngineModelOptions::KEYS,
        "What is different for the models of this name, in which `*` stands for anything."),
    section("room", "room list", RoomOptions::KEYS,
        "`warren room` and `warren tui`."),
];

fn page() -> String {
    let mut cli = help::whole();
    cli.build();
    let defaults = defaults();
    let mut page = note();
    page.push_str(
        "# Settings reference\n\nEvery key of the configuration file, with its flag and its variable. \
         [Settings](settings.md) explains how they\nwork together. Keys may be spelled with hyphens. \
         Seconds may be fractions.\n",
    );
    for section in &SECTIONS {
        page.push_str(&match section.name {
            "" => format!("\n## The top of the file\n\n{}\n\n", section.about),
            name => format!("\n## `[{name}]`\n\n{}\n\n", section.about),
        });
        page.push_str(&head(&["Key", "Type", "Default", "Flag and variable", "Meaning"]));
        let command = find(&cli, section.command);
        // `[mesh.share]` has a section of its own.
        for key in section.keys.iter().filter(|key| key.name != "limits") {
            page.push_str(&setting(section, command, key, &defaults));
        }
    }
    page
}

/// A command by its path below `warren`.
fn find<'a>(cli: &'a Command, path: &str) -> Option<&'a Command> {
    let mut names = path.split_whitespace().peekable();
    names.peek()?;
    names.try_fold(cli, |command, name| command.find_subcommand(name))
}

fn setting(
    section: &Section,
    command: Option<&Command>,
    key: &Key,
    defaults: &BTreeMap<String, String>,
) -> String {
    let arg = command.and_then(|command| {
        let ids = flag_ids(section.root(), &section.path(key))?;
        ids.iter().find_map(|id| command.get_arguments().find(|arg| arg.get_id() == id.as_str()))
    });
    let (mut meaning, stated) = arg.map_or_else(|| split(&documentation(key)), help_of);
    let values = arg.filter(|arg| !arg.is_require_equals_set()).map(values_of).unwrap_or_default();
    if !values.is_empty() {
        meaning = format!("{meaning} One of {values}.");
    }
    let default = default_of(section, key, stated, defaults);
    let flag = arg.map(flag).unwrap_or_default();
    row(&[&code(key.name), kind(key), &default, &flag, &meaning])
}

/// The default that the program has. A default in the help must be the same: only one that is no
/// value, such as where a secret is kept, is taken from there.
fn default_of(
    section: &Section,
    key: &Key,
    stated: Option<String>,
    defaults: &BTreeMap<String, String>,
) -> String {
    let path = section.path(key);
    let real = defaults.get(&path);
    if let (Some(real), Some(stated)) = (real, &stated) {
        let said = stated.split([',', ';']).next().unwrap_or_default();
        assert_eq!(said, real, "the help of {path} states another default than the program has");
    }
    let is_literal = |stated: &str| stated.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    match (real, stated) {
        (Some(real), _) => code(real),
        (None, Some(stated)) => {
            assert!(
                !is_literal(&stated),
                "{path}: its default, {stated}, is not taken from the program"
            );
            stated
        }
        (None, None)
            if !key.kind.starts_with("Option")
                && !key.attributes.contains("default")
                && section.is_required() =>
        {
            "required".to_owned()
        }
        (None, None) if key.kind.contains("bool") => code("false"),
        (None, None) => "none".to_owned(),
    }
}

fn flag(arg: &Arg) -> String {
    let variable = arg.get_env().map(|name| code(&name.to_string_lossy()));
    let all = [Some(code(&spelled(arg))), variable];
    all.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The documentation of a field, in one line.
fn documentation(key: &Key) -> String {
    let lines = key.attributes.split('\0').filter(|attribute| attribute.starts_with("doc"));
    let text = lines.filter_map(|line| {
        let (from, to) = (line.find('"')? + 1, line.rfind('"')?);
        Some(line[from..to].trim())
    });
    text.collect::<Vec<_>>().join(" ")
}

/// The type of a key, and its unit.
fn kind(key: &Key) -> &'static str {
    let kind = key.kind.replace(' ', "");
    let kind =
        kind.strip_prefix("Option<").and_then(|kind| kind.strip_suffix('>')).unwrap_or(&kind);
    match kind {
        "bool" => "true or false",
        "Seconds" => "seconds",
        "Secret" => "secret text",
        "String" => "text",
        "PathBuf" => "path",
        "SocketAddr" => "address and port",
        "Money" => "amount",
        "Currency" => "text",
        "f64" => "number from 0 to 1",
        "LogFormat" | "Routing" | "ResumeAnswers" | "RoomEndpoints" | "LendAs" | "MeshRoute"
        | "MeshShare" | "MeshRelayServe" | "Continues" => "word",
        "Vec<String>" | "Vec<PathBuf>" => "list of texts",
        "EngineCommand" => "text or list of texts",
        "Paths" => "path or list of paths",
        "Bytes" => "amount with its unit",
        "Span" => "seconds, or a text such as `10m`",
        "Vec<BackendOptions>" | "Vec<EngineOptions>" => "list of tables",
        number if number.starts_with(['u', 'i']) => match key.name.rsplit('_').next() {
            Some("mib") => "whole MiB",
            Some("kib") => "whole KiB",
            Some("days") => "whole days",
            _ => "whole number",
        },
        _ => "table",
    }
}

/// The value of each setting when nobody sets it, as the program has it.
fn defaults() -> BTreeMap<String, String> {
    let data_dir = Some("/data".into());
    let server =
        Settings::new(ServeOptions { data_dir, ..ServeOptions::default() }, false).unwrap();
    assert_eq!(DRAIN, server.drain, "a worker's drain is documented with the server's");
    let all = server.values().into_iter().chain(worker_defaults());
    // Its default differs by machine: the help says which it is.
    let all = all.filter(|(name, _)| name != "data_dir");
    let written = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    all.map(|(name, value)| (name, written(value))).collect()
}
