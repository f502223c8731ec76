//! Reads the configuration again while the server runs, at a SIGHUP or a request over HTTP.
//!
//! The whole configuration is read and checked first. Then the settings take effect that can change without ending a
//! stream, a link or a session. The answer names the other changes, for which the server has to be started again.
//!
//! - `changes`: which settings have changed, and which of them take effect at once
//! - `in_force`: the settings in force from then on

mod changes;
mod in_force;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use access::{Keys, LocalRules};
use anyhow::{Context, bail};
use api::{Api, Changeable};
use base::{Live, Secret};
use protocol::admin::config::{Reloaded, SettingChange};
use rooms::Rooms;
use scheduler::Scheduler;

use self::changes::Changes;
use crate::{
    data::{WORKER_SECRET, kept_token},
    parts::{self, LenderSecrets},
    running::ServerFile,
    settings::Settings,
    signals::{HangUp, HangUps, Stop},
    telemetry::log::ReadFilter,
    whereabouts::Here,
};

/// Reads a server's settings again. It may block.
pub type Source = Box<dyn Fn() -> anyhow::Result<Settings> + Send + Sync>;

/// The parts of a server that a reload changes.
pub(crate) struct Parts {
    pub(crate) api: Api,
    pub(crate) keys: Keys,
    pub(crate) rooms: Rooms,
    pub(crate) scheduler: Scheduler,
    pub(crate) here: Arc<Here>,
    pub(crate) lenders: LenderSecrets,
    /// How long usage is kept.
    pub(crate) retention: Live<Duration>,
    /// How long stored responses and conversations are kept.
    pub(crate) kept_responses: Live<Duration>,
    /// How long a client may read nothing.
    pub(crate) patience: Live<Duration>,
}

/// The settings in force, and how they are read again. Clones share them.
#[derive(Clone)]
pub(crate) struct Reloading(Arc<Inner>);

struct Inner {
    settings: Live<Settings>,
    parts: Parts,
    /// Set once, before the server runs.
    source: OnceLock<Source>,
    /// The mark of the certificate's files. Locked for a whole reload, so that there is one at a time.
    files: Mutex<Option<u64>>,
    marks: RandomState,
}

impl Reloading {
    /// The settings with which a server starts. A reload fails until a source is set.
    pub(crate) fn new(settings: Settings, parts: Parts) -> Self {
        let marks = RandomState::new();
        let files = Mutex::new(files_mark(&settings, &marks));
        let settings = Live::new(settings);
        Self(Arc::new(Inner { settings, parts, source: OnceLock::new(), files, marks }))
    }

    /// Sets how settings are read again. Called once.
    pub(crate) fn read_from(&self, source: Source) {
        let _set_before = self.0.source.set(source);
    }

    /// The settings in force.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.0.settings.get()
    }

    /// Reads the configuration again, and takes over what can change now.
    ///
    /// # Errors
    /// When it cannot be read, or is not valid; then nothing has changed. The error is logged, too.
    pub(crate) async fn reload(&self) -> anyhow::Result<Reloaded> {
        let own = self.clone();
        let reloaded = tokio::task::spawn_blocking(move || own.0.reload()).await;
        let reloaded = reloaded.context("the reload broke off").flatten();
        match &reloaded {
            Ok(reloaded) => log(reloaded),
            Err(error) => tracing::error!(problem = %format_args!("{error:#}"), "not reloaded"),
        }
        reloaded.context("the configuration stays as it was")
    }
}

/// Reloads at each SIGHUP. If the terminal at which the server was started is gone, stops the server instead.
pub(crate) async fn follow(mut hang_ups: HangUps, reloading: Reloading, stop: Stop) {
    loop {
        match hang_ups.next().await {
            HangUp::Reload => drop(reloading.reload().await),
            HangUp::TerminalGone => {
                tracing::info!("the terminal is gone");
                stop.ask();
            }
        }
    }
}

