//! The finding of a check.

use base::plain;
use serde::Serialize;

/// The gravity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// It may be intended.
    Note,
    /// Warren does not work with it.
    Fault,
}

/// The finding of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) state: State,
    pub(super) found: String,
    /// The advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, state: State::Ok, found: found.into(), advice: None }
    }

    pub(super) fn note(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { check, state: State::Note, found: found.into(), advice: Some(advice.into()) }
    }

    pub(super) fn fault(
        check: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { check, state: State::Fault, found: found.into(), advice: Some(advice.into()) }
    }

    /// A line, and one with the advice.
    pub(super) fn readable(&self) -> String {
        let state = match self.state {
            State::Ok => "ok",
            State::Note => "note",
            State::Fault => "FAULT",
        };
        let line = format!("{state:<6} {:<14} {}", self.check, plain::line(&self.found));
        match &self.advice {
            Some(advice) => format!("{line}\n       → {}", plain::line(advice)),
            None => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_line_and_its_advice_another() {
        let fault = Finding::fault("port", "taken\u{1b}[2J", "stop it");
        let expected = "FAULT  port           taken\u{fffd}[2J\n       → stop it";
        assert_eq!(fault.readable(), expected);
        assert_eq!(Finding::ok("port", "free").readable(), "ok     port           free");
    }
}
