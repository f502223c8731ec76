//! `warren room join`: lends a model of this machine to a room. `warren room create --lend` does it, too.
//!
//! - [`Lender`]: who lends, and what
//! - `backend`: chooses the model server
//! - `specs`: this machine's hardware
//! - `lending`: from joining to leaving
//! - `tally`, `screen`: the display of the lender

mod backend;
mod lending;
mod screen;
mod specs;
mod tally;

use std::{path::PathBuf, sync::Arc};

use anyhow::{anyhow, bail};
use base::{Fingerprint, Secret};
use clap::{Args, ValueEnum};
use client::{
    ClientError,
    room::{MachineSpecs, RuntimeConfig, limits},
};
use daemon::{
    ConfigFile,
    options::{AliasOptions, ProcessOptions, RoomOptions, WorkerOptions},
};
use worker::{JoinRoom, LentAlias, Protocol, ServerTarget};

use self::{
    backend::{Backend, ChosenBackend},
    lending::Lending,
};
use super::{
    create::defaults,
    hosts::{Hosts, LocatedRoom},
    room_name::{Password, RoomName},
    tokens::{OwnParticipant, RoomTokens},
};
use crate::{
    commands::{note, say, table::plain, worker as lend},
    exit::usage,
};

/// Lend a model of this machine to a room, until you stop it
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room join swift-eagle-42 --server http://192.168.1.20:9178\n  \
    warren room join swift-eagle-42 --model qwen3-8b")]
pub(crate) struct Join {
    /// The room: one of its codes, or its URL
    #[arg(value_name = "CODE")]
    room: RoomName,
    #[command(flatten)]
    lender: Lender,
    /// Your id in the room [default: a random one, kept for the next time]
    #[arg(long, hide_short_help = true)]
    id: Option<String>,
    /// How your models answer by default, as JSON: `temperature`, `max_tokens`, `instructions` and so
    /// on; - is standard input
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    defaults: Option<PathBuf>,
    /// The protocol to speak with the server
    #[arg(long, value_enum, default_value_t = Speak::Auto, hide_short_help = true)]
    protocol: Speak,
    /// Stay listed, offline, when you stop
    #[arg(long, hide_short_help = true)]
    stay: bool,
    #[command(flatten)]
    password: Password,
    #[command(flatten)]
    hosts: Hosts,
}

/// Who lends, and what
#[derive(Args)]
pub(super) struct Lender {
    /// The name that others see [default: your name and this machine's]
    #[arg(long, hide_short_help = true)]
    nickname: Option<String>,
    #[command(flatten)]
    backend: Backend,
    /// Do not report this machine's hardware
    #[arg(long, hide_short_help = true)]
    no_specs: bool,
    #[command(flatten)]
    process: ProcessOptions,
}

/// How a lender takes part in a room.
#[derive(Default)]
pub(super) struct Part {
    /// Its id; `None`: the last one with the same backend, or a new one.
    id: Option<String>,
    /// How its models answer by default.
    defaults: RuntimeConfig,
    protocol: Protocol,
    /// Whether it stays listed, offline.
    stay: bool,
    /// The room's password.
    password: Option<Secret>,
    /// The fingerprint of its server's certificate, by an invitation.
    pin: Option<Fingerprint>,
}

impl Part {
    /// The usual part, in a room with this password.
    pub(super) fn with_password(password: Option<&Secret>) -> Self {
        let password = password.cloned();
        Self { protocol: Protocol::Auto, password, ..Self::default() }
    }
}

/// The protocol with the server of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Speak {
    /// What the server understands best
    Auto,
    /// The relay protocol, as Warrens do: any number of models
    Relay,
    /// A stock participant's tunnel: one model
    Tunnel,
}

impl Join {
    /// The part of a guest of a room, by an invitation.
    pub(crate) fn invited(
        room: RoomName,
        password: Option<Secret>,
        options: &WorkerOptions,
        process: ProcessOptions,
    ) -> Self {
        let (nickname, backend) = (options.name.clone(), Backend::of(options));
        Self {
            room,
            lender: Lender { nickname, backend, no_specs: false, process },
            id: None,
            defaults: None,
            protocol: Speak::Auto,
            stay: false,
            password: Password::of(password),
            hosts: Hosts::on(RoomOptions::default()),
        }
    }

