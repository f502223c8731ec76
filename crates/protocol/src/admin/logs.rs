//! The JSON of `/admin/logs`: the newest lines of a server's log.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The most bytes of lines that a server keeps in memory; older ones are at its standard error only.
pub const KEPT_BYTES: usize = 1 << 20;

/// How grave a line is. The gravest is the smallest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Something was lost, or does not work.
    Error,
    /// Something needs attention.
    Warn,
    /// The usual events.
    #[default]
    Info,
    /// Details that help to find faults.
    Debug,
    /// Every step.
    Trace,
}

impl LogLevel {
    /// All of them, the gravest first.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// Its name, as in `--log`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = Self::ALL.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(text));
        level
            .ok_or_else(|| format!("{text:?} is no level: write error, warn, info, debug or trace"))
    }
}

/// Answer of `GET /admin/logs?limit=N&after=M&level=L`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogList {
    /// The oldest first.
    pub lines: Vec<LogLine>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// A running number, from 1 at the server's start.
    pub n: u64,
    /// When it was written.
    pub at: Timestamp,
    /// Its level.
    pub level: LogLevel,
    /// The whole line as it stands at standard error, without colours.
    pub text: String,
}

/// A line of `GET /admin/logs?follow=true`, which answers with lines of JSON. Empty lines are signs of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LogEvent {
    /// The next line of the log.
    Line(LogLine),
    /// The reader was too slow, and lines before the next one are no longer kept.
    Missed {
        /// How many.
        missed: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_read_back_from_their_names() {
        assert!(LogLevel::Error < LogLevel::Warn && LogLevel::Info < LogLevel::Trace);
        for level in LogLevel::ALL {
            assert_eq!(level.to_string().to_uppercase().parse(), Ok(level));
        }
        assert!("loud".parse::<LogLevel>().unwrap_err().contains("write error, warn"));
    }

    #[test]
    fn lines_and_gaps_are_told_apart() {
        let line = r#"{"n":7,"at":"2026-11-20T16:00:00Z","level":"warn","text":"WARN it rains"}"#;
        let LogEvent::Line(read) = serde_json::from_str(line).unwrap() else { panic!("a gap") };
        assert_eq!((read.n, read.level), (7, LogLevel::Warn));
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
        let gap = serde_json::from_str::<LogEvent>(r#"{"missed":3}"#).unwrap();
        assert_eq!(gap, LogEvent::Missed { missed: 3 });
    }
}