impl Inner {
    fn reload(&self) -> anyhow::Result<Reloaded> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(source) = self.source.get() else {
            bail!("this server was not started by a command that can read its configuration again");
        };
        let before = self.settings.get();
        let read = source()?;
        let worker = worker_secret(&before, &read)?;
        let filter = ReadFilter::new(&read.log)?;
        let held = in_force::held_back(&before, &read);
        let Changes { mut changed, needs_restart, configuration } =
            changes::between(&before.configuration, &read.configuration, &held);
        let file = read.configuration.json.file.clone();
        let now = in_force::settings(&before, &read, configuration);
        let mark = files_mark(&now, &self.marks);
        if mark != *files && !changed.iter().any(|change| change.name.starts_with("tls_")) {
            changed.extend(of_files(&now));
        }
        let notes = notes(&before, &now);
        // First of all, because only this can fail.
        filter.apply()?;
        set_shared(&before, &read);
        self.put_in_force(&before, &now, &worker);
        self.settings.set(now);
        *files = mark;
        Ok(Reloaded { file, changed, needs_restart, notes })
    }

    /// Gives each part its settings. This cannot fail.
    fn put_in_force(&self, before: &Settings, now: &Settings, worker: &Secret) {
        let parts = &self.parts;
        parts.keys.set_prices(Arc::clone(&now.prices));
        parts.api.change(Changeable {
            rules: parts::consumer_rules(now, parts.keys.clone()),
            aliases: now.aliases.clone(),
            limits: parts::limits(now),
            rooms: parts::room_permissions(now),
        });
        parts.rooms.change(parts::room_settings(now));
        parts.scheduler.configure(now.dispatch.clone());
        parts.patience.set(now.dispatch.idle_timeout);
        parts.retention.set(now.usage_retention);
        parts.kept_responses.set(now.kept_responses);
        parts.lenders.set(now, worker);
        parts.here.shows(now.fingerprint);
        if before.tls_certificate != now.tls_certificate {
            self.publish_certificate(now);
        }
    }

    /// Has commands of this machine trust the certificate at its new place.
    fn publish_certificate(&self, now: &Settings) {
        let Some(own) = ServerFile::of(&now.data_dir) else { return };
        let written = own.with_certificate(now.tls_certificate.as_deref()).write(&now.data_dir);
        if let Err(error) = written {
            tracing::warn!(%error, "commands of this machine cannot look up the certificate");
        }
    }
}

/// The secret that workers present from now on: the setting, or else the data directory's.
fn worker_secret(before: &Settings, read: &Settings) -> anyhow::Result<Secret> {
    match &read.worker_secret {
        Some(given) => Ok(given.clone()),
        None => kept_token(&before.data_dir, WORKER_SECRET)?.with_context(|| {
            format!(
                "--worker-secret is not set any more, and there is no {WORKER_SECRET} in the data \
                 directory: start the server again, and it makes one"
            )
        }),
    }
}

/// A mark of the content of the certificate's file and of its key's file; `None` without TLS. Files that cannot be
/// read are left out.
fn files_mark(settings: &Settings, marks: &RandomState) -> Option<u64> {
    let files = [settings.tls_certificate.as_ref()?, settings.tls_key.as_ref()?];
    let read: Vec<_> = files.iter().filter_map(|path| std::fs::read(path).ok()).collect();
    Some(marks.hash_one(read))
}

/// The change to report if a certificate was renewed in the same file.
fn of_files(now: &Settings) -> Option<SettingChange> {
    let path = now.tls_certificate.as_ref()?.display().to_string();
    let (before, after) = (path.clone().into(), path.into());
    Some(SettingChange { name: "tls_cert".to_owned(), before, after, secret: false })
}

/// Notes for the owner of the server, beside the list of changes.
fn notes(before: &Settings, now: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    if before.fingerprint != now.fingerprint {
        notes.push(
            "the certificate has another key: machines that joined by a code, and do not trust the \
             certificate's issuer, have to join again"
                .to_owned(),
        );
    }
    notes
}

fn log(reloaded: &Reloaded) {
    let names: Vec<&str> = reloaded.changed.iter().map(|change| change.name.as_str()).collect();
    let (changed, needs_restart) = (names.join(", "), reloaded.needs_restart.join(", "));
    tracing::info!(changed, needs_restart, "the configuration was reloaded");
    for note in &reloaded.notes {
        tracing::warn!("{note}");
    }
}

/// Sets the settings that the parts share by handles.
fn set_shared(before: &Settings, read: &Settings) {
    before.local.set(LocalRules::clone(&read.local.get()));
    if let (Some(ours), Some(new)) = (&before.tls, &read.tls) {
        ours.set(new.get());
    }
}
