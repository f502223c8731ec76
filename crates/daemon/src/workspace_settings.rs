//! The settings of the workspace: their defaults and checks.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Value, json};
pub(crate) use workspace::Settings as WorkspaceSettings;
use workspace::{AgentSettings, Settings};

use crate::{
    options::{AgentOptions, WorkspaceOptions, listed::secs},
    settings::seconds,
};

/// The directory of the workspace in the data directory.
const DIRECTORY: &str = "workspace";

/// Fills in defaults and checks the options; `None` if the workspace is turned off.
///
/// # Errors
/// When a value is invalid.
pub(crate) fn settings(
    options: WorkspaceOptions,
    data_dir: &Path,
) -> anyhow::Result<Option<Settings>> {
    if !options.enabled.unwrap_or(true) {
        return Ok(None);
    }
    let usual = Settings::new(options.dir.unwrap_or_else(|| data_dir.join(DIRECTORY)));
    let settings = Settings {
        token: options.token,
        log_bytes: scaled(options.log_kib, 1024).unwrap_or(usual.log_bytes),
        history_bytes: options
            .history_mib
            .map_or(usual.history_bytes, |mib| mib.saturating_mul(1 << 20)),
        max_sessions: options.max_sessions.unwrap_or(usual.max_sessions),
        max_processes: bound(options.max_processes, usual.max_processes),
        max_clients: options.max_clients.unwrap_or(usual.max_clients),
        message_rate: options.message_rate.unwrap_or(usual.message_rate),
        lag_timeout: seconds(options.lag_timeout_secs, usual.lag_timeout),
        stop_grace: seconds(options.stop_grace_secs, usual.stop_grace),
        keep_sessions: options.keep_sessions.map_or(usual.keep_sessions, |span| span.0),
        run_as: options.run_as_users.unwrap_or_default(),
        agents: agents(options.agents.unwrap_or_default(), &usual.agents)?,
        ..usual
    };
    check(&settings)?;
    Ok(Some(settings))
}

/// The values of the settings by their names, as they would be written in a file.
pub(crate) fn values(workspace: &WorkspaceSettings) -> Vec<(&'static str, Value)> {
    let agents = &workspace.agents;
    vec![
        ("workspace.log_kib", json!(workspace.log_bytes >> 10)),
        ("workspace.history_mib", json!(workspace.history_bytes >> 20)),
        ("workspace.max_sessions", json!(workspace.max_sessions)),
        ("workspace.max_processes", json!(workspace.max_processes.unwrap_or_default())),
        ("workspace.max_clients", json!(workspace.max_clients)),
        ("workspace.message_rate", json!(workspace.message_rate)),
        ("workspace.keep_sessions", json!(format!("{}s", workspace.keep_sessions.as_secs()))),
        ("workspace.lag_timeout_secs", secs(workspace.lag_timeout)),
        ("workspace.stop_grace_secs", secs(workspace.stop_grace)),
        ("workspace.agents.use_gateway", json!(agents.use_gateway)),
        ("workspace.agents.idle_secs", secs(agents.idle)),
        ("workspace.agents.silence_secs", secs(agents.silence)),
        ("workspace.agents.permission_secs", secs(agents.permission)),
    ]
}

fn agents(options: AgentOptions, usual: &AgentSettings) -> anyhow::Result<AgentSettings> {
    if let Some((name, _)) = options.acp.iter().find(|(_, command)| command.is_empty()) {
        bail!("{name} in [workspace.agents] acp has no command line");
    }
    let settings = AgentSettings {
        use_gateway: options.use_gateway,
        model: options.model,
        gateway: None,
        acp: options.acp,
        allowed_args: options.allowed_args,
        idle: seconds(options.idle_secs, usual.idle),
        silence: seconds(options.silence_secs, usual.silence),
        permission: seconds(options.permission_secs, usual.permission),
        programs: options.programs,
    };
    if settings.silence.is_zero() || settings.permission.is_zero() {
        bail!("silence_secs and permission_secs in [workspace.agents] must be over 0");
    }
    Ok(settings)
}

