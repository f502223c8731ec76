//! `GET /rooms/{code}/v1/models`: one model for each participant.

use axum::{
    Json,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use protocol::room::{Capabilities, Connection, ParticipantInfo};
use rooms::Refused;
use serde::Serialize;

use super::{Code, request_scope};
use crate::{consume::refuse, error::ApiError, head::new_id, shape::in_room::ALL, state::Api};

#[derive(Serialize)]
struct List {
    object: &'static str,
    data: Vec<Model>,
}

/// One participant as a model: clients request it by its id, and stock clients show its `gambi`.
#[derive(Serialize)]
struct Model {
    id: String,
    object: &'static str,
    /// When it joined, in seconds since 1970.
    created: u64,
    owned_by: String,
    gambi: Details,
}

#[derive(Serialize)]
struct Details {
    nickname: String,
    model: String,
    endpoint: String,
    capabilities: Capabilities,
    connection: Connection,
}

pub(super) async fn list(State(api): State<Api>, code: Code, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let entered = match code {
        Ok(Path(code)) => request_scope(&api, &code, &parts).await,
        Err(_) => Err(Refused::Unknown.into()),
    };
    let entered = entered.and_then(|request_scope| {
        request_scope.room().cloned().ok_or(ApiError::from(Refused::Unknown))
    });
    match entered {
        Ok(room) => Json(List::of(room.participants())).into_response(),
        Err(error) => refuse(&ALL[0], &api, &parts, body, &error, new_id()).await,
    }
}

impl List {
    fn of(participants: Vec<ParticipantInfo>) -> Self {
        let connected = participants.into_iter().filter(|one| one.connection.connected);
        Self { object: "list", data: connected.map(Model::of).collect() }
    }
}

impl Model {
    fn of(participant: ParticipantInfo) -> Self {
        Self {
            id: participant.id,
            object: "model",
            created: participant.joined_at / 1000,
            owned_by: participant.nickname.clone(),
            gambi: Details {
                nickname: participant.nickname,
                model: participant.model,
                endpoint: participant.endpoint,
                capabilities: participant.capabilities,
                connection: participant.connection,
            },
        }
    }
}
