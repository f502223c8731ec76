//! A guest of a room, by an invitation.

use anyhow::bail;
use base::{Fingerprint, Secret};
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

use super::whereabouts::{ATTEMPT, announced, is_elsewhere};
use crate::commands::{
    room::{join::Join, room_name::RoomName},
    say,
};

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

/// The URL of the room's server: one of those in the code, or one that mDNS finds.
async fn find(invitation: &Invitation, code: &str) -> anyhow::Result<String> {
    let pin = invitation.place.fingerprint;
    let known = invitation.place.urls();
    let mut failed = None;
    if let Some(url) = first_of(&known, code, pin, &mut failed).await? {
        return Ok(url);
    }
    let mut found = announced(invitation.server, pin.is_some()).await;
    found.retain(|url| !known.contains(url));
    if let Some(url) = first_of(&found, code, pin, &mut failed).await? {
        return Ok(url);
    }
    match failed {
        Some(error) => Err(error.into()),
        None => bail!("nobody says where the server of the room is"),
    }
}

/// The first URL at which the server answers for the room.
async fn first_of(
    urls: &[String],
    code: &str,
    pin: Option<Fingerprint>,
    failed: &mut Option<ClientError>,
) -> anyhow::Result<Option<String>> {
    for url in urls {
        let room = Warren::pinned(url, None, pin)?.room(code, None)?;
        let late = || ClientError::Late { url: url.clone(), after: ATTEMPT };
        match timeout(ATTEMPT, room.summary()).await.unwrap_or_else(|_| Err(late())) {
            Ok(_) => return Ok(Some(url.clone())),
            Err(error) if is_elsewhere(&error) => *failed = Some(error),
            // The server itself has refused.
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
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

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn another_program_at_an_address_does_not_end_the_search() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let _request = client.read(&mut [0; 4096]).await;
            let answer =
                b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nno";
            client.write_all(answer).await.unwrap();
        });
        let mut failed = None;
        let found = first_of(&[url], "swift-eagle-42", None, &mut failed).await.unwrap();
        assert_eq!(found, None);
        assert!(matches!(failed, Some(ClientError::NoRooms { .. })), "{failed:?}");
    }
}
