//! Types of values that options take.

use std::{net::SocketAddr, str::FromStr, time::Duration};

use clap::ValueEnum;
use serde::{Deserialize, Deserializer};

/// Reads an address with its port; `localhost` is 127.0.0.1.
///
/// # Errors
/// The fault of the text.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.split_once(':') {
        Some((host, port)) if host.eq_ignore_ascii_case("localhost") => format!("127.0.0.1:{port}"),
        _ => text.to_owned(),
    };
    let wrong = |_| format!("{text:?} is no ADDRESS:PORT, such as 127.0.0.1:9178 or [::]:9178");
    numeric.parse().map_err(wrong)
}

pub(super) fn deserialize_listen<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    listen_address(&text).map(Some).map_err(serde::de::Error::custom)
}

/// Seconds; fractions are allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds(pub Duration);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds: f64 = text.trim().parse().map_err(|_| format!("{text:?} is no number"))?;
        Self::try_from(seconds)
    }
}

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        let longest = 366.0 * 24.0 * 3600.0;
        if !(0.0..=longest).contains(&seconds) {
            return Err(format!("{seconds} seconds are not between 0 and a year"));
        }
        Ok(Self(Duration::from_secs_f64(seconds)))
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Self::try_from(seconds).map_err(serde::de::Error::custom)
    }
}

/// A span of time: seconds, or a number with `s`, `m` or `h`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, unit) = match text.char_indices().last() {
            Some((at, 's')) => (&text[..at], 1.0),
            Some((at, 'm')) => (&text[..at], 60.0),
            Some((at, 'h')) => (&text[..at], 3600.0),
            _ => (text, 1.0),
        };
        let number: f64 = number
            .trim()
            .parse()
            .map_err(|_| format!("{text:?} is no span of time, such as 60s, 5m or 1h"))?;
        Seconds::try_from(number * unit).map(|seconds| Self(seconds.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Number(seconds) => seconds.to_string(),
            Written::Text(text) => text,
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// The protocol between a worker and its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LendAs {
    /// Relay protocol: every API, any number of models, one connection.
    #[default]
    Relay,
    /// Node protocol, for stock API servers: chat only, a connection for each model and slot.
    Node,
}

/// How a worker is chosen among several that are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// The one whose cache knows most of the prompt, unless it is much more loaded; else the least loaded.
    #[default]
    PrefixAffinity,
    /// The least loaded; ties take turns.
    LeastLoaded,
}

/// Whether a streamed answer is resumed when its worker is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResumeAnswers {
    /// It ends with an error.
    Off,
    /// Another worker of the same model goes on with it, where that can be.
    #[default]
    SameModel,
}

impl From<ResumeAnswers> for base::ResumeAnswers {
    fn from(written: ResumeAnswers) -> Self {
        match written {
            ResumeAnswers::Off => Self::Off,
            ResumeAnswers::SameModel => Self::SameModel,
        }
    }
}

/// Which endpoints a server calls for participants of rooms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoomEndpoints {
    /// None.
    Off,
    /// Those at the address that the join came from.
    #[default]
    #[value(name = "self")]
    #[serde(rename = "self")]
    Own,
    /// All: participants can make this server send requests wherever it can reach.
    Any,
}
