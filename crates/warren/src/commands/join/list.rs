//! `warren join list` and `warren join forget`.

use clap::Args;
use client::ClientError;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::joined::{JoinedServer, JoinedServers};
use crate::commands::{
    say, say_json,
    table::{plain, show_list, table},
    words::count,
};

#[derive(Args)]
#[command(after_help = "Examples:\n  warren join list")]
pub(super) struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(
    after_help = "The server keeps this machine's key until `warren invite revoke` there.\n\n\
    Examples:\n  warren join forget gpu-box"
)]
pub(super) struct Forget {
    /// The server: its name, its id or its URL
    #[arg(value_name = "SERVER")]
    server: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let all = JoinedServers::new()?.all()?;
        let shown: Vec<Value> = all.iter().map(without_key).collect();
        let empty = "This machine has not joined a server. `warren invite` on a server's machine makes a code.";
        show_list(&shown, self.json, "servers", empty, |_| readable(&all))
    }
}

impl Forget {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let forgotten = JoinedServers::new()?.forget(&self.server).await?;
        if forgotten == 0 {
            let words = format!(
                "this machine joined no server {:?}: `warren join list` shows all",
                self.server
            );
            return Err(ClientError::NotFound { words }.into());
        }
        if self.json {
            return Ok(say_json(&json!({"forgotten": forgotten}))?);
        }
        let servers = count(u64::try_from(forgotten).unwrap_or(u64::MAX), "server");
        Ok(say(&format!("{servers} forgotten; there `warren invite revoke` takes the key back"))?)
    }
}

fn without_key(server: &JoinedServer) -> Value {
    json!({
        "id": server.id.to_string(),
        "name": server.name,
        "urls": server.urls,
        "fingerprint": server.fingerprint.map(|fingerprint| fingerprint.to_string()),
        "key_id": server.key_id,
        "machine": server.machine,
        "joined_at": server.joined_at,
    })
}

fn readable(all: &[JoinedServer]) -> String {
    let row = |server: &JoinedServer| {
        let joined = server.joined_at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d").to_string();
        let url = server.urls.first().map_or("-", String::as_str);
        vec![plain(&server.name), plain(url), plain(&server.machine), joined]
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    table(&["server", "url", "this machine", "joined"], &rows, 0)
}
