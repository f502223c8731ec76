//! The configuration file. A fault is reported with its line, but without the line's text, which may be a secret.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow, bail};
use serde::de::{DeserializeOwned, IntoDeserializer};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{RoomOptions, ServeOptions, WorkerOptions, listed};
use crate::system::{base_directory, machine_configuration};

/// A configuration file: the settings of `warren serve` with `[mesh]`, `[workspace]` and
/// `[cluster]`, `[worker]` and `[room]`.
#[derive(Debug, Clone, Default)]
pub struct ConfigFile {
    /// Where it was found; `None` when there is none.
    pub path: Option<PathBuf>,
    /// The settings of the server.
    pub serve: ServeOptions,
    /// The settings of the worker.
    pub worker: WorkerOptions,
    /// The settings of `warren room`.
    pub room: RoomOptions,
    /// The names of all settings that the file has, as [`listed::names`] spells them.
    pub names: BTreeSet<String>,
    /// The lines, from 1, of the settings at the file's top and in its sections.
    pub lines: BTreeMap<String, usize>,
}

impl ConfigFile {
    /// Reads the given file, or else the first of these that exists: `./warren.toml`,
    /// `$XDG_CONFIG_HOME/warren/warren.toml` and `/etc/warren/warren.toml`; on Windows the latter two are in
    /// `%APPDATA%` and `%PROGRAMDATA%`. Without any of them, everything is empty.
    ///
    /// # Errors
    /// When the given file is missing, or a file is no TOML or holds an unknown setting.
    pub fn find(given: Option<&Path>) -> anyhow::Result<Self> {
        match given {
            Some(path) => Self::read(path),
            None => match usual_places().into_iter().find(|path| path.is_file()) {
                Some(path) => Self::read(&path),
                None => Ok(Self::default()),
            },
        }
    }

    /// Reads the same file again. If there was none, looks for one as [`ConfigFile::find`] does.
    ///
    /// # Errors
    /// As [`ConfigFile::find`]; and when the file no longer exists.
    pub fn read_again(&self) -> anyhow::Result<Self> {
        Self::find(self.path.as_deref())
    }

    /// Adds the file and the line of a setting to an error that names the setting by its flag, such as
    /// `--idle-timeout-secs`.
    #[must_use]
    pub fn locate(&self, error: anyhow::Error) -> anyhow::Error {
        let Some(path) = &self.path else { return error };
        let text = format!("{error:#}");
        let of_flag = |rest: &str| {
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
            self.lines.get(&rest[..end].replace('-', "_"))
        };
        match text.split("--").skip(1).find_map(of_flag) {
            Some(line) => error.context(format!("{}, line {line}", path.display())),
            None => error,
        }
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the configuration file {shown} cannot be read"))?;
        let file = Self::parse(&text)
            .with_context(|| format!("the configuration file {shown} is not right"))?;
        Ok(Self { path: Some(path.to_owned()), ..file })
    }

    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let source = Source(text);
        let names = listed::names(&text.parse().map_err(|error| source.located(&error))?);
        let read = DeTable::parse(text).map_err(|error| source.located(&error))?;
        let mut table = spelled_with_underscores(read.into_inner());
        let lines = source.lines(&table);
        let worker = source.section(&mut table, "worker")?;
        let room = source.section(&mut table, "room")?;
        let mesh = source.section(&mut table, "mesh")?;
        let workspace = source.section(&mut table, "workspace")?;
        let cluster = source.section(&mut table, "cluster")?;
        let is_part = |name: &str| matches!(name, "models" | "prices");
        let mut tables = table.iter().filter(|(_, value)| value.get_ref().is_table());
        if let Some((name, _)) = tables.find(|(name, _)| !is_part(name.get_ref())) {
            let line = source.line(name.span().start);
            bail!("line {line}: [{name}] is no part of the configuration");
        }
        let rest: ServeOptions =
            source.value(Spanned::new(0..text.len(), DeValue::Table(table)))?;
        let serve = ServeOptions { mesh, workspace, cluster, ..rest };
        Ok(Self { path: None, serve, worker, room, names, lines })
    }
}

impl fmt::Display for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => path.display().fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// The text of a file.
struct Source<'a>(&'a str);

