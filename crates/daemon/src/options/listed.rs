//! Settings as a list: each with its dotted name and its value as JSON; secrets have no value.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, RandomState},
    net::SocketAddr,
    path::PathBuf,
    sync::LazyLock,
    time::Duration,
};

use access::Network;
use backend::Continues;
use base::{Currency, Money, Secret, redact_url};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::{
    BackendOptions, EngineCommand, EngineOptions, LendAs, LogFormat, MeshRelayServe, MeshRoute,
    MeshShare, ResumeAnswers, RoomEndpoints, Routing, Seconds, Span,
    engines::{Bytes, Paths, TogetherRule},
};

/// A setting with the value that was given, if one was.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedSetting {
    /// Its name, with those of its sections before it, such as `mesh.route`.
    pub name: String,
    /// Its value; null for a secret; `None`: no value was given.
    pub value: Option<Value>,
    /// Whether it is a secret that was given.
    pub secret: bool,
    /// For a secret: a mark that tells its value from others. It has a meaning in this process only.
    pub mark: Option<u64>,
}

/// A type of settings, or of sections of settings.
pub trait Setting {
    /// Adds the settings under this name, with the values that were given.
    fn list(&self, name: &str, into: &mut Vec<ListedSetting>);

    /// Adds the names of the settings under this name that were not given.
    fn list_absent(name: &str, into: &mut Vec<ListedSetting>) {
        into.push(ListedSetting { name: name.to_owned(), value: None, secret: false, mark: None });
    }
}

/// All settings of a section. `section` is empty for the top of the file.
pub fn list(section: &str, options: &impl Setting) -> Vec<ListedSetting> {
    let mut all = Vec::new();
    options.list(section, &mut all);
    all.iter_mut().filter(|listed| may_hold_secrets(&listed.name)).for_each(|listed| {
        if let Some(value) = &listed.value {
            *listed = secret(&listed.name, &value.to_string());
        }
    });
    all
}

/// The names of all settings in a file, as [`list`] has them, but with underscores for all hyphens.
pub fn names(file: &toml::Table) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    add_names(&toml::Value::Table(file.clone()), "", &mut names);
    names
}

/// The full name of a setting or table in a section. `name` is quoted if it is no bare key of TOML.
pub fn below(section: &str, name: &str) -> String {
    // The field `limits` is the table `share` of the file. The field `share` is the word of the command line.
    let name = if (section, name) == ("mesh", "limits") { "share" } else { name };
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_bare = !name.is_empty() && name.bytes().all(is_bare);
    let name = if is_bare { name.to_owned() } else { json!(name).to_string() };
    if section.is_empty() { name } else { format!("{section}.{name}") }
}

/// A duration as a number of seconds. A whole number has no fraction.
pub fn secs(duration: Duration) -> Value {
    match duration.subsec_nanos() {
        0 => json!(duration.as_secs()),
        _ => json!(duration.as_secs_f64()),
    }
}

/// A value by its name on the command line.
pub fn word(value: &impl ValueEnum) -> Value {
    value.to_possible_value().map_or(Value::Null, |value| json!(value.get_name()))
}

/// Whether a setting may hold secrets of other programs: it is a command line, or the environment of a program.
fn may_hold_secrets(name: &str) -> bool {
    let below = |section| name.strip_prefix(section);
    let is_private = |rest: &str| rest.split('.').any(|part| matches!(part, "env" | "flags"));
    below("workspace.agents.acp.").is_some() || below("worker.engines.").is_some_and(is_private)
}

fn secret(name: &str, text: &str) -> ListedSetting {
    /// Hashes with random numbers of this process, so a mark says nothing to anybody else.
    static MARKS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mark = Some(MARKS.hash_one(text));
    ListedSetting { name: name.to_owned(), value: Some(Value::Null), secret: true, mark }
}

fn add_names(value: &toml::Value, name: &str, into: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                add_names(value, &below(name, key), into);
            }
        }
        toml::Value::Array(all) if all.iter().any(toml::Value::is_table) => {
            for (place, value) in all.iter().enumerate() {
                add_names(value, &below(name, &place.to_string()), into);
            }
        }
        _ => drop(into.insert(name.replace('-', "_"))),
    }
}