    pub(crate) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        self.check().map_err(usage)?;
        let defaults = self.defaults.as_deref().map(defaults).transpose().map_err(usage)?;
        let found = self.hosts.find(file, &self.room).await?;
        self.check_password(&found)?;
        let part = Part {
            id: self.id,
            defaults: defaults.unwrap_or_default(),
            protocol: self.protocol.into(),
            stay: self.stay,
            password: self.password.get().cloned(),
            pin: self.room.pin,
        };
        let chosen = self.lender.choose().await?;
        self.lender.lend(chosen, &found, part, file).await?;
        Ok(say(&format!("left {}", plain(found.code())))?)
    }

    fn check(&self) -> anyhow::Result<()> {
        let id = self.id.as_deref().map_or(Ok(()), limits::id);
        id.map_err(|error| anyhow!("--id: it {error}"))?;
        self.lender.check()
    }

    fn check_password(&self, found: &LocatedRoom) -> anyhow::Result<()> {
        if !found.summary.room.password_protected || self.password.get().is_some() {
            return Ok(());
        }
        let words = "the room has a password: give it with --password, or as WARREN_ROOM_PASSWORD";
        bail!(ClientError::Refused { status: 401, words: words.to_owned() })
    }
}

impl Lender {
    /// Checks the flags before anything is asked.
    ///
    /// # Errors
    /// When the nickname is not allowed.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let nickname = self.nickname.as_deref().map_or(Ok(()), limits::nickname);
        nickname.map_err(|error| anyhow!("--nickname: it {error}"))
    }

    /// Whether a flag names the model server or the model.
    pub(super) fn names_something(&self) -> bool {
        self.nickname.is_some() || self.backend.is_named()
    }

    /// The model server to lend.
    pub(super) async fn choose(&self) -> anyhow::Result<ChosenBackend> {
        self.backend.choose().await
    }

    /// Lends the chosen backend to a room until a stop is asked for.
    pub(super) async fn lend(
        self,
        chosen: ChosenBackend,
        found: &LocatedRoom,
        part: Part,
        file: &ConfigFile,
    ) -> anyhow::Result<()> {
        let (tokens, who) = who(found, &chosen.key, part.id.as_deref());
        let specs =
            if self.no_specs { MachineSpecs::default() } else { specs::of_this_machine().await };
        let join = JoinRoom {
            specs,
            config: part.defaults,
            session_token: who.session_token.as_deref().map(Secret::from),
            stay: part.stay,
            ..JoinRoom::new(
                &found.summary.room.code,
                &who.id,
                self.nickname.unwrap_or_else(own_name),
            )
        };
        let target = ServerTarget::new(&found.warren.url(), part.password.clone());
        let lending = Lending {
            nickname: join.nickname.clone(),
            target: target.map_err(|error| usage(error.into()))?.pinned(part.pin).in_room(join),
            room: found.room(part.password.as_ref())?,
            code: found.code().to_owned(),
            lend: chosen.lend,
            aliases: aliases(file),
            protocol: part.protocol,
            tokens,
            who,
            process: self.process,
            stay: part.stay,
        };
        lending.run(file).await
    }
}

/// The names that stand for models in this machine's file.
fn aliases(file: &ConfigFile) -> Arc<[LentAlias]> {
    let aliases = file.serve.models.iter().flatten();
    let alias = |(name, alias): (&String, &AliasOptions)| LentAlias {
        name: name.clone(),
        targets: alias.targets.clone(),
    };
    aliases.map(alias).collect()
}

/// This machine's participant: the last one with this id or else this backend, or a new one.
fn who(
    found: &LocatedRoom,
    backend: &str,
    id: Option<&str>,
) -> (Option<RoomTokens>, OwnParticipant) {
    let tokens = RoomTokens::new();
    let server = found.warren.url();
    let known = tokens.as_ref().map_err(|error| anyhow!("{error:#}"));
    let known = known.and_then(|tokens| tokens.participants(&server, &found.summary));
    if let Err(error) = &known {
        note(&format!("warning: this machine will not be the same the next time: {error:#}"));
    }
    let is_it = |who: &OwnParticipant| match id {
        Some(id) => who.id == *id,
        None => who.backend == backend,
    };
    let before = known.unwrap_or_default().into_iter().find(is_it);
    let id = id.map_or_else(|| format!("p-{:016x}", rand::random::<u64>()), str::to_owned);
    let (id, session_token) = before.map_or((id, None), |who| (who.id, who.session_token));
    let (room, codes) = (found.summary.room.id.clone(), found.codes());
    let backend = backend.to_owned();
    (tokens.ok(), OwnParticipant { server, room, codes, backend, id, session_token })
}

impl From<Speak> for Protocol {
    fn from(speak: Speak) -> Self {
        match speak {
            Speak::Auto => Self::Auto,
            Speak::Relay => Self::Relay,
            Speak::Tunnel => Self::Tunnel,
        }
    }
}

/// The name of this machine.
pub(super) fn host_name() -> String {
    lend::name(&WorkerOptions::default())
}

/// The user's name and the machine's.
fn own_name() -> String {
    let user = std::env::var_os("USER").and_then(|user| user.into_string().ok());
    let host = host_name();
    let named = user.filter(|user| !user.is_empty() && user != "root");
    let name = named.map_or_else(|| host.clone(), |user| format!("{user}@{host}"));
    if limits::nickname(&name).is_ok() { name } else { "somebody".to_owned() }
}
