//! Rooms of a server, made and filled over HTTP as programs do.

use anyhow::{Context, Result};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::http1::Link;

/// The fields of a participant that matter here.
pub(crate) struct Participant<'a> {
    pub(crate) id: &'a str,
    pub(crate) nickname: &'a str,
    /// The address of its model server, which is never asked.
    pub(crate) endpoint: &'a str,
}

/// A participant's endpoint, in the form of stock participants.
pub(crate) const ENDPOINT: &str = "http://127.0.0.1:11434";

/// The id of a room's participant of this number, from 0 on.
pub(crate) fn id(number: u32) -> String {
    format!("p{number}")
}

pub(crate) async fn make(link: &mut Link) -> Result<String> {
    #[derive(Deserialize)]
    struct CreatedRoom {
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        room: Room,
    }
    #[derive(Deserialize)]
    struct Room {
        code: String,
    }
    let body = json!({ "name": "bench" }).to_string();
    let answer = link.exchange(Method::POST, "/v1/rooms", body.into()).await?;
    let made: CreatedRoom = serde_json::from_slice(&answer).context("an odd room")?;
    Ok(made.data.room.code)
}

/// Takes a participant into a room, or changes it. Watchers of the room are told either way.
pub(crate) async fn put(link: &mut Link, room: &str, participant: &Participant<'_>) -> Result<()> {
    let path = format!("/v1/rooms/{room}/participants/{}", participant.id);
    let body = json!({
        "nickname": participant.nickname,
        "model": "llama3.2:3b",
        "endpoint": participant.endpoint,
        "specs": { "gpu": "NVIDIA RTX 4090", "vram": 24, "ram": 64, "cpu": "AMD Ryzen 9 7950X" },
        "config": { "temperature": 0.7, "max_tokens": 2048 },
    });
    link.exchange(Method::PUT, &path, body.to_string().into()).await?;
    Ok(())
}
