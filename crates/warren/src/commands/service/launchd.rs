//! Commands and questions to launchd.

use std::{process::Stdio, time::Duration};

use anyhow::{Context, bail};
use base::plain;
use tokio::{
    process::Command,
    time::{Instant, sleep, timeout_at},
};

use super::{
    place::{Place, Scope},
    systemd::State,
};
use crate::system::user_id;

/// The longest time of a command, and of a service's end beyond the time that it has for its drain.
const DEADLINE: Duration = Duration::from_secs(120);
/// The time between two looks at a service that ends.
const LOOK: Duration = Duration::from_millis(200);

/// The launchd of the machine or of a user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launchd(Scope);

impl Launchd {
    pub(super) fn of(scope: Scope) -> Self {
        Self(scope)
    }

    /// Whether services of the scope can run. Those of a user can, while the user is logged in at the screen.
    pub(super) async fn is_here(self) -> bool {
        self.output(&["print", &self.domain()]).await.is_ok_and(|(succeeded, _)| succeeded)
    }

    /// Starts a service whose file was written. One that runs is ended first.
    ///
    /// # Errors
    /// When `launchctl` fails; the text has its own words.
    pub(super) async fn start(self, place: &Place) -> anyhow::Result<()> {
        self.stop(place).await?;
        // A service that somebody disabled cannot be bootstrapped.
        self.run(&["enable", &self.target(place)]).await?;
        let file = place.unit.to_str().context("the path of the service's file is no text")?;
        self.run(&["bootstrap", &self.domain(), file]).await
    }

    /// Ends a service; one that is not there is no error.
    ///
    /// # Errors
    /// As [`Launchd::start`].
    pub(super) async fn stop(self, place: &Place) -> anyhow::Result<()> {
        let (is_loaded, answer) = self.output(&["print", &self.target(place)]).await?;
        if !is_loaded {
            return Ok(());
        }
        // The file may be newer than the service.
        let drains = exit_time(&answer).unwrap_or_default().max(place.stop_time());
        let by = Instant::now() + DEADLINE + drains;
        self.run_by(by, &["bootout", &self.target(place)]).await?;
        // `bootout` may return before the end, and a service of the same name cannot be bootstrapped until then.
        while self.is_loaded(place).await? {
            if Instant::now() >= by {
                bail!("{} does not end", place.name);
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// The state of a service.
    ///
    /// # Errors
    /// When `launchctl` cannot be run.
    pub(super) async fn state(self, place: &Place) -> anyhow::Result<State> {
        let (_, answer) = self.output(&["print", &self.target(place)]).await?;
        Ok(state(&answer))
    }

    async fn is_loaded(self, place: &Place) -> anyhow::Result<bool> {
        Ok(self.output(&["print", &self.target(place)]).await?.0)
    }

    fn domain(self) -> String {
        match self.0 {
            Scope::System => "system".to_owned(),
            Scope::User => format!("gui/{}", user_id()),
        }
    }

    fn target(self, place: &Place) -> String {
        format!("{}/{}", self.domain(), place.name)
    }

    async fn run(self, arguments: &[&str]) -> anyhow::Result<()> {
        self.run_by(Instant::now() + DEADLINE, arguments).await
    }

    async fn run_by(self, by: Instant, arguments: &[&str]) -> anyhow::Result<()> {
        let (succeeded, answer) = self.output_by(by, arguments).await?;
        if !succeeded {
            let words = plain::lines(answer.trim());
            bail!("`launchctl {}` failed: {words}", arguments.join(" "));
        }
        Ok(())
    }

    async fn output(self, arguments: &[&str]) -> anyhow::Result<(bool, String)> {
        self.output_by(Instant::now() + DEADLINE, arguments).await
    }

    /// Runs `launchctl`. Returns whether it succeeded, and its output.
    async fn output_by(self, by: Instant, arguments: &[&str]) -> anyhow::Result<(bool, String)> {
        let mut launchctl = Command::new("launchctl");
        launchctl.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout_at(by, launchctl.output()).await;
        let output =
            output.context("launchctl does not answer")?.context("launchctl cannot be run")?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
    }
}

/// A value in the answer of `launchctl print`. The first line of a name is the service's own; lines of its parts follow.
fn value(answer: &str, name: &str) -> Option<String> {
    let mut pairs = answer.lines().filter_map(|line| line.trim().split_once(" = "));
    pairs.find(|(of_line, _)| *of_line == name).map(|(_, value)| value.to_owned())
}

/// The time for a service's end in the answer of `launchctl print`.
fn exit_time(answer: &str) -> Option<Duration> {
    value(answer, "exit timeout")?.parse().ok().map(Duration::from_secs)
}

/// The state in the answer of `launchctl print`, by systemd's words.
fn state(answer: &str) -> State {
    let value = |name| value(answer, name);
    let sub = value("state").unwrap_or_default();
    let active = match sub.as_str() {
        "" => "",
        "running" => "active",
        "spawn scheduled" | "spawning" => "activating",
        _ => "inactive",
    };
    let runs = value("runs").and_then(|runs| runs.parse().ok()).unwrap_or(0_u64);
    State {
        active: active.to_owned(),
        starts: if sub.is_empty() { "disabled" } else { "enabled" }.to_owned(),
        sub,
        pid: value("pid").and_then(|pid| pid.parse().ok()),
        restarts: runs.saturating_sub(1),
        since: String::new(),
        last_status: value("last exit code").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_services_state_is_read_from_what_launchctl_prints() {
        let state = state(
            "gui/501/org.warren = {\n\tactive count = 1\n\ttype = LaunchAgent\n\tstate = running\n\n\
             \tpid = 77\n\truns = 4\n\tlast exit code = 1\n\n\tspawn type = daemon (3)\n\
             \tendpoints = {\n\t\tstate = active\n\t}\n}\n",
        );
        assert!(state.is_active());
        assert_eq!((state.pid, state.restarts, state.last_status.as_str()), (Some(77), 3, "1"));
        assert_eq!((state.sub.as_str(), state.starts.as_str()), ("running", "enabled"));
    }

    #[test]
    fn the_time_for_a_services_end_is_read_from_what_launchctl_prints() {
        let answer = "\tminimum runtime = 10\n\texit timeout = 915\n\truns = 1\n";
        assert_eq!(exit_time(answer), Some(Duration::from_secs(915)));
        assert_eq!(exit_time("\truns = 1\n"), None);
    }

    #[test]
    fn a_service_that_waits_or_is_not_there_does_not_run() {
        let failing = state("\tstate = spawn scheduled\n\truns = 2\n");
        assert_eq!((failing.active.as_str(), failing.pid), ("activating", None));
        assert_eq!(state("\tstate = not running\n").active, "inactive");
        let none = state("Could not find service \"org.warren\" in domain for user gui: 501\n");
        assert_eq!((none.active.as_str(), none.starts.as_str()), ("", "disabled"));
    }
}
