//! The text of a unit of systemd: one of the files in `deploy/` with its own command, paths and times.

use std::time::Duration;

use super::{
    place::{Place, Scope},
    plist,
    quoting::{command_line, path},
    role::Role,
};

/// The machine's server.
const SERVER: &str = include_str!("../../../../../deploy/warren.service");
/// The machine's worker.
const WORKER: &str = include_str!("../../../../../deploy/warren-worker.service");
/// The unit of a user's service.
const USER: &str = include_str!("../../../../../deploy/warren-user.service");

/// The time that systemd waits beyond the drain before it kills.
const AFTER_DRAIN: Duration = Duration::from_secs(15);

/// The unit of a service that runs these words.
pub(super) fn text(place: &Place, role: Role, words: &[String], drain: Duration) -> String {
    let stop = (drain + AFTER_DRAIN).as_secs_f64().ceil() as u64;
    let settings = [
        ("Description", role.description().to_owned()),
        ("ExecStart", command_line(words)),
        ("EnvironmentFile", format!("-{}", path(&place.environment.display().to_string()))),
        ("TimeoutStopSec", stop.to_string()),
    ];
    let (_, body) = template(place.scope, role).split_once("[Unit]").unwrap_or_default();
    // Only a server can read its configuration again: SIGHUP ends the others.
    let is_for = |line: &&str| role.is_server() || !is_setting(line, "ExecReload");
    let lines = body.lines().skip(1).filter(is_for).map(|line| {
        let of_line = settings.iter().find(|(name, _)| is_setting(line, name));
        of_line.map_or_else(|| line.to_owned(), |(name, value)| format!("{name}={value}"))
    });
    let body = lines.collect::<Vec<_>>().join("\n");
    let file = place.environment.display();
    format!("# Written by `warren service install`. Its secrets are in {file}.\n[Unit]\n{body}\n")
}

fn template(scope: Scope, role: Role) -> &'static str {
    match (scope, role) {
        (Scope::User, _) => USER,
        (Scope::System, Role::Worker) => WORKER,
        (Scope::System, _) => SERVER,
    }
}

fn is_setting(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
}

/// The command line in the text of a unit, or of launchd's file.
pub(super) fn command_of(text: &str) -> Option<String> {
    let of_unit = text.lines().find_map(|line| line.strip_prefix("ExecStart="));
    of_unit.map(str::to_owned).or_else(|| Some(command_line(&plist::words_of(text)?)))
}

/// The time for the service's end in the text of a unit, or of launchd's file.
pub(super) fn stop_time(text: &str) -> Option<Duration> {
    let of_unit = text.lines().find_map(|line| line.strip_prefix("TimeoutStopSec="));
    let of_unit = of_unit.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
    of_unit.or_else(|| plist::stop_time(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(scope: Scope, role: Role) -> String {
        let words = ["/opt/a b/warren", role.command(), "--log", "50%"].map(str::to_owned);
        let place = Place {
            scope,
            name: "warren.service".to_owned(),
            unit: "/u/warren.service".into(),
            environment: "/e/warren.env".into(),
        };
        text(&place, role, &words, Duration::from_secs_f64(60.5))
    }

    #[test]
    fn a_unit_has_its_command_its_environment_and_time_to_drain() {
        for (scope, role) in [
            (Scope::System, Role::Serve),
            (Scope::System, Role::Worker),
            (Scope::System, Role::Up),
            (Scope::User, Role::Serve),
            (Scope::User, Role::Join),
        ] {
            let unit = unit(scope, role);
            let command =
                format!("\nExecStart=\"/opt/a b/warren\" {} --log 50%%\n", role.command());
            assert_eq!(unit.matches(&command).count(), 1, "{unit}");
            assert_eq!(unit.matches("ExecStart=").count(), 1, "{unit}");
            assert!(unit.contains("\nEnvironmentFile=-/e/warren.env\n"), "{unit}");
            assert!(unit.contains("\nTimeoutStopSec=76\n"), "{unit}");
            assert_eq!(stop_time(&unit), Some(Duration::from_secs(76)), "{unit}");
            assert!(unit.contains("\nRestart=always\n"), "{unit}");
            let reload = "\nExecReload=/bin/kill -HUP $MAINPID\n";
            assert_eq!(unit.contains(reload), role.is_server(), "{unit}");
            assert!(unit.contains(&format!("\nDescription={}\n", role.description())), "{unit}");
        }
    }

    #[test]
    fn the_machines_service_is_locked_in_and_a_users_is_not() {
        let system = unit(Scope::System, Role::Up);
        assert!(
            system.contains("\nStateDirectory=warren\n") && system.contains("\nDynamicUser=yes\n")
        );
        assert!(system.contains("\nWantedBy=multi-user.target\n"));
        let user = unit(Scope::User, Role::Up);
        // These need rights that a user's systemd does not have, or would bind the terminals.
        for setting in
            ["DynamicUser", "CapabilityBoundingSet", "NoNewPrivileges", "Protect", "UMask"]
        {
            assert!(!user.contains(setting), "{user}");
        }
        assert!(user.contains("\nWantedBy=default.target\n"));
    }
}
