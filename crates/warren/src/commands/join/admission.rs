//! The exchange of an invitation's secret for a key, at the server that made it.

use anyhow::bail;
use client::{
    ClientError, Warren,
    invitation::{Invitation, InvitationSecret, messages::JoinAnswer},
};
use jiff::Timestamp;
use tokio::time::timeout;

use super::{
    joined::{JoinedServer, JoinedServers},
    whereabouts::{ATTEMPT, announced, is_elsewhere},
};
use crate::commands::{note, say, table::plain};

/// Joins, and remembers the server.
pub(super) async fn join(
    invitation: &Invitation,
    secret: &InvitationSecret,
    machine: &str,
) -> anyhow::Result<JoinedServer> {
    // Before the code is used up: a server that cannot be remembered must not be joined.
    let servers = JoinedServers::new()?;
    servers.all()?;
    let (url, answer) = find(invitation, secret, machine).await?;
    let JoinAnswer { key, key_id, name, server_name } = answer;
    let mut urls = invitation.place.urls();
    urls.retain(|other| *other != url);
    urls.insert(0, url.clone());
    let server = JoinedServer {
        id: invitation.server,
        name: server_name,
        urls,
        fingerprint: invitation.place.fingerprint,
        key_id,
        key,
        machine: name,
        joined_at: Timestamp::now(),
    };
    servers.keep(server.clone()).await?;
    let (name, machine) = (plain(&server.name), plain(&server.machine));
    say(&format!("joined {name} at {url} as {machine}"))?;
    if url.starts_with("http:") {
        note(
            "Without TLS everybody in the network between can read this machine's key and all prompts.",
        );
    }
    Ok(server)
}

/// Joins at the first address where the server is: those in the code, then those that mDNS finds.
async fn find(
    invitation: &Invitation,
    secret: &InvitationSecret,
    machine: &str,
) -> anyhow::Result<(String, JoinAnswer)> {
    let known = invitation.place.urls();
    let mut failed = Vec::new();
    if let Some(joined) = first_of(&known, invitation, secret, machine, &mut failed).await? {
        return Ok(joined);
    }
    let mut found = announced(invitation.server, invitation.place.fingerprint.is_some()).await;
    found.retain(|url| !known.contains(url));
    if let Some(joined) = first_of(&found, invitation, secret, machine, &mut failed).await? {
        return Ok(joined);
    }
    let words = format!(
        "the server is at none of the addresses in the code, and mDNS does not find it in this network. Is this \
         machine in the same network, and does the server listen there (--listen 0.0.0.0:9178)?\n  {}",
        failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
    );
    match failed.into_iter().next() {
        Some(first) => Err(anyhow::Error::from(first).context(words)),
        None => bail!(words),
    }
}

async fn first_of(
    urls: &[String],
    invitation: &Invitation,
    secret: &InvitationSecret,
    machine: &str,
    failed: &mut Vec<ClientError>,
) -> anyhow::Result<Option<(String, JoinAnswer)>> {
    for url in urls {
        let warren = Warren::pinned(url, None, invitation.place.fingerprint)?;
        let late = || ClientError::Late { url: url.clone(), after: ATTEMPT };
        match timeout(ATTEMPT, warren.join(secret, machine)).await.unwrap_or_else(|_| Err(late())) {
            Ok(answer) => return Ok(Some((url.clone(), answer))),
            Err(error) if is_elsewhere(&error) => failed.push(error),
            // The server itself has refused.
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
