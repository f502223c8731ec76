//! Which settings have changed, and which of them take effect at once.

use std::collections::BTreeMap;

use protocol::admin::config::{ConfigJson, SettingChange, SettingJson};

use crate::configuration::Configuration;

/// The names of the settings that take effect while a server runs; a name stands for all settings below it, too.
/// `server` is among them because only commands use it.
pub(super) const LIVE: &[&str] = &[
    "allow_host",
    "allow_origin",
    "busy_timeout_secs",
    "drain_timeout_secs",
    "idle_timeout_secs",
    "keep_responses_days",
    "log",
    "max_body_mib",
    "max_queue_len",
    "max_requeue_count",
    "mesh.route",
    "models",
    "node_token",
    "open",
    "open_rooms",
    "prices",
    "queue_timeout_secs",
    "request_timeout_secs",
    "require_key",
    "resume_answers",
    "room_endpoints",
    "room_idle_secs",
    "server",
    "sse_keepalive_secs",
    "store_responses",
    "tls_cert",
    "tls_key",
    "trusted_proxies",
    "usage_retention_days",
    "worker_secret",
];

/// The differences of two configurations.
pub(super) struct Changes {
    /// The changes that take effect now.
    pub(super) changed: Vec<SettingChange>,
    /// The names of changed settings that take effect at the next start.
    pub(super) needs_restart: Vec<String>,
    /// The configuration in force from now on.
    pub(super) configuration: Configuration,
}

/// Compares the configuration in force with the one that was read. `held`: settings that usually take effect at once,
/// but cannot this time.
pub(super) fn between(before: &Configuration, read: &Configuration, held: &[&str]) -> Changes {
    let is_live = |name: &str| is_among(name, LIVE) && !is_among(name, held);
    let changes = differences(before, read);
    let (live, others): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|change| is_live(&change.name));
    let needs_restart = others.into_iter().map(|change| change.name).collect();
    Changes { changed: live, needs_restart, configuration: merged(before, read, is_live) }
}

