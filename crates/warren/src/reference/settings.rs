//! `settings-reference.md`: every key of the configuration file, with the default that it really has.

use std::{collections::BTreeMap, time::Duration};

use clap::{Arg, Command, ValueEnum};
use daemon::{
    ServeOptions, Settings,
    options::{
        AgentOptions, AliasOptions, BackendOptions, ClusterOptions, EngineModelOptions,
        EngineOptions, Key, LendAs, MeshOptions, PriceOptions, ProviderPriceOptions, RoomEndpoints,
        RoomOptions, ShareOptions, WorkerOptions, WorkspaceOptions,
    },
    settings::DRAIN,
};
use worker::{BackendConfig, DemoConfig};

use super::{check, code, head, help_of, note, row, spelled, split, values_of};
use crate::{
    commands::model_engines::{LOADS_AT_ONCE, MAX_CONCURRENT},
    help,
};

#[test]
fn the_page_of_settings_is_fresh() {
    check("settings-reference.md", &page());
}

/// A section of the file: its name, which command has its flags, how their ids begin, its keys.
struct Section {
    name: &'static str,
    about: &'static str,
    command: &'static str,
    prefix: &'static str,
    keys: &'static [Key],
}

impl Section {
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
    prefix: &'static str,
    keys: &'static [Key],
    about: &'static str,
) -> Section {
    Section { name, about, command, prefix, keys }
}

