//! The configuration, and its certificate.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use super::finding::Finding;

/// A certificate that expires sooner gets a note.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The configuration as a start would read it.
#[derive(Debug, Clone)]
pub(super) struct Configuration {
    /// The file that was found, or why it cannot be used.
    pub(super) file: Result<Option<PathBuf>, String>,
    /// Why `warren serve` would not start.
    pub(super) serve_refuses: Option<String>,
    /// Why `warren up` would not start. It makes a key for consumers by itself.
    pub(super) up_refuses: Option<String>,
}

pub(super) fn configuration(configuration: &Configuration) -> Finding {
    const CHECK: &str = "configuration";
    let file = match &configuration.file {
        Err(error) => {
            return Finding::fault(
                CHECK,
                error,
                "correct the file; `docs/settings` lists all settings",
            );
        }
        Ok(None) => "no file: defaults and the environment".to_owned(),
        Ok(Some(path)) => path.display().to_string(),
    };
    match (&configuration.serve_refuses, &configuration.up_refuses) {
        (None, _) => Finding::ok(CHECK, file),
        (Some(why), None) => Finding::note(
            CHECK,
            format!("{file}; `warren up` starts, `warren serve` does not"),
            why,
        ),
        (Some(_), Some(why)) => Finding::fault(CHECK, format!("no server starts with {file}"), why),
    }
}

/// A server's certificate, or why it cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Certificate(pub(super) Result<Dates, String>);

#[derive(Debug, Clone)]
pub(super) struct Dates {
    pub(super) names: Vec<String>,
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

pub(super) fn certificate(certificate: &Certificate, now: Timestamp) -> Finding {
    const CHECK: &str = "certificate";
    let dates = match &certificate.0 {
        Ok(dates) => dates,
        Err(error) => {
            return Finding::fault(CHECK, error, "name a certificate chain in PEM with --tls-cert");
        }
    };
    let names = dates.names.join(", ");
    let day = |time: Timestamp| time.strftime("%F").to_string();
    let (from, until) = (day(dates.from), day(dates.until));
    let renew = "renew it (`warren cert --force`, or your authority), then restart the server";
    if dates.until <= now {
        return Finding::fault(CHECK, format!("expired on {until}, for {names}"), renew);
    }
    if dates.from > now {
        return Finding::fault(
            CHECK,
            format!("valid only from {from} on"),
            "set this machine's clock",
        );
    }
    if dates.until.duration_since(now) < SOON {
        return Finding::note(CHECK, format!("expires on {until}, for {names}"), renew);
    }
    Finding::ok(CHECK, format!("valid until {until}, for {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    fn state(serve: Option<&str>, up: Option<&str>) -> State {
        let text = |why: Option<&str>| why.map(str::to_owned);
        let file = Ok(Some("/w.toml".into()));
        let refused = Configuration { file, serve_refuses: text(serve), up_refuses: text(up) };
        configuration(&refused).state
    }

    #[test]
    fn settings_are_a_fault_if_no_server_starts_with_them() {
        assert_eq!(state(None, None), State::Ok);
        assert_eq!(state(Some("no credentials"), None), State::Note);
        assert_eq!(state(Some("bad"), Some("bad")), State::Fault);
        let file = Err("no TOML".to_owned());
        let unread = Configuration { file, serve_refuses: None, up_refuses: None };
        assert_eq!(configuration(&unread).found, "no TOML");
    }

    #[test]
    fn a_certificate_is_judged_by_its_dates() {
        let at = |day: &str| format!("{day}T00:00:00Z").parse::<Timestamp>().unwrap();
        let names = vec!["box.lan".to_owned()];
        let dates = Dates { names, from: at("2026-01-10"), until: at("2026-06-01") };
        let it = Certificate(Ok(dates));
        let state = |day| certificate(&it, at(day)).state;
        assert_eq!(state("2026-01-09"), State::Fault);
        assert_eq!(state("2026-02-01"), State::Ok);
        assert_eq!(state("2026-05-20"), State::Note);
        assert_eq!(state("2026-06-01"), State::Fault);
    }
}
