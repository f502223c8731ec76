//! The journal of an installed service; on macOS the file that launchd writes its output to.

use anyhow::{Context, bail};
use client::admin::logs::LogLevel;
use tokio::process::Command;

use crate::{
    commands::service::{Manager, Place, installed_anywhere},
    system::IS_MACOS,
};

/// The service whose journal is shown: one that runs, else any.
pub(super) async fn service() -> Option<Place> {
    let places = installed_anywhere();
    for place in &places {
        let state = Manager::of(place.scope()).state(place).await;
        if state.is_ok_and(|state| state.is_active()) {
            return Some(place.clone());
        }
    }
    places.into_iter().next()
}

/// Shows the journal by `journalctl`, with this terminal, or the file by `tail`.
pub(super) async fn show(
    place: &Place,
    lines: Option<usize>,
    follow: bool,
    level: LogLevel,
) -> anyhow::Result<()> {
    let (program, arguments) = match IS_MACOS {
        true => ("tail", of_file(place, lines, follow, level)?),
        false => ("journalctl", arguments(place, lines, follow, level)),
    };
    let status = Command::new(program).args(&arguments).status().await;
    let status = status
        .with_context(|| format!("{program} cannot be run, which shows the log of a service"))?;
    // `journalctl` also fails when no line matches the pattern of a level.
    if !status.success() && level == LogLevel::Trace {
        bail!("`{program} {}` ended with {status}", arguments.join(" "));
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

fn of_file(
    place: &Place,
    lines: Option<usize>,
    follow: bool,
    level: LogLevel,
) -> anyhow::Result<Vec<String>> {
    let file = place.log();
    if level < LogLevel::Trace {
        bail!("the file {} has lines of all levels: leave --level out", file.display());
    }
    let mut arguments =
        vec!["-n".to_owned(), lines.map_or("+1".to_owned(), |lines| lines.to_string())];
    arguments.extend(follow.then(|| "-F".to_owned()));
    arguments.push(file.display().to_string());
    Ok(arguments)
}

/// The pattern of lines of this level and graver ones. The journal knows nothing of Warren's levels.
fn pattern(level: LogLevel) -> Option<String> {
    let names = LogLevel::ALL.into_iter().filter(|other| *other <= level);
    let names: Vec<String> = names.map(|level| level.to_string().to_uppercase()).collect();
    (level < LogLevel::Trace).then(|| format!("(?-i)[ \"]({})[ \"]", names.join("|")))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::commands::service::Role;

    #[test]
    fn the_file_of_launchd_is_shown_from_its_end() {
        let place =
            Place::of_launchd(Role::Serve, Path::new("/h/Library/LaunchAgents"), Path::new("/h"));
        let arguments = |lines, follow| of_file(&place, lines, follow, LogLevel::Trace).unwrap();
        assert_eq!(arguments(Some(9), true), ["-n", "9", "-F", "/h/Library/Logs/org.warren.log"]);
        assert_eq!(arguments(None, false), ["-n", "+1", "/h/Library/Logs/org.warren.log"]);
        assert!(of_file(&place, None, false, LogLevel::Warn).is_err());
    }

    #[test]
    fn only_the_lines_of_the_level_are_asked_for() {
        assert_eq!(pattern(LogLevel::Trace), None);
        let expected = "(?-i)[ \"](ERROR|WARN)[ \"]";
        assert_eq!(pattern(LogLevel::Warn).as_deref(), Some(expected));
    }
}