#[rustfmt::skip]
const SECTIONS: [Section; 14] = [
    section("", "serve", "", ServeOptions::KEYS,
        "`warren serve`, and the server of `warren up`."),
    section("models.\"NAME\"", "", "", AliasOptions::KEYS,
        "A name that stands for models: see [aliases](aliases.md)."),
    section("prices.\"MODEL\"", "", "", PriceOptions::KEYS,
        "What a million tokens of a model cost: see [usage](usage.md#what-it-costs)."),
    section("prices.\"MODEL\".providers.\"NAME\"", "", "", ProviderPriceOptions::KEYS,
        "What they cost at the providers of a name."),
    section("mesh", "serve", "mesh_", MeshOptions::KEYS,
        "The server's part in [the mesh](mesh.md)."),
    section("mesh.share", "", "", ShareOptions::KEYS,
        "How much of this machine peers may have. It takes the place of `share` in `[mesh]`."),
    section("workspace", "serve", "workspace_", WorkspaceOptions::KEYS,
        "The server's [workspace](workspace.md)."),
    section("workspace.agents", "", "", AgentOptions::KEYS,
        "How [agents](agents/agents.md) are run."),
    section("cluster", "serve", "cluster_", ClusterOptions::KEYS,
        "The server's place among [several machines](workspace-cluster.md)."),
    section("worker", "worker", "", WorkerOptions::KEYS,
        "`warren worker`, and the worker of `warren up`."),
    section("worker.backends", "", "", BackendOptions::KEYS,
        "Backends with settings of their own: `[[worker.backends]]`, one for each."),
    section("worker.engines", "", "", EngineOptions::KEYS,
        "Model servers that this machine runs itself: `[[worker.engines]]`, see [model engines](model-engines.md)."),
    section("worker.engines.model.\"NAME\"", "", "", EngineModelOptions::KEYS,
        "What is different for the models of this name, in which `*` stands for anything."),
    section("room", "room list", "", RoomOptions::KEYS,
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
    let ids = [format!("{}{}", section.prefix, key.name), key.name.to_owned()];
    let arg = command.and_then(|command| {
        ids.iter().find_map(|id| command.get_arguments().find(|arg| arg.get_id() == id.as_str()))
    });
    let (mut meaning, told) = arg.map_or_else(|| split(&documentation(key)), help_of);
    let values = arg.filter(|arg| !arg.is_require_equals_set()).map(values_of).unwrap_or_default();
    if !values.is_empty() {
        meaning = format!("{meaning} One of {values}.");
    }
    let default = default_of(section, key, told, defaults);
    let flag = arg.map(flag).unwrap_or_default();
    row(&[&code(key.name), kind(key), &default, &flag, &meaning])
}

/// The default that the program has. A default in the help must be the same: only one that is no
/// value, such as where a secret is kept, is taken from there.
fn default_of(
    section: &Section,
    key: &Key,
    told: Option<String>,
    defaults: &BTreeMap<String, String>,
) -> String {
    let path = format!("{}.{}", section.name, key.name);
    let path = path.trim_start_matches('.');
    let real = defaults.get(path);
    if let (Some(real), Some(told)) = (real, &told) {
        let said = told.split([',', ';']).next().unwrap_or_default();
        assert_eq!(said, real, "the help of {path} states another default than the program has");
    }
    let is_literal = |told: &str| told.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    match (real, told) {
        (Some(real), _) => code(real),
        (None, Some(told)) => {
            assert!(
                !is_literal(&told),
                "{path}: its default, {told}, is not taken from the program"
            );
            told
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
        "LogFormat" | "Routing" | "RoomEndpoints" | "LendAs" | "MeshRoute" | "MeshShare"
        | "MeshRelayServe" => "word",
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

/// What each setting is when nobody sets it, as the program has it.
fn defaults() -> BTreeMap<String, String> {
    let data_dir = Some("/data".into());
    let server =
        Settings::new(ServeOptions { data_dir, ..ServeOptions::default() }, false).unwrap();
    let (mesh, jobs) = (&server.mesh, &server.dispatch);
    let workspace = server.workspace.as_ref().unwrap();
    let agents = &workspace.agents;
    let secs = |duration: Duration| duration.as_secs_f64().to_string();
    let mib = |bytes: u64| (bytes >> 20).to_string();
    let backend = BackendConfig::new("");
    let written = |value: &dyn std::fmt::Debug| kebab(&format!("{value:?}"));
    let all = [
        ("listen", server.listen.to_string()),
        ("max_queue_len", jobs.max_queue_len.to_string()),
        ("queue_timeout_secs", secs(jobs.queue_timeout)),
        ("busy_timeout_secs", secs(jobs.busy_timeout)),
        ("request_timeout_secs", secs(jobs.request_timeout)),
        ("idle_timeout_secs", secs(jobs.idle_timeout)),
        ("max_requeue_count", jobs.max_requeue_count.to_string()),
        ("max_queued_mib", mib(jobs.max_queued_bytes)),
        ("heartbeat_interval_secs", secs(server.heartbeat)),
        ("max_body_mib", mib(server.max_body as u64)),
        ("drain_timeout_secs", secs(server.drain)),
        ("log_format", value_name(&server.log_format)),
        ("log", server.log.clone()),
        ("sse_keepalive_secs", secs(server.keepalive)),
        ("routing", value_name(&server.routing)),
        ("ledger", server.ledger.to_string()),
        ("usage_retention_days", (server.usage_retention.as_secs() / 86_400).to_string()),
        ("require_key", server.require_key.to_string()),
        ("open_rooms", server.open_rooms.to_string()),
        ("room_idle_secs", secs(server.room_idle)),
        ("room_endpoints", value_name(&RoomEndpoints::default())),
        ("open", server.open.to_string()),
        ("mesh.enabled", mesh.enabled.to_string()),
        ("mesh.plain_passcode", mesh.plain_passcode.to_string()),
        ("mesh.require_sealed", mesh.require_sealed.to_string()),
        ("mesh.share", written(&mesh.share.with)),
        ("mesh.route", written(&mesh.route)),
        ("mesh.accept_unsigned", mesh.accept_unsigned.to_string()),
        ("mesh.share.with", written(&mesh.share.with)),
        ("mesh.share.pause_on_battery", mesh.share.pause_on_battery.to_string()),
        ("mesh.share.offer_models", mesh.share.models_offered.to_string()),
        ("workspace.enabled", server.workspace.is_some().to_string()),
        ("workspace.log_kib", (workspace.log_bytes >> 10).to_string()),
        ("workspace.history_mib", mib(workspace.history_bytes)),
        ("workspace.max_sessions", workspace.max_sessions.to_string()),
        ("workspace.max_processes", workspace.max_processes.unwrap_or_default().to_string()),
        ("workspace.max_clients", workspace.max_clients.to_string()),
        ("workspace.message_rate", workspace.message_rate.to_string()),
        ("workspace.keep_sessions", format!("{}s", workspace.keep_sessions.as_secs())),
        ("workspace.lag_timeout_secs", secs(workspace.lag_timeout)),
        ("workspace.stop_grace_secs", secs(workspace.stop_grace)),
        ("workspace.agents.use_gateway", agents.use_gateway.to_string()),
        ("workspace.agents.idle_secs", secs(agents.idle)),
        ("workspace.agents.silence_secs", secs(agents.silence)),
        ("workspace.agents.permission_secs", secs(agents.permission)),
        ("cluster.no_peer_discovery", (!server.cluster.discovery).to_string()),
        ("cluster.allow_plain_peers", server.cluster.allow_plain.to_string()),
        ("worker.protocol", value_name(&LendAs::default())),
        ("worker.max_concurrent", backend.max_concurrent.to_string()),
        ("worker.demo_pace", DemoConfig::default().tokens_per_second.to_string()),
        ("worker.backends.max_concurrent", backend.max_concurrent.to_string()),
        ("worker.engines.max_concurrent", MAX_CONCURRENT.to_string()),
        ("worker.engines.loads_at_once", LOADS_AT_ONCE.to_string()),
    ];
    assert_eq!(DRAIN, server.drain, "a worker's drain is documented with the server's");
    all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().unwrap().get_name().to_owned()
}

/// `PreferLocal` as it is written in a file.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for (place, letter) in name.char_indices() {
        if letter.is_uppercase() && place > 0 {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