/// Implements [`Setting`] for types whose value is one JSON value.
macro_rules! values {
    ($($kind:ty: |$value:ident| $json:expr,)+) => {$(
        impl Setting for $kind {
            fn list(&self, name: &str, into: &mut Vec<ListedSetting>) {
                let $value = self;
                let (name, value) = (name.to_owned(), Some($json));
                into.push(ListedSetting { name, value, secret: false, mark: None });
            }
        }
    )+};
}

values! {
    bool: |it| json!(it),
    u32: |it| json!(it),
    u64: |it| json!(it),
    usize: |it| json!(it),
    f64: |it| json!(it),
    String: |it| json!(redact_url(it)),
    PathBuf: |it| json!(it.display().to_string()),
    SocketAddr: |it| json!(it),
    Value: |it| it.clone(),
    Money: |it| json!(it),
    Currency: |it| json!(it),
    Seconds: |it| secs(it.0),
    Span: |it| json!(format!("{}s", it.0.as_secs_f64())),
    Bytes: |it| json!(format!("{}MiB", it.0 as f64 / f64::from(1 << 20))),
    LogFormat: |it| word(it),
    LendAs: |it| word(it),
    Routing: |it| word(it),
    RoomEndpoints: |it| word(it),
    ResumeAnswers: |it| word(it),
    MeshRoute: |it| word(it),
    MeshShare: |it| word(it),
    MeshRelayServe: |it| word(it),
    TogetherRule: |it| json!(it.as_str()),
    Continues: |it| json!(it),
    Vec<String>: |it| it.iter().map(|text| redact_url(text)).collect(),
    Vec<PathBuf>: |it| it.iter().map(|path| path.display().to_string()).collect(),
    Vec<Network>: |it| it.iter().map(ToString::to_string).collect(),
    Paths: |it| it.0.iter().map(|path| path.display().to_string()).collect(),
}

impl Setting for Secret {
    fn list(&self, name: &str, into: &mut Vec<ListedSetting>) {
        into.push(secret(name, self.expose()));
    }
}

impl Setting for EngineCommand {
    fn list(&self, name: &str, into: &mut Vec<ListedSetting>) {
        match self {
            Self::Program(program) => program.list(name, into),
            // Its arguments may hold keys.
            Self::Template(template) => into.push(secret(name, &format!("{template:?}"))),
        }
    }
}

impl<T: Setting> Setting for Option<T> {
    fn list(&self, name: &str, into: &mut Vec<ListedSetting>) {
        match self {
            Some(given) => given.list(name, into),
            None => T::list_absent(name, into),
        }
    }

    fn list_absent(name: &str, into: &mut Vec<ListedSetting>) {
        T::list_absent(name, into);
    }
}

/// Tables whose names people choose.
impl<T: Setting> Setting for BTreeMap<String, T> {
    fn list(&self, name: &str, into: &mut Vec<ListedSetting>) {
        self.iter().for_each(|(key, value)| value.list(&below(name, key), into));
    }

    fn list_absent(_: &str, _: &mut Vec<ListedSetting>) {}
}

/// Implements [`Setting`] for lists of tables.
macro_rules! tables {
    ($($kind:ty),+) => {$(
        impl Setting for Vec<$kind> {
            fn list(&self, name: &str, into: &mut Vec<ListedSetting>) {
                let numbered = self.iter().enumerate();
                numbered.for_each(|(place, table)| table.list(&below(name, &place.to_string()), into));
            }

            fn list_absent(_: &str, _: &mut Vec<ListedSetting>) {}
        }
    )+};
}

