//! A guest of a room, by an invitation.

use std::time::Duration;

use anyhow::bail;
use base::Secret;
use client::{
    ClientError, Warren,
    invitation::{Invitation, Purpose},
};
use daemon::{
    ConfigFile,
    options::{ProcessOptions, WorkerOptions},
};
use tokio::time::timeout;
use worker::find_local;

use super::whereabouts::announced;
use crate::commands::{
    room::{join::Join, room_name::RoomName},
    say,
};

/// The longest time of an attempt at one address.
const ATTEMPT: Duration = Duration::from_secs(8);

/// Lends to the room until it is stopped; a machine without a model shows how to ask.
pub(super) async fn join(
    invitation: Invitation,
    options: &WorkerOptions,
    process: ProcessOptions,
    file: &ConfigFile,
) -> anyhow::Result<()> {
    let Purpose::Room { code, password } = &invitation.purpose else { return Ok(()) };
    let url = find(&invitation, code).await?;
    let named = options.demo == Some(true) || options.backend.is_some();
    if !named && find_local().await.is_empty() {
        return Ok(say(&how_to_ask(&url, code, password.as_ref()))?);
    }
    let pin = invitation.place.fingerprint;
    let room = RoomName { server: Some(url), pin, code: code.clone() };
    Join::invited(room, password.clone(), options, process).run(file).await
}

/// The URL of the room's server.
async fn find(invitation: &Invitation, code: &str) -> anyhow::Result<String> {
    let pin = invitation.place.fingerprint;
    let known = invitation.place.urls();
    let mut failed = None;
    for at in [known, announced(invitation.server, pin.is_some()).await] {
        for url in at {
            let room = Warren::pinned(&url, None, pin)?.room(code, None)?;
            match timeout(ATTEMPT, room.summary()).await {
                Ok(Ok(_)) => return Ok(url),
                Ok(Err(error)) if !error.is_unreachable() => return Err(error.into()),
                Ok(Err(error)) => failed = Some(error),
                Err(_) => failed = Some(ClientError::Late { url, after: ATTEMPT }),
            }
        }
    }
    match failed {
        Some(error) => Err(error.into()),
        None => bail!("nobody says where the server of the room is"),
    }
}

fn how_to_ask(url: &str, code: &str, password: Option<&Secret>) -> String {
    let (key, option) = match password {
        Some(_) => ("the room's password", " --password PASSWORD"),
        None => ("any", ""),
    };
    format!(
        "There is no model server on this machine to lend (Ollama, llama.cpp, vLLM, LM Studio), so nothing is lent.\n\
         The room's models answer you all the same:\n\n  \
           warren room ask {url}/rooms/{code}{option} \"What is Warren?\"\n\n\
         or in any OpenAI client: base URL {url}/rooms/{code}/v1, key: {key}."
    )
}
