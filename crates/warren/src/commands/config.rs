//! `warren config`: the settings of a running server, and where each is from.

use clap::{Args, ValueEnum};
use client::admin::config::{ConfigJson, SettingJson, SettingSource};
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
    after_help = "Secrets are not shown. What is changed in the file counts from the next start on.\n\nExamples:\n  \
warren config\n  warren config --changed\n  warren config --json"
)]
pub(crate) struct Config {
    /// Only what somebody has set
    #[arg(long)]
    changed: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Config {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
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

/// The values of a worker's settings that nobody has set.
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
    let value = match &setting.value {
        _ if setting.secret => "(secret)".to_owned(),
        Value::Null => "-".to_owned(),
        Value::String(text) => plain(text),
        other => plain(&other.to_string()),
    };
    vec![plain(&setting.name), value, setting.source.as_str().to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let told = readable(&ConfigJson { file: Some("/w.toml".to_owned()), settings });
        let rows: Vec<Vec<&str>> =
            told.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["listen", "127.0.0.1:1", "file"]);
        assert_eq!(rows[1], ["tls_cert", "-", "file"]);
        assert_eq!(rows[2], ["admin_token", "(secret)", "file"]);
        assert_eq!(rows[3], ["allow_host", "[\"a\",\"b\"]", "file"]);
        let nothing = readable(&ConfigJson::default());
        assert_eq!(nothing, "No configuration file.\nNothing is set.");
    }
}