fn check(settings: &Settings) -> anyhow::Result<()> {
    let bounds = [
        ("log_kib", settings.log_bytes),
        ("max_sessions", settings.max_sessions),
        ("max_clients", settings.max_clients),
        ("message_rate", settings.message_rate as usize),
    ];
    if let Some((name, _)) = bounds.iter().find(|(_, bound)| *bound == 0) {
        bail!("{name} in [workspace] must be over 0");
    }
    // A user who may type into a session of root would be root.
    if settings.run_as.iter().any(|user| user == "root") {
        return Err(anyhow::anyhow!("root is in it")).context("in run_as_users of [workspace]");
    }
    Ok(())
}

fn scaled(given: Option<usize>, unit: usize) -> Option<usize> {
    given.map(|number| number.saturating_mul(unit))
}

/// The given bound, of which 0 means none, or else the usual one.
fn bound(given: Option<u32>, usual: Option<u32>) -> Option<u32> {
    given.map_or(usual, |most| Some(most).filter(|most| *most > 0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn of(file: &str) -> anyhow::Result<Option<Settings>> {
        settings(toml::from_str(file)?, Path::new("/data"))
    }

    #[test]
    fn the_workspace_is_on_by_default() {
        let usual = of("").unwrap().unwrap();
        assert_eq!(usual.dir, Path::new("/data/workspace"));
        assert!(usual.token.is_none() && usual.run_as.is_empty());
        assert_eq!(usual.keep_sessions, Duration::from_secs(60));
        for (written, seconds) in [("0", 0), ("'90s'", 90), ("'2m'", 120), ("'1h'", 3600)] {
            let settings = of(&format!("keep_sessions = {written}")).unwrap().unwrap();
            assert_eq!(settings.keep_sessions, Duration::from_secs(seconds), "{written}");
        }
        assert!(of("keep_sessions = 'long'").is_err());
        assert_eq!(usual.max_processes, Some(4096));
        assert_eq!(of("max_processes = 0").unwrap().unwrap().max_processes, None);
        assert!(of("enabled = false").unwrap().is_none());
    }

    #[test]
    fn every_key_of_the_file_is_used() {
        let text = "token = 't'\ndir = '/elsewhere'\nlog_kib = 64\nhistory_mib = 2\n\
                    max_sessions = 7\nmax_processes = 8\nmax_clients = 9\nmessage_rate = 10\n\
                    stop_grace_secs = 0.5\nlag_timeout_secs = 9.5\nrun_as_users = ['alice']\n\
                    [agents]\nuse_gateway = true\nmodel = 'warren:m'\nidle_secs = 1\n\
                    silence_secs = 2\npermission_secs = 3\nallowed_args = ['--verbose']\n\
                    acp = { mine = ['mine', '--acp'] }\nprograms = { claude = '/opt/claude' }";
        let read = of(text).unwrap().unwrap();
        assert_eq!((read.dir.as_path(), read.log_bytes), (Path::new("/elsewhere"), 64 * 1024));
        assert_eq!((read.history_bytes, read.max_sessions), (2 << 20, 7));
        assert_eq!((read.max_processes, read.max_clients, read.message_rate), (Some(8), 9, 10));
        assert_eq!(read.stop_grace, Duration::from_millis(500));
        assert_eq!(read.lag_timeout, Duration::from_millis(9500));
        assert_eq!((read.run_as, read.token.unwrap().expose()), (vec!["alice".to_owned()], "t"));
        let agents = read.agents;
        assert_eq!((agents.use_gateway, agents.model.as_deref()), (true, Some("warren:m")));
        let spans = [agents.idle, agents.silence, agents.permission];
        assert_eq!(spans, [1, 2, 3].map(Duration::from_secs));
        assert_eq!(
            (agents.allowed_args, agents.acp["mine"].len()),
            (vec!["--verbose".to_owned()], 2)
        );
        assert_eq!(agents.programs["claude"], Path::new("/opt/claude"));
    }

    #[test]
    fn invalid_values_are_refused_by_name() {
        for (text, name) in [
            ("max_sessions = 0", "max_sessions"),
            ("message_rate = 0", "message_rate"),
            ("run_as_users = ['root']", "run_as_users"),
            ("[agents]\nacp = { mine = [] }", "mine"),
            ("[agents]\nsilence_secs = 0", "silence_secs"),
            ("[agents]\nmodle = 'm'", "modle"),
            ("histroy_mib = 1", "histroy_mib"),
        ] {
            let error = format!("{:#}", of(text).unwrap_err());
            assert!(error.contains(name), "{text}: {error}");
        }
    }
}
