//! `[[worker.engines]]`: model engines, the model servers that a worker runs itself.

use std::{collections::BTreeMap, path::PathBuf, str::FromStr};

use base::system::user_home;
use serde::{Deserialize, Deserializer};

use super::Span;

section! {
    /// One `[[worker.engines]]` of the file.
    #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    EngineOptions {
        /// The program: a name, found on `PATH` and at the usual places, or a path; or a list of the program and
        /// its arguments, with `{model}`, `{port}` and others [default: `llama-server`]
        command: Option<EngineCommand>,
        /// Model files, and folders of them [default: the folder of pulled models]
        models: Option<Paths>,
        /// Tokens of a question and its answer together [default: what the model was made for, at most 65536, and no
        /// more than half of the memory has room for]
        context: Option<u64>,
        /// Requests that one model answers at once, each with a context of its own [default: as many as the program
        /// takes by itself]
        parallel: Option<u32>,
        /// Memory for all loaded models together, such as `24GiB` [default: most of
        /// what this machine has]
        memory: Option<Bytes>,
        /// An idle model is unloaded after this time: seconds, or such as `10m`; 0: as soon as it is idle
        /// [default: when another one needs its memory]
        ttl: Option<Span>,
        /// Whether a loaded model is never unloaded for another one.
        keep: Option<bool>,
        /// The group that its models belong to.
        group: Option<String>,
        /// What goes for the models of a group: `one-at-a-time`, never two of them together; `alone`, together,
        /// but with no model outside of the group [default: `one-at-a-time`]
        groups: Option<BTreeMap<String, TogetherRule>>,
        /// Further arguments of the program.
        flags: Option<Vec<String>>,
        /// Variables of the program's environment.
        env: Option<BTreeMap<String, String>>,
        /// The path at which the program says that it is ready [default: `/health`]
        health: Option<String>,
        /// Models that are loaded at the same time [default: 1]
        #[serde(alias = "loads-at-once")]
        loads_at_once: Option<u32>,
        /// Jobs that all models together take at once [default: 32]
        #[serde(alias = "max-concurrent")]
        max_concurrent: Option<u32>,
        /// What is different for some models: `[worker.engines.model."NAME"]`
        model: Option<BTreeMap<String, EngineModelOptions>>,
    }
}

section! {
    /// One `[worker.engines.model."NAME"]` of the file.
    #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    EngineModelOptions {
        /// The name under which it is offered [default: its own]
        alias: Option<String>,
        /// Tokens of a question and its answer together [default: as for all]
        context: Option<u64>,
        /// Requests that it answers at once [default: as for all]
        parallel: Option<u32>,
        /// Memory that it takes while it is loaded, such as `9GiB` [default: by its file and its context]
        memory: Option<Bytes>,
        /// Unloaded after this idle time [default: as for all]
        ttl: Option<Span>,
        /// Whether it is never unloaded for another one [default: as for all]
        keep: Option<bool>,
        /// The group that it belongs to [default: as for all]
        group: Option<String>,
        /// Arguments of the program, after those for all.
        flags: Option<Vec<String>>,
    }
}

/// A program, or a program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineCommand {
    /// A name or a path. The name tells which arguments the program needs.
    Program(String),
    /// The program and its arguments, in which words in braces stand for values.
    Template(Vec<String>),
}

impl FromStr for EngineCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Err("a command has a name: write one such as llama-server".to_owned()),
            program => Ok(Self::Program(program.to_owned())),
        }
    }
}

impl<'de> Deserialize<'de> for EngineCommand {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let words = Texts::deserialize(from)?;
        let command = match words {
            Texts::One(program) => program.parse(),
            Texts::Many(words) => template(words),
        };
        command.map_err(serde::de::Error::custom)
    }
}

/// A command must have places for its model and its port: without them, no request could be sent to it.
fn template(words: Vec<String>) -> Result<EngineCommand, String> {
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        return Err("the first word of a command is its program".to_owned());
    }
    for needed in ["{model}", "{port}"] {
        if !words.iter().any(|word| word.contains(needed)) {
            return Err(format!("the command needs {needed} among its arguments"));
        }
    }
    Ok(EngineCommand::Template(words))
}

/// The rule for the models of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TogetherRule {
    /// At most one of them is loaded at a time.
    #[default]
    OneAtATime,
    /// They are loaded together, and no other model beside them.
    Alone,
}

