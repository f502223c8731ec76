//! The journal of an installed service.

use anyhow::{Context, bail};
use client::admin::logs::LogLevel;
use tokio::process::Command;

use crate::commands::service::{Place, Systemd, installed_anywhere};

/// The service whose journal is shown: one that systemd runs, else any.
pub(super) async fn service() -> Option<Place> {
    let places = installed_anywhere();
    for place in &places {
        let state = Systemd::of(place.scope()).state(place).await;
        if state.is_ok_and(|state| state.is_active()) {
            return Some(place.clone());
        }
    }
    places.into_iter().next()
}

/// Shows the journal by `journalctl`, with this terminal.
pub(super) async fn show(
    place: &Place,
    lines: Option<usize>,
    follow: bool,
    level: LogLevel,
) -> anyhow::Result<()> {
    let arguments = arguments(place, lines, follow, level);
    let status = Command::new("journalctl").args(&arguments).status().await;
    let status = status.context("journalctl cannot be run, which shows the log of a service")?;
    // `journalctl` ends so when nothing matches.
    if !status.success() && level == LogLevel::Trace {
        bail!("`journalctl {}` ended with {status}", arguments.join(" "));
    }
    Ok(())
}

fn arguments(place: &Place, lines: Option<usize>, follow: bool, level: LogLevel) -> Vec<String> {
    let unit = place.scope().option().map_or("--unit", |_| "--user-unit");
    let mut arguments = vec![format!("{unit}={}", place.name)];
    arguments.extend(["--output=cat", "--no-pager", "--quiet"].map(str::to_owned));
    arguments.push(lines.map_or("--lines=all".to_owned(), |lines| format!("--lines={lines}")));
    arguments.extend(follow.then(|| "--follow".to_owned()));
    arguments.extend(pattern(level).map(|pattern| format!("--grep={pattern}")));
    arguments
}

/// The pattern of lines of this level and graver ones. The journal knows nothing of Warren's levels.
fn pattern(level: LogLevel) -> Option<String> {
    let names = LogLevel::ALL.into_iter().filter(|other| *other <= level);
    let names: Vec<String> = names.map(|level| level.to_string().to_uppercase()).collect();
    (level < LogLevel::Trace).then(|| format!("(?-i)[ \"]({})[ \"]", names.join("|")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_of_the_level_are_asked_for() {
        assert_eq!(pattern(LogLevel::Trace), None);
        let expected = "(?-i)[ \"](ERROR|WARN)[ \"]";
        assert_eq!(pattern(LogLevel::Warn).as_deref(), Some(expected));
    }
}
