//! Commands and questions to systemd.

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use anyhow::{Context, bail};
use base::plain;
use tokio::{process::Command, time::timeout};

use super::place::{Place, Scope};

/// The longest time of a command, without the end of a service.
const DEADLINE: Duration = Duration::from_secs(120);

/// The properties of a unit that are asked for.
const PROPERTIES: &str = "LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts,\
                          ActiveEnterTimestamp,ExecMainStatus";

/// The systemd of the machine or of a user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Systemd(pub(super) Scope);

/// The state of a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// `active`, `inactive`, `failed`, `activating`; empty if systemd reports none.
    pub(crate) active: String,
    /// The finer state, such as `running` or `auto-restart`.
    pub(super) sub: String,
    /// Whether it starts by itself: `enabled` or `disabled`.
    pub(super) starts: String,
    /// Its process.
    pub(super) pid: Option<u32>,
    /// The number of its restarts by systemd.
    pub(crate) restarts: u64,
    /// The time since when it is active.
    pub(super) since: String,
    /// The exit code or signal of its last process.
    pub(super) last_status: String,
}

impl Systemd {
    pub(crate) fn of(scope: Scope) -> Self {
        Self(scope)
    }

    /// Whether it runs here. In containers and on other systems it does not.
    pub(crate) async fn is_here(self) -> bool {
        let states = ["running", "degraded", "starting", "initializing", "maintenance"];
        // Only the answer is read: the exit code is not 0 if any unit of the machine has failed.
        let answer = self.output(&["is-system-running"]).await;
        answer.is_ok_and(|(_, answer)| states.contains(&answer.trim()))
    }

    /// Runs `systemctl` with these arguments.
    ///
    /// # Errors
    /// When it is not there, takes too long, or fails; the text has its own words.
    pub(super) async fn run(self, arguments: &[&str]) -> anyhow::Result<()> {
        self.run_within(DEADLINE, arguments).await
    }

    /// Runs `systemctl` with these arguments, by which the service may end: its drain may take long.
    ///
    /// # Errors
    /// As [`Systemd::run`].
    pub(super) async fn run_with_stop(
        self,
        place: &Place,
        arguments: &[&str],
    ) -> anyhow::Result<()> {
        self.run_within(DEADLINE + place.stop_time(), arguments).await
    }

    async fn run_within(self, deadline: Duration, arguments: &[&str]) -> anyhow::Result<()> {
        let (succeeded, answer) = self.output_within(deadline, arguments).await?;
        if !succeeded {
            let words = plain::lines(answer.trim());
            bail!("`systemctl {}` failed: {words}", self.with_scope(arguments).join(" "));
        }
        Ok(())
    }

    /// The state of a unit.
    ///
    /// # Errors
    /// As [`Systemd::run`].
    pub(crate) async fn state(self, place: &Place) -> anyhow::Result<State> {
        let properties = format!("--property={PROPERTIES}");
        let (_, answer) = self.output(&["show", &properties, &place.name]).await?;
        Ok(State::read(&answer))
    }

    fn with_scope<'a>(self, arguments: &[&'a str]) -> Vec<&'a str> {
        self.0.option().into_iter().chain(arguments.iter().copied()).collect()
    }

    async fn output(self, arguments: &[&str]) -> anyhow::Result<(bool, String)> {
        self.output_within(DEADLINE, arguments).await
    }

    /// Runs `systemctl`. Returns whether it succeeded, and its output.
    async fn output_within(
        self,
        deadline: Duration,
        arguments: &[&str],
    ) -> anyhow::Result<(bool, String)> {
        let mut systemctl = Command::new("systemctl");
        systemctl.args(self.with_scope(arguments)).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(deadline, systemctl.output()).await;
        let output =
            output.context("systemctl does not answer")?.context("systemctl cannot be run")?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
    }
}

impl State {
    fn read(answer: &str) -> Self {
        let pairs: BTreeMap<&str, &str> =
            answer.lines().filter_map(|line| line.split_once('=')).collect();
        let text = |name: &str| pairs.get(name).copied().unwrap_or_default().to_owned();
        Self {
            active: text("ActiveState"),
            sub: text("SubState"),
            starts: text("UnitFileState"),
            pid: text("MainPID").parse().ok().filter(|pid| *pid > 0),
            restarts: text("NRestarts").parse().unwrap_or(0),
            since: text("ActiveEnterTimestamp"),
            last_status: text("ExecMainStatus"),
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active == "active"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_units_state_is_read_from_its_properties() {
        let state = State::read(
            "LoadState=loaded\nActiveState=active\nSubState=running\nMainPID=77\nNRestarts=3\n\
             UnitFileState=enabled\nActiveEnterTimestamp=Thu 2026-11-26 10:00:00 UTC\n",
        );
        assert!(state.is_active());
        assert_eq!((state.pid, state.restarts, state.sub.as_str()), (Some(77), 3, "running"));
        let stopped = State::read("ActiveState=inactive\nMainPID=0\n");
        assert_eq!((stopped.is_active(), stopped.pid), (false, None));
        assert_eq!(State::read("Failed to connect to bus"), State::default());
    }
}
