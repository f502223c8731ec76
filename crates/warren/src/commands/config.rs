//! `warren config`: the settings of a running server, and where each is from; `warren config reload` has the
//! server read them again.

use clap::{Args, Subcommand, ValueEnum};
use client::admin::config::{ConfigJson, Reloaded, SettingChange, SettingJson, SettingSource};
use daemon::{ConfigFile, configuration::Defaults, options::LendAs};
use serde_json::{Value, json};
use worker::{BackendConfig, DemoConfig};

use super::{
    model_engines::{LOADS_AT_ONCE, MAX_CONCURRENT},
    run_client, say, say_json,
    table::{plain, table},
    target::RunningServer,
};

/// Show the settings of a running server, and where each is from
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Secrets are not shown. What is changed in the file counts from `warren config reload` on, or from the \
next start.\n\nExamples:\n  \
warren config\n  warren config --changed\n  warren config reload"
)]
pub(crate) struct Config {
    #[command(subcommand)]
    command: Option<ConfigCommand>,
    /// Only what somebody has set
    #[arg(long)]
    changed: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Have a running server read its configuration again, without an end of any stream or link
    #[command(
        after_help = "A configuration that is not right changes nothing. Settings that cannot change while the server \
runs are named. SIGHUP does the same: `systemctl reload warren`.\n\nExamples:\n  \
warren config reload\n  warren config reload --json"
    )]
    Reload(Reload),
}

#[derive(Args)]
struct Reload {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Reload {
    fn run(&self, file: &ConfigFile) -> anyhow::Result<()> {
        let warren = self.server.warren(&file.serve)?;
        let reloaded = run_client(async { Ok(warren.reload().await?) })?;
        match self.json {
            true => say_json(&reloaded)?,
            false => say(&changes(&reloaded))?,
        }
        Ok(())
    }
}

impl Config {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        if let Some(ConfigCommand::Reload(reload)) = self.command {
            return reload.run(file);
        }
        let warren = self.server.warren(&file.serve)?;
        let mut config = run_client(async { Ok(warren.config().await?) })?;
        if self.changed {
            config.settings.retain(|setting| setting.source != SettingSource::Default);
        }
        match self.json {
            true => say_json(&config)?,
            false => say(&readable(&config))?,
        }
        Ok(())
    }
}

/// The defaults of a worker's settings.
pub(crate) fn worker_defaults() -> Defaults {
    let backend = BackendConfig::new("");
    let protocol = LendAs::default().to_possible_value();
    let all = [
        ("worker.protocol", json!(protocol.map(|value| value.get_name().to_owned()))),
        ("worker.max_concurrent", json!(backend.max_concurrent)),
        ("worker.demo_pace", json!(DemoConfig::default().tokens_per_second)),
        ("worker.backends.max_concurrent", json!(backend.max_concurrent)),
        ("worker.engines.max_concurrent", json!(MAX_CONCURRENT)),
        ("worker.engines.loads_at_once", json!(LOADS_AT_ONCE)),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn readable(config: &ConfigJson) -> String {
    let file = match &config.file {
        Some(path) => format!("Configuration file: {}", plain(path)),
        None => "No configuration file.".to_owned(),
    };
    if config.settings.is_empty() {
        return format!("{file}\nNothing is set.");
    }
    let rows: Vec<Vec<String>> = config.settings.iter().map(cells).collect();
    format!("{file}\n\n{}", table(&["setting", "value", "from"], &rows, 0))
}

fn cells(setting: &SettingJson) -> Vec<String> {
    let value = shown(&setting.value, setting.secret);
    vec![plain(&setting.name), value, setting.source.as_str().to_owned()]
}

fn shown(value: &Value, is_secret: bool) -> String {
    match value {
        _ if is_secret => "(secret)".to_owned(),
        Value::Null => "-".to_owned(),
        Value::String(text) => plain(text),
        other => plain(&other.to_string()),
    }
}

/// The changes by a reload, for people.
fn changes(reloaded: &Reloaded) -> String {
    let file = reloaded.file.as_deref().map_or("no configuration file".to_owned(), plain);
    let mut lines = match reloaded.changed.as_slice() {
        [] => vec![format!("Read again: {file}. Nothing has changed that counts at once.")],
        changed => {
            let heading = std::iter::once(format!("Read again: {file}. From now on:"));
            heading.chain(changed.iter().map(change)).collect()
        }
    };
    if !reloaded.needs_restart.is_empty() {
        lines.push(format!("Needs a restart: {}", plain(&reloaded.needs_restart.join(", "))));
    }
    lines.extend(reloaded.notes.iter().map(|note| format!("Note: {}", plain(note))));
    lines.join("\n")
}

fn change(change: &SettingChange) -> String {
    let SettingChange { name, before, after, secret } = change;
    let name = plain(name);
    match () {
        () if *secret => format!("  {name}: another one"),
        () if before == after => format!("  {name}: the file has changed"),
        () => format!("  {name}: {} → {}", shown(before, false), shown(after, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_is_told_with_what_it_left() {
        let change = |name: &str, before, after, secret| SettingChange {
            name: name.to_owned(),
            before,
            after,
            secret,
        };
        let reloaded = Reloaded {
            file: Some("/w.toml".to_owned()),
            changed: vec![
                change("log", json!("info"), json!("debug"), false),
                change("models.a.targets", Value::Null, json!(["m"]), false),
                change("worker_secret", Value::Null, Value::Null, true),
                change("tls_cert", json!("c.pem"), json!("c.pem"), false),
            ],
            needs_restart: vec!["listen".to_owned(), "data_dir".to_owned()],
            notes: vec!["another key".to_owned()],
        };
        assert_eq!(
            changes(&reloaded),
            "Read again: /w.toml. From now on:\n  log: info → debug\n  models.a.targets: - → [\"m\"]\n  \
             worker_secret: another one\n  tls_cert: the file has changed\n\
             Needs a restart: listen, data_dir\nNote: another key"
        );
        let nothing = "Read again: no configuration file. Nothing has changed that counts at once.";
        assert_eq!(changes(&Reloaded::default()), nothing);
    }

    #[test]
    fn settings_are_listed_with_their_origin_and_without_secrets() {
        let setting = |name: &str, value, secret| SettingJson {
            name: name.to_owned(),
            value,
            source: SettingSource::File,
            secret,
        };
        let settings = vec![
            setting("listen", json!("127.0.0.1:1"), false),
            setting("tls_cert", Value::Null, false),
            setting("admin_token", Value::Null, true),
            setting("allow_host", json!(["a", "b"]), false),
        ];
        let table = readable(&ConfigJson { file: Some("/w.toml".to_owned()), settings });
        let rows: Vec<Vec<&str>> =
            table.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["listen", "127.0.0.1:1", "file"]);
        assert_eq!(rows[1], ["tls_cert", "-", "file"]);
        assert_eq!(rows[2], ["admin_token", "(secret)", "file"]);
        assert_eq!(rows[3], ["allow_host", "[\"a\",\"b\"]", "file"]);
        let nothing = readable(&ConfigJson::default());
        assert_eq!(nothing, "No configuration file.\nNothing is set.");
    }
}