impl Source<'_> {
    /// The line of a byte, from 1.
    fn line(&self, at: usize) -> usize {
        1 + self.0.bytes().take(at).filter(|&byte| byte == b'\n').count()
    }

    fn located(&self, error: &toml::de::Error) -> anyhow::Error {
        let mut without_text = error.clone();
        without_text.set_input(None);
        let message =
            without_text.to_string().trim_end().replace("\nin `", " in `").replace('\n', "; ");
        match error.span() {
            Some(span) => anyhow!("line {}: {message}", self.line(span.start)),
            None => anyhow!("{message}"),
        }
    }

    /// The lines of settings, by their names. A setting of a section is listed twice: with the section's name before
    /// its own, and without.
    fn lines(&self, table: &DeTable<'_>) -> BTreeMap<String, usize> {
        let mut lines = BTreeMap::new();
        for (name, value) in table {
            lines.insert(name.get_ref().to_string(), self.line(name.span().start));
            let below = value.get_ref().as_table().into_iter().flatten();
            for (key, _) in below {
                let (line, key) = (self.line(key.span().start), key.get_ref().replace('-', "_"));
                lines.insert(format!("{name}_{key}"), line);
                lines.entry(key).or_insert(line);
            }
        }
        lines
    }

    /// Takes a section out of a file. A missing section is empty.
    fn section<T: DeserializeOwned + Default>(
        &self,
        table: &mut DeTable<'_>,
        name: &str,
    ) -> anyhow::Result<T> {
        let Some(section) = table.remove(name) else { return Ok(T::default()) };
        let span = section.span();
        let section = match section.into_inner() {
            DeValue::Table(section) => DeValue::Table(spelled_with_underscores(section)),
            other => other,
        };
        self.value(Spanned::new(span, section)).with_context(|| format!("in [{name}]"))
    }

    fn value<T: DeserializeOwned>(&self, value: Spanned<DeValue<'_>>) -> anyhow::Result<T> {
        T::deserialize(value.into_deserializer()).map_err(|error| self.located(&error))
    }
}

/// Replaces hyphens in names: settings may be spelled like their flags, `max-queue-len` for `max_queue_len`.
fn spelled_with_underscores(table: DeTable<'_>) -> DeTable<'_> {
    let spelled = |(key, value): (Spanned<_>, _)| {
        let name = AsRef::<str>::as_ref(key.get_ref()).replace('-', "_");
        (Spanned::new(key.span(), name.into()), value)
    };
    table.into_iter().map(spelled).collect()
}

fn usual_places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("warren.toml")];
    places.extend(home_directory("XDG_CONFIG_HOME", ".config").map(|dir| dir.join("warren.toml")));
    places.extend(machine_configuration());
    places
}

/// `$variable/warren` or, if the variable is not set, `$HOME/fallback/warren`. On Windows the place of the latter is
/// taken by the user's settings (`%APPDATA%`) for `XDG_CONFIG_HOME`, and by the user's data on this machine
/// (`%LOCALAPPDATA%`) for all other variables.
pub fn home_directory(variable: &str, fallback: &str) -> Option<PathBuf> {
    base_directory(variable, fallback).map(|base| base.join("warren"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_without_its_text() {
        for (text, line) in [
            ("log = 'info'\nadmin_token = 'hush", 2),
            ("\n\nmax-queue-len = 'hush'\n", 3),
            ("[mesh]\n\nrout = 'hush'", 3),
            ("[worker]\n[[worker.backends]]\nurl = 'a'\napi-key = 'hush'", 4),
            ("log = 'info'\n[mesch]\n", 2),
            ("[prices.m]\ninput = -1\n", 2),
        ] {
            let error = format!("{:#}", ConfigFile::parse(text).unwrap_err());
            assert!(error.contains(&format!("line {line}: ")), "{text}: {error}");
            let quoted = error.contains("hush") && !error.contains("invalid type");
            assert!(!quoted, "{error}");
        }
    }

    #[test]
    fn a_value_that_contradicts_is_located_by_the_flag_that_the_error_names() {
        let mut file = ConfigFile::parse("log = 'info'\n\n[mesh]\nname = 'a'\n").unwrap();
        let located = |file: &ConfigFile, words: &str| {
            format!("{:#}", file.locate(anyhow!("{}", words.to_owned())))
        };
        assert_eq!(located(&file, "--log is wrong"), "--log is wrong", "there is no file");
        file.path = Some("/w.toml".into());
        assert_eq!(located(&file, "--log is wrong"), "/w.toml, line 1: --log is wrong");
        assert_eq!(located(&file, "a --mesh-name"), "/w.toml, line 4: a --mesh-name");
        assert_eq!(
            located(&file, "--listen is wrong"),
            "--listen is wrong",
            "it is not in the file"
        );
    }

    #[test]
    fn the_same_file_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("warren.toml");
        std::fs::write(&path, "log = 'info'").unwrap();
        let first = ConfigFile::find(Some(&path)).unwrap();
        std::fs::write(&path, "log = 'debug'").unwrap();
        assert_eq!(first.read_again().unwrap().serve.log.as_deref(), Some("debug"));
        std::fs::remove_file(&path).unwrap();
        assert!(first.read_again().is_err(), "no defaults in the place of a file that is gone");
    }
}