/// Whether a setting is one of these, or is below one of them.
fn is_among(name: &str, names: &[&str]) -> bool {
    names.iter().any(|of| {
        name.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// All settings whose values differ: first those that were read, in their order, then those that were read no more.
fn differences(before: &Configuration, read: &Configuration) -> Vec<SettingChange> {
    let (old, new) = (by_name(before), by_name(read));
    let gone = before.json.settings.iter().filter(|it| !new.contains_key(it.name.as_str()));
    let names = read.json.settings.iter().chain(gone).map(|setting| setting.name.as_str());
    let change = |name: &str| {
        let value = |of: &BTreeMap<&str, &SettingJson>| {
            of.get(name).map(|setting| (setting.value.clone(), setting.secret)).unwrap_or_default()
        };
        let ((before_value, was_secret), (value, is_secret)) = (value(&old), value(&new));
        let is_same = (&before_value, was_secret) == (&value, is_secret)
            && before.marks.get(name) == read.marks.get(name);
        (!is_same).then(|| SettingChange {
            name: name.to_owned(),
            before: before_value,
            after: value,
            secret: was_secret || is_secret,
        })
    };
    names.filter_map(change).collect()
}

fn by_name(of: &Configuration) -> BTreeMap<&str, &SettingJson> {
    of.json.settings.iter().map(|setting| (setting.name.as_str(), setting)).collect()
}

/// The read values of the settings that take effect at once, and the former values of the others.
fn merged(
    before: &Configuration,
    read: &Configuration,
    is_live: impl Fn(&str) -> bool,
) -> Configuration {
    let order = read.json.settings.iter().map(|setting| setting.name.as_str());
    let order: BTreeMap<&str, usize> =
        order.enumerate().map(|(place, name)| (name, place)).collect();
    let new = read.json.settings.iter().filter(|setting| is_live(&setting.name));
    let old = before.json.settings.iter().filter(|setting| !is_live(&setting.name));
    let mut settings: Vec<SettingJson> = new.chain(old).cloned().collect();
    settings.sort_by_key(|it| order.get(it.name.as_str()).copied().unwrap_or(usize::MAX));
    let new = read.marks.iter().filter(|(name, _)| is_live(name));
    let old = before.marks.iter().filter(|(name, _)| !is_live(name));
    let marks = new.chain(old).map(|(name, mark)| (name.clone(), *mark)).collect();
    Configuration { json: ConfigJson { file: read.json.file.clone(), settings }, marks }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};
    use protocol::admin::config::SettingSource;
    use serde_json::json;

    use super::*;
    use crate::{ConfigFile, ServeOptions, Settings, configuration::Origins};

    /// The configuration of a server with this file.
    fn read(text: &str) -> Configuration {
        let file = ConfigFile::parse(text).unwrap();
        let command = ServeOptions::augment_args(Command::new("serve"));
        let origins = Origins::new(&file, &command.get_matches_from(["serve"]));
        let options = ServeOptions { data_dir: Some("/data".into()), ..file.serve };
        let defaults = Settings::new(options.clone(), false).unwrap().values();
        origins.configuration(origins.settings("", &options, &defaults))
    }

    fn names(changes: &Changes) -> (Vec<&str>, Vec<&str>) {
        let changed = changes.changed.iter().map(|change| change.name.as_str());
        (changed.collect(), changes.needs_restart.iter().map(String::as_str).collect())
    }

    #[test]
    fn every_name_is_a_setting() {
        let all = read("[models.m]\ntargets = ['a']\n[prices.m]\ninput = 1\noutput = 1\n");
        for name in LIVE {
            let is_there = all.json.settings.iter().any(|it| is_among(&it.name, &[name]));
            assert!(is_there, "{name}");
        }
        assert!(LIVE.is_sorted());
    }

    #[test]
    fn what_counts_at_once_is_taken_over_and_the_rest_is_named() {
        let before = read("log = 'info'\nrouting = 'least-loaded'\n[models.a]\ntargets = ['x']");
        let new = read(
            "log = 'debug'\nrouting = 'prefix-affinity'\n[models.b]\ntargets = ['y']\n[mesh]\nroute = 'mesh'",
        );
        let changes = between(&before, &new, &[]);
        let (changed, needs_restart) = names(&changes);
        assert_eq!(
            changed,
            ["log", "mesh.route", "models.b.targets", "models.a.targets"],
            "in the order of the settings; what is gone comes last"
        );
        assert_eq!(needs_restart, ["routing"]);
        let log = &changes.changed[0];
        assert_eq!((&log.before, &log.after), (&json!("info"), &json!("debug")));
        let in_force = by_name(&changes.configuration);
        assert_eq!(in_force["routing"].value, json!("least-loaded"));
        assert_eq!(in_force["routing"].source, SettingSource::File);
        assert_eq!(in_force["log"].value, json!("debug"));
        assert!(!in_force.contains_key("models.a.targets"));
        let later = between(&changes.configuration, &new, &[]);
        assert_eq!(names(&later), (Vec::new(), vec!["routing"]), "it is told until the next start");
    }

    #[test]
    fn secrets_are_compared_and_not_told() {
        let before = read("worker_secret = 'first-secret'\nadmin_token = 'a-token'");
        let new = read("worker_secret = 'second-secret'\nadmin_token = 'a-token'");
        let changes = between(&before, &new, &[]);
        assert_eq!(names(&changes), (vec!["worker_secret"], Vec::new()));
        assert!(changes.changed[0].secret && changes.changed[0].after.is_null());
        let other = read("admin_token = 'b-token'");
        assert_eq!(
            names(&between(&new, &other, &[])),
            (vec!["worker_secret"], vec!["admin_token"])
        );
    }

    #[test]
    fn what_is_held_back_waits_for_the_next_start() {
        let (before, new) = (read(""), read("[prices.m]\ninput = 1\noutput = 2"));
        let changes = between(&before, &new, &["prices"]);
        assert_eq!(names(&changes), (Vec::new(), vec!["prices.m.input", "prices.m.output"]));
        assert!(
            changes.configuration.json.settings.iter().all(|it| !it.name.starts_with("prices"))
        );
    }
}
