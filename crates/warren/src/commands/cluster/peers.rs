//! `warren cluster peers`.

use clap::{Args, Subcommand};
use client::ClientError;
use daemon::ConfigFile;
use serde_json::json;

use crate::commands::{say, say_json, table::plain, workspace::Output};

/// List the addresses that a machine dials, or change them
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Changes outlive a restart, and count more than --peer of `warren serve`. \
    Addresses that machines learn from each other are dialled, too, and are not listed here.\n\n\
    Examples:\n  \
    warren cluster peers\n  \
    warren cluster peers add 192.168.1.20:9179\n  \
    warren cluster peers remove 192.168.1.20:9179")]
pub(super) struct Peers {
    #[command(subcommand)]
    change: Option<Change>,
    #[command(flatten)]
    output: Output,
}

#[derive(Subcommand)]
enum Change {
    /// Dial one more address
    #[command(after_help = "Examples:\n  \
        warren cluster peers add 192.168.1.20:9179")]
    Add(One),
    /// Dial an address no more, and hang up
    #[command(after_help = "Examples:\n  \
        warren cluster peers remove 192.168.1.20:9179")]
    #[command(visible_alias = "rm")]
    Remove(One),
}

#[derive(Args)]
struct One {
    /// The peer port of another machine, or a ws:// or wss:// URL
    #[arg(value_name = "HOST:PORT")]
    address: String,
    #[command(flatten)]
    output: Output,
}

impl Peers {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self.change {
            None => {
                let mut workspace = self.output.server.connect(file).await?;
                tell(&workspace.cluster_config().await?.peers, self.output.json)
            }
            Some(Change::Add(one)) => one.change(file, |all, it| Ok(with(all, it))).await,
            Some(Change::Remove(one)) => one.change(file, without).await,
        }
    }
}

impl One {
    async fn change(
        self,
        file: &ConfigFile,
        changed: impl FnOnce(Vec<String>, &str) -> Result<Vec<String>, ClientError>,
    ) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let before = workspace.cluster_config().await?.peers;
        workspace.set_peers(changed(before, &self.address)?).await?;
        tell(&workspace.cluster_config().await?.peers, self.output.json)
    }
}

fn with(mut peers: Vec<String>, address: &str) -> Vec<String> {
    if !peers.iter().any(|peer| peer == address) {
        peers.push(address.to_owned());
    }
    peers
}

fn without(mut peers: Vec<String>, address: &str) -> Result<Vec<String>, ClientError> {
    let before = peers.len();
    peers.retain(|peer| peer != address);
    if peers.len() == before {
        let words = format!("there is no peer {} to remove", plain(address));
        return Err(ClientError::NotFound { words });
    }
    Ok(peers)
}

fn tell(peers: &[String], json: bool) -> anyhow::Result<()> {
    if json {
        return Ok(say_json(&json!({"peers": peers}))?);
    }
    match peers {
        [] => say("no address is dialled")?,
        peers => peers.iter().try_for_each(|peer| say(&plain(peer)))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_added_once_and_removed_if_it_is_there() {
        let peers = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        assert_eq!(with(peers(&["a:1"]), "b:1"), peers(&["a:1", "b:1"]));
        assert_eq!(with(peers(&["a:1"]), "a:1"), peers(&["a:1"]));
        assert_eq!(without(peers(&["a:1", "b:1"]), "a:1"), Ok(peers(&["b:1"])));
        assert!(without(peers(&["a:1"]), "b:1").unwrap_err().is_not_found());
    }
}
