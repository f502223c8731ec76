//! `GET /rooms/{code}/v1/models`: first each participant, as stock clients expect, then each model by its name, for
//! clients that show only ids. A request names either of them by its id.

use std::collections::{BTreeMap, HashSet};

use axum::{
    Json,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use protocol::room::{Capabilities, Connection, ParticipantInfo};
use rooms::EntryError;
use serde::Serialize;

use super::{Code, request_scope};
use crate::{error::ApiError, head::new_id, refuse::refuse, shape::in_room::ALL, state::Api};

#[derive(Serialize)]
struct List {
    object: &'static str,
    data: Vec<Model>,
}

/// A participant, or a model of a participant. Clients request it by its id. Stock clients show its `gambi`, which
/// models outside rooms do not have.
#[derive(Serialize, Clone)]
struct Model {
    id: String,
    object: &'static str,
    /// When the participant joined, in seconds since 1970.
    created: u64,
    owned_by: String,
    gambi: Details,
}

#[derive(Serialize, Clone)]
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
        Err(_) => Err(EntryError::Unknown.into()),
    };
    let entered = entered.and_then(|request_scope| {
        request_scope.room().cloned().ok_or(ApiError::from(EntryError::Unknown))
    });
    match entered {
        Ok(room) => Json(List::of(room.participants())).into_response(),
        Err(error) => refuse(&ALL[0], &api, &parts, body, &error, new_id()).await,
    }
}

impl List {
    fn of(participants: Vec<ParticipantInfo>) -> Self {
        let mut connected = participants;
        connected.retain(|one| one.connection.connected);
        let models = by_name(&connected);
        Self { object: "list", data: connected.into_iter().map(Model::of).chain(models).collect() }
    }
}

/// The models of participants by their names, each with the facts of the first participant that offers it. A name that
/// is also a participant's id is left out: it means that participant.
fn by_name(participants: &[ParticipantInfo]) -> Vec<Model> {
    let ids: HashSet<&str> = participants.iter().map(|one| one.id.as_str()).collect();
    let mut named = BTreeMap::new();
    for one in participants {
        for name in std::iter::once(&one.model).chain(&one.models) {
            if !ids.contains(name.as_str()) {
                named.entry(name).or_insert(one);
            }
        }
    }
    named.into_iter().map(|(name, one)| Model::of(one.clone()).named(name)).collect()
}

impl Model {
    /// The same under the name of this model.
    fn named(self, model: &str) -> Self {
        let gambi = Details { model: model.to_owned(), ..self.gambi };
        Self { id: model.to_owned(), gambi, ..self }
    }

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
