//! `warren version`: this program's version, and that of the server.

use std::{env::consts, time::Duration};

use clap::Args;
use client::Warren;
use daemon::{ConfigFile, VERSION};
use serde::Serialize;
use tokio::time::timeout;

use super::{run_client, say, say_json, table::plain, target::RunningServer};

/// The commit that this program was built from, if the build names it.
const COMMIT: Option<&str> = option_env!("WARREN_COMMIT");

/// The longest time in which the server has to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Show the version of this program, and of the server
#[derive(Args)]
#[command(
    after_help = "Examples:\n  warren version\n  warren version --json --server https://box.lan:9178"
)]
pub(crate) struct Version {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

/// This program, and the server.
#[derive(Debug, Serialize)]
struct VersionJson {
    version: &'static str,
    commit: Option<&'static str>,
    target: String,
    /// `release` or `debug`.
    build: &'static str,
    server: ServerVersion,
}

#[derive(Debug, Serialize)]
struct ServerVersion {
    url: String,
    /// The version; `None` if no server answers.
    version: Option<String>,
}

impl Version {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        run_client(self.show(file))
    }

    async fn show(self, file: &ConfigFile) -> anyhow::Result<()> {
        // The version is no secret: no token is needed, and none is sent.
        let warren = Warren::new(&self.server.url(&file.serve), None)
            .map_err(|error| crate::exit::usage(error.into()))?;
        let health = timeout(PATIENCE, warren.health()).await.ok().and_then(Result::ok);
        let server =
            ServerVersion { url: warren.url(), version: health.map(|health| health.version) };
        let (commit, target) = (COMMIT.filter(|commit| !commit.is_empty()), target());
        let all = VersionJson { version: VERSION, commit, target, build: build(), server };
        Ok(if self.json { say_json(&all) } else { say(&readable(&all)) }?)
    }
}

/// The machine that this program is for.
pub(super) fn target() -> String {
    let library = if cfg!(target_env = "musl") { "-musl" } else { "" };
    format!("{}-{}{library}", consts::ARCH, consts::OS)
}

fn build() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

fn readable(all: &VersionJson) -> String {
    let commit = all.commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    let mut text = format!("warren {}{commit}, {}, {}", all.version, all.target, all.build);
    let url = plain(&all.server.url);
    match &all.server.version {
        None => text.push_str(&format!("\nno server answers at {url}")),
        Some(version) => {
            text.push_str(&format!("\nserver {} at {url}", plain(version)));
            if version != all.version {
                text.push_str(
                    "\nThey differ: a server goes on with the old version until it is restarted.",
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(server: Option<&str>) -> String {
        readable(&VersionJson {
            version: "0.2.0",
            commit: Some("abc"),
            target: "x86_64-linux".to_owned(),
            build: "release",
            server: ServerVersion {
                url: "http://h".to_owned(),
                version: server.map(str::to_owned),
            },
        })
    }

    #[test]
    fn a_server_of_another_version_is_pointed_out() {
        let own = "warren 0.2.0 (abc), x86_64-linux, release\n";
        assert_eq!(with(Some("0.2.0")), format!("{own}server 0.2.0 at http://h"));
        assert!(with(Some("0.1.0")).contains("They differ"));
        assert_eq!(with(None), format!("{own}no server answers at http://h"));
    }
}