tables!(BackendOptions, EngineOptions);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ConfigFile;

    /// A server's and a worker's settings in a file, as a list.
    fn listed(text: &str) -> Vec<ListedSetting> {
        let file = ConfigFile::parse(text).unwrap();
        let mut all = list("", &file.serve);
        all.extend(list("worker", &file.worker));
        all
    }

    fn value(all: &[ListedSetting], name: &str) -> Option<Value> {
        all.iter().find(|listed| listed.name == name).and_then(|listed| listed.value.clone())
    }

    #[test]
    fn values_stand_under_their_names_as_a_file_has_them() {
        let all = listed(
            "listen = '127.0.0.1:1'\nqueue-timeout-secs = 0.5\nbusy_timeout_secs = 9\n\
             trusted_proxies = ['10.0.0.0/8', '::1']\n[models.'a.b']\ntargets = ['m']\n\
             defaults = { temperature = 0.5 }\n[mesh]\nroute = 'local-only'\nshare = 'peers'\n\
             [workspace]\nkeep_sessions = '2m'\n[[worker.engines]]\nmemory = '1.5GiB'\n\
             [worker.engines.groups]\nbig = 'alone'",
        );
        for (name, expected) in [
            ("listen", json!("127.0.0.1:1")),
            ("queue_timeout_secs", json!(0.5)),
            ("busy_timeout_secs", json!(9)),
            ("trusted_proxies", json!(["10.0.0.0/8", "::1"])),
            ("models.\"a.b\".targets", json!(["m"])),
            ("models.\"a.b\".defaults.temperature", json!(0.5)),
            ("mesh.route", json!("local-only")),
            ("mesh.share.with", json!("peers")),
            ("workspace.keep_sessions", json!("120s")),
            ("worker.engines.0.memory", json!("1536MiB")),
            ("worker.engines.0.groups.big", json!("alone")),
        ] {
            assert_eq!(value(&all, name), Some(expected), "{name}");
        }
        assert_eq!(value(&all, "routing"), None);
        assert!(all.iter().any(|listed| listed.name == "workspace.agents.idle_secs"));
    }

    #[test]
    fn nothing_that_may_be_a_secret_is_listed() {
        let all = listed(
            "admin_token = 'hush'\n[mesh]\npasscode = 'hush'\nrelay = ['wss://a:hush@r.lan']\n\
             [workspace.agents.acp]\nown = ['own', '--key', 'hush']\n[cluster]\ntoken = 'hush'\n\
             [worker]\nbackend = ['http://hush@b.lan/?token=hush']\n\
             [[worker.backends]]\nurl = 'http://u:hush@b'\napi_key = 'hush'\n\
             [[worker.engines]]\ncommand = ['run', '{model}', '{port}', '--key=hush']\n\
             flags = ['--api-key', 'hush']\nenv = { HF_TOKEN = 'hush' }\n\
             [worker.engines.model.a]\nflags = ['hush']",
        );
        let text = format!("{all:?}");
        assert!(!text.contains("hush"), "{text}");
        let secrets = all.iter().filter(|listed| listed.secret);
        let secrets: Vec<&str> = secrets.map(|listed| listed.name.as_str()).collect();
        assert_eq!(
            secrets,
            [
                "admin_token",
                "mesh.passcode",
                "workspace.agents.acp.own",
                "cluster.token",
                "worker.backends.0.api_key",
                "worker.engines.0.command",
                "worker.engines.0.flags",
                "worker.engines.0.env.HF_TOKEN",
                "worker.engines.0.model.a.flags",
            ]
        );
    }

    #[test]
    fn the_names_of_a_file_are_those_of_the_list() {
        let text = "max-queue-len = 1\n[models.\"a.b\"]\ntargets = ['m']\n[mesh]\nplain-passcode = true\n\
                    [[worker.backends]]\nurl = 'http://b'";
        let names = ConfigFile::parse(text).unwrap().names;
        let listed = listed(text);
        assert_eq!(names.len(), 4, "{names:?}");
        for name in [
            "max_queue_len",
            "models.\"a.b\".targets",
            "mesh.plain_passcode",
            "worker.backends.0.url",
        ] {
            assert!(names.contains(name), "{name}: {names:?}");
            assert!(listed.iter().any(|listed| listed.name == name), "{name}");
        }
    }
}