impl TogetherRule {
    /// Its name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OneAtATime => "one-at-a-time",
            Self::Alone => "alone",
        }
    }
}

/// Paths: one text, or a list of them. A leading `~/` is the home directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths(pub Vec<PathBuf>);

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let texts = match Texts::deserialize(from)? {
            Texts::One(text) => vec![text],
            Texts::Many(texts) => texts,
        };
        if texts.iter().any(|text| text.trim().is_empty()) {
            return Err(serde::de::Error::custom("an empty text is no path"));
        }
        Ok(Self(texts.iter().map(|text| path(text)).collect()))
    }
}

/// A path as people write it: `~` and a leading `~/` are the home directory.
pub fn path(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), text) {
        (Some(rest), _) => user_home().map_or_else(|| text.into(), |home| home.join(rest)),
        (None, "~") => user_home().unwrap_or_else(|| text.into()),
        _ => text.into(),
    }
}

/// A number of bytes, written with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no amount of memory, such as 24GiB, 24G or 500MB");
        let text = text.trim();
        let letters = text.find(|it: char| it.is_ascii_alphabetic()).ok_or_else(wrong)?;
        let (number, unit) = text.split_at(letters);
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let bytes = number * unit_of(unit).ok_or_else(wrong)?;
        // Up to an exbibyte, a floating-point number is exact enough here.
        let is_sound = (0.0..=(1u64 << 60) as f64).contains(&bytes);
        if is_sound { Ok(Self(bytes as u64)) } else { Err(wrong()) }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

fn unit_of(text: &str) -> Option<f64> {
    Some(match text.to_ascii_lowercase().as_str() {
        "m" | "mib" => f64::from(1 << 20),
        "g" | "gib" => f64::from(1 << 30),
        "t" | "tib" => f64::from(1 << 30) * 1024.0,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return None,
    })
}

/// One text, or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, or a list of texts")]
enum Texts {
    One(String),
    Many(Vec<String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<EngineOptions, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_is_a_name_or_a_template_that_says_where_model_and_port_go() {
        let of = |text: &str| read(text).unwrap().command.unwrap();
        let named = EngineCommand::Program("llama-server".to_owned());
        assert_eq!(of("command = 'llama-server'"), named);
        let words = ["serve", "{model}", "--port={port}"].map(str::to_owned).to_vec();
        let template = of("command = ['serve', '{model}', '--port={port}']");
        assert_eq!(template, EngineCommand::Template(words));
        for (bad, words) in [
            ("command = ''", "a command has a name"),
            ("command = []", "first word"),
            ("command = ['serve', '{port}']", "needs {model}"),
            ("command = ['serve', '{model}']", "needs {port}"),
            ("command = 1", "a text, or a list of texts"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(words), "{bad}: {error}");
        }
    }

    #[test]
    fn models_are_one_path_or_several() {
        let of = |text: &str| read(text).unwrap().models.unwrap().0;
        assert_eq!(of("models = '/m'"), [PathBuf::from("/m")]);
        assert_eq!(of("models = ['/m', 'a.gguf']").len(), 2);
        assert!(!of("models = '~/m'")[0].starts_with("~"), "the home directory is meant");
        assert!(read("models = ['']").unwrap_err().contains("no path"));
    }

    #[test]
    fn an_amount_of_memory_has_a_unit() {
        let of = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0);
        assert_eq!(of("24GiB"), Ok(24 << 30));
        assert_eq!(of("24 g"), Ok(24 << 30));
        assert_eq!(of("1.5GB"), Ok(1_500_000_000));
        assert_eq!(of("500M"), Ok(500 << 20));
        for bad in ["24", "", "GiB", "-1GiB", "1e30TiB", "nanGiB", "24 apples"] {
            let error = of(bad).unwrap_err();
            assert!(error.contains("24GiB"), "{bad}: {error}");
        }
    }

    #[test]
    fn what_is_different_for_a_model_is_told_by_its_name() {
        let text = "ttl = '10m'\n[model.'qwen3*']\nkeep = true\nflags = ['--jinja']";
        let options = read(text).unwrap();
        assert_eq!(options.model.unwrap()["qwen3*"].keep, Some(true));
        let error = read("[model.a]\nkeeep = true").unwrap_err();
        assert!(error.contains("keeep"), "{error}");
    }
}
