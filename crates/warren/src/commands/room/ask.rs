//! `warren room ask`.

use std::time::Instant;

use anyhow::{anyhow, bail};
use clap::Args;
use client::{AnswerEvents, ClientError, RoomClient, room::message::LlmRequest};
use daemon::{ConfigFile, signals};

use super::{
    hosts::Hosts,
    room_name::{Password, RoomName},
};
use crate::{commands::answer, exit::usage};

/// Ask a model in a room. All watchers of the room see the answer, token by token, unless you say --private
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room ask swift-eagle-42 'Why is the sky blue?'\n  \
    warren room ask swift-eagle-42 --model qwen3-8b --private 'Hello'")]
pub(crate) struct Ask {
    /// The room: one of its codes, or its URL
    #[arg(value_name = "CODE")]
    room: RoomName,
    /// What to ask; - is standard input
    #[arg(allow_hyphen_values = true)]
    prompt: String,
    /// Whom to ask: * for anybody, model:NAME for anybody with that model, or a participant's id
    #[arg(long, value_name = "SELECTOR", default_value = "*")]
    model: String,
    /// Show the answer to nobody else in the room
    ///
    /// The model's owner can read the question in any case.
    #[arg(long)]
    private: bool,
    /// Print each token, and the metrics at the end, as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    style: answer::Style,
    #[command(flatten)]
    password: Password,
    #[command(flatten)]
    hosts: Hosts,
}

impl Ask {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let prompt = answer::prompt(&self.prompt).map_err(usage)?;
        let found = self.hosts.find(file, &self.room).await?;
        let room = found.room(self.password.get())?;
        let stop = signals::shutdown()?;
        tokio::select! {
            // Dropping the answer hangs up, and so cancels the request.
            () = stop.cancelled() => bail!("cancelled"),
            answered = self.ask(&room, &prompt) => answered,
        }
    }

    async fn ask(&self, room: &RoomClient, prompt: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        let answering = self.begin(room, prompt).await?;
        answer::print(answering, began, self.json, self.style).await
    }

    async fn begin(&self, room: &RoomClient, prompt: &str) -> anyhow::Result<AnswerEvents> {
        if self.private {
            return Ok(room.ask_privately(&self.model, prompt).await?);
        }
        let request = LlmRequest {
            request_id: format!("cli-{:032x}", rand::random::<u128>()),
            target_id: self.model.clone(),
            prompt: prompt.to_owned(),
            options: None,
            room_code: None,
        };
        match room.ask(&request).await {
            Err(ClientError::NotFound { words }) if words.contains("Route not found") => Err(
                anyhow!("this server has no answers that a whole room sees: ask with --private"),
            ),
            answering => Ok(answering?),
        }
    }
}
