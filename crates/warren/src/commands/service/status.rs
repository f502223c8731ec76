//! `warren service status`: the installed services.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::bail;
use clap::Args;
use client::Warren;
use daemon::{ServeOptions, settings::data_dir};
use serde::Serialize;
use tokio::time::timeout;

use super::{
    Whose,
    command::{ServiceContext, options_of},
    installed,
    manager::Manager,
    place::Place,
    quoting,
    systemd::State,
    unit::command_of,
};
use crate::{
    commands::{say, say_json, servers::local_url, table::plain},
    exit,
};

/// The longest time in which a server has to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Show the installed services: state, process, address, data directory
#[derive(Args)]
#[command(after_help = "The exit code is 1 unless all of them are active.\n\nExamples:\n  \
warren service status\n  warren service status --user --json")]
pub(crate) struct Status {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whose: Whose,
}

impl Status {
    pub(super) async fn run(self, context: ServiceContext<'_>) -> anyhow::Result<()> {
        let places = installed(&self.whose.scopes());
        if places.is_empty() && !self.json {
            bail!("no service is installed: `warren service install` makes one");
        }
        let all_active = show(&places, self.json, context).await?;
        exit::as_ended(Some(i32::from(!all_active)))
    }
}

/// A service, for people and programs.
#[derive(Debug, Serialize)]
struct ServiceJson {
    unit: String,
    scope: &'static str,
    file: PathBuf,
    /// The state in systemd's words, or `unknown`.
    state: String,
    sub_state: String,
    since: String,
    starts: String,
    pid: Option<u32>,
    restarts: u64,
    command: String,
    /// A server's address on this machine.
    address: Option<String>,
    /// The version that answers there.
    answers: Option<String>,
    data_dir: Option<PathBuf>,
    environment: PathBuf,
}

/// Shows the services. Returns whether all are active.
pub(super) async fn show(
    places: &[Place],
    json: bool,
    context: ServiceContext<'_>,
) -> anyhow::Result<bool> {
    let mut all = Vec::new();
    for place in places {
        all.push(describe(place, context).await);
    }
    if json {
        say_json(&serde_json::json!({"services": all}))?;
    } else {
        let texts: Vec<String> = all.iter().map(readable).collect();
        say(&texts.join("\n\n"))?;
    }
    Ok(all.iter().all(|service| service.state == "active"))
}

async fn describe(place: &Place, context: ServiceContext<'_>) -> ServiceJson {
    let manager = Manager::of(place.scope);
    let state = match manager.is_here().await {
        true => manager.state(place).await.unwrap_or_default(),
        false => State::default(),
    };
    let text = fs::read_to_string(&place.unit).unwrap_or_default();
    let command = command_of(&text).unwrap_or_default();
    let server = server_of(&command, context);
    let address = server.as_ref().map(local_url);
    let answers = match &address {
        Some(address) if state.is_active() => version_at(address).await,
        _ => None,
    };
    ServiceJson {
        unit: place.name.clone(),
        scope: place.scope.name(),
        file: place.unit.clone(),
        state: if state.active.is_empty() { "unknown".to_owned() } else { state.active },
        sub_state: state.sub,
        since: state.since,
        starts: state.starts,
        pid: state.pid,
        restarts: state.restarts,
        command,
        address,
        answers,
        data_dir: server.and_then(|options| data_dir(options.data_dir).ok()),
        environment: place.environment.clone(),
    }
}

/// The settings of the server that a unit's command line starts, if it starts one.
pub(super) fn server_of(command: &str, context: ServiceContext<'_>) -> Option<ServeOptions> {
    let words = quoting::words(command)?;
    let (role, options) = options_of(words.get(1..)?, context)?;
    role.is_server().then_some(options)
}

/// The version of the Warren at an address, if one answers.
async fn version_at(url: &str) -> Option<String> {
    let warren = Warren::new(url, None).ok()?;
    Some(timeout(PATIENCE, warren.health()).await.ok()?.ok()?.version)
}

fn readable(service: &ServiceJson) -> String {
    let line = |name: &str, value: &str| format!("{name:<12} {value}");
    let mut lines = vec![
        line("unit", &format!("{} ({})", service.unit, service.scope)),
        line("file", &service.file.display().to_string()),
        line("state", &state(service)),
    ];
    lines.extend(service.pid.map(|pid| line("process", &pid.to_string())));
    lines.push(line("runs", &plain(&service.command)));
    if let Some(address) = &service.address {
        let answers = match &service.answers {
            Some(version) => format!("{address}, Warren {} answers", plain(version)),
            None => format!("{address}, does not answer"),
        };
        lines.push(line("address", &answers));
    }
    lines.extend(service.data_dir.iter().map(|data| line("data", &data.display().to_string())));
    lines.push(line("environment", &service.environment.display().to_string()));
    lines.join("\n")
}

fn state(service: &ServiceJson) -> String {
    let mut words = match service.sub_state.as_str() {
        "" => service.state.clone(),
        sub => format!("{} ({sub})", service.state),
    };
    if service.state == "unknown" {
        words.push_str(&format!(": {} does not run here", Manager::name()));
    }
    if !service.since.is_empty() && service.state == "active" {
        words.push_str(&format!(" since {}", service.since));
    }
    if service.restarts > 0 {
        words.push_str(&format!(", started again {} times", service.restarts));
    }
    if service.starts == "disabled" {
        words.push_str(", does not start with the machine");
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn service() -> ServiceJson {
        ServiceJson {
            unit: "warren.service".to_owned(),
            scope: "user",
            file: "/u/warren.service".into(),
            state: "active".to_owned(),
            sub_state: "running".to_owned(),
            since: "Thu 10:00".to_owned(),
            starts: "enabled".to_owned(),
            pid: Some(7),
            restarts: 0,
            command: "/bin/warren serve".to_owned(),
            address: Some("http://127.0.0.1:9178".to_owned()),
            answers: None,
            data_dir: Some("/d".into()),
            environment: "/e/warren.env".into(),
        }
    }

    #[test]
    fn a_service_is_shown_line_by_line() {
        let text = readable(&service());
        let expected = "\
unit         warren.service (user)
file         /u/warren.service
state        active (running) since Thu 10:00
process      7
runs         /bin/warren serve
address      http://127.0.0.1:9178, does not answer
data         /d
environment  /e/warren.env";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_state_says_what_is_not_well() {
        let mut service = service();
        (service.state, service.sub_state) = ("activating".to_owned(), "auto-restart".to_owned());
        (service.restarts, service.starts) = (3, "disabled".to_owned());
        let words =
            "activating (auto-restart), started again 3 times, does not start with the machine";
        assert_eq!(state(&service), words);
    }

    #[test]
    fn a_server_is_found_in_its_command_line_and_a_worker_is_none() {
        let (cli, file) = (crate::Cli::command(), daemon::ConfigFile::default());
        let context = ServiceContext { cli: &cli, file: &file };
        let server = server_of("\"/a b/warren\" serve --listen 127.0.0.1:7000", context).unwrap();
        assert_eq!(local_url(&server), "http://127.0.0.1:7000");
        assert!(server_of("/bin/warren worker", context).is_none());
        assert!(server_of("", context).is_none());
    }
}
