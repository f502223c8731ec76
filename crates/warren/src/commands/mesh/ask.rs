//! `warren mesh ask`.

use std::time::Instant;

use anyhow::{Context, bail};
use base::Secret;
use clap::Args;
use client::{ClientError, Warren, admin::mesh::MeshPeer};
use daemon::{ConfigFile, signals};
use protocol::model_use::is_for_chat;
use serde_json::json;

use crate::{
    commands::{answer, target::RunningServer},
    exit::usage,
};

/// Ask a model, at this machine's server or at a peer, whichever is fastest. The peer that answers reads
/// the question
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren mesh ask --model qwen3-8b 'Why is the sky blue?'")]
pub(crate) struct Ask {
    /// What to ask; - is standard input
    #[arg(allow_hyphen_values = true)]
    prompt: String,
    /// The model [default: one for chat of the fastest peer]
    ///
    /// Without peers the first such that the server lists.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// A key for the server, where it asks for one
    #[arg(long, env = "WARREN_TOKEN", value_name = "KEY", hide_env_values = true)]
    token: Option<Secret>,
    /// Print each token, and the metrics at the end, as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    style: answer::Style,
    #[command(flatten)]
    server: RunningServer,
}

impl Ask {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let prompt = answer::prompt(&self.prompt).map_err(usage)?;
        let servers = self.server.lookup(&file.serve).servers();
        servers.check()?;
        let warren = Warren::new(servers.first(), self.token.as_ref());
        let warren = warren.map_err(|error| usage(error.into()))?;
        let stop = signals::shutdown()?;
        tokio::select! {
            // Dropping the answer hangs up, and so cancels the request.
            () = stop.cancelled() => bail!("cancelled"),
            answered = self.ask(&warren, file, &prompt) => answered,
        }
    }

    async fn ask(&self, warren: &Warren, file: &ConfigFile, prompt: &str) -> anyhow::Result<()> {
        let model = match &self.model {
            Some(model) => model.clone(),
            None => self.choose(warren, file).await?,
        };
        let body = json!({
            "model": model,
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": [{"role": "user", "content": prompt}],
        });
        let began = Instant::now();
        let routed = warren.routed("mesh")?;
        let answering = routed.post("/v1/chat/completions", serde_json::to_vec(&body)?).await?;
        answer::print(answering, began, self.json, self.style).await
    }

    async fn choose(&self, warren: &Warren, file: &ConfigFile) -> anyhow::Result<String> {
        // Only the administrator sees the peers. For others, the server's list of models is used.
        if let Ok(admin) = self.server.warren(&file.serve)
            && let Ok(peers) = admin.mesh_peers().await
            && let Some(model) = of_the_fastest(&peers.peers)
        {
            return Ok(model.to_owned());
        }
        let listed = warren.model_ids().await.context("asking which models there are")?;
        let words = "neither the server nor a peer of it serves a model for chat now".to_owned();
        let mut chat = listed.into_iter().filter(|model| is_for_chat(model));
        chat.next().ok_or_else(|| ClientError::NotFound { words }.into())
    }
}

/// The first model for chat of the fastest peer that has one and answers now.
fn of_the_fastest<'a>(peers: &'a [MeshPeer]) -> Option<&'a str> {
    let speed = |peer: &MeshPeer| {
        peer.tokens_per_second.unwrap_or(0.0) * f64::from(peer.throttle.min(100)) / 100.0
    };
    let ready = peers.iter().filter(|peer| peer.status == "ok");
    let chat = |peer: &'a MeshPeer| peer.models.iter().find(|model| is_for_chat(model));
    let serving = ready.filter_map(|peer| Some((speed(peer), chat(peer)?)));
    let (_, model) = serving.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    Some(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_peer_that_answers_is_asked() {
        let peer = |model: &str, status: &str, speed, throttle| MeshPeer {
            models: vec![model.to_owned()],
            status: status.to_owned(),
            tokens_per_second: speed,
            throttle,
            ..MeshPeer::default()
        };
        let peers = [
            peer("slow", "ok", None, 100),
            peer("hot", "ok", Some(50.0), 20),
            peer("fast", "ok", Some(20.0), 100),
            peer("gone", "degraded", Some(90.0), 100),
            MeshPeer { models: Vec::new(), ..peer("", "ok", Some(99.0), 100) },
            peer("nomic-embed-text", "ok", Some(99.0), 100),
        ];
        assert_eq!(of_the_fastest(&peers), Some("fast"));
        assert_eq!(of_the_fastest(&peers[3..]), None);
        let mixed = MeshPeer {
            models: vec!["bge-m3".to_owned(), "qwen3:8b".to_owned()],
            ..peer("", "ok", None, 100)
        };
        assert_eq!(of_the_fastest(&[mixed]), Some("qwen3:8b"));
    }
}
