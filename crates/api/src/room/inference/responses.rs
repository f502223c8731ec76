//! `/rooms/{code}/v1/responses/{id}` and below: an earlier response, fetched again from the
//! participant that made it.

use std::{sync::Arc, time::Instant};

use access::{Charge, Moment};
use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use base::{Endpoint, Endpoints, JobId, ModelName, ProviderId};
use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, request::Parts};
use protocol::room::selector;
use rooms::{EntryError, Room};
use scheduler::{Affinity, Job, JobRequest, Meter, Route, Untranslated, Usage};

use super::request_scope;
use crate::{
    admission::Admission,
    answer::{AdmittedJob, answer},
    error::{ApiError, Kind},
    head,
    head::new_id,
    paths,
    refuse::refuse,
    request_scope::{RequestScope, disconnected},
    response_makers::Maker,
    room::access::parameter,
    shape::in_room::RESPONSES,
    state::Api,
    uploads::HeldMemory,
};

type Named = Result<Path<(String, String)>, PathRejection>;

/// Shows a response or its input items, or cancels it. The participant gets the same method and
/// path.
pub(super) async fn show(State(api): State<Api>, named: Named, request: Request) -> Response {
    ask_maker(&api, named, request).await.0
}

/// Asks the participant that made a response to delete it.
pub(super) async fn delete(State(api): State<Api>, named: Named, request: Request) -> Response {
    let (response, found) = ask_maker(&api, named, request).await;
    if let Some((room, id)) = found.filter(|_| response.status().is_success()) {
        api.response_makers().forget(room.id(), &id);
    }
    response
}

/// The participant's answer, with the room and the id of the response that it concerns; only the answer if it is
/// refused.
async fn ask_maker(
    api: &Api,
    named: Named,
    request: Request,
) -> (Response, Option<(Arc<Room>, String)>) {
    let (parts, body) = request.into_parts();
    let job = new_id();
    let found = match named {
        Ok(Path((code, id))) => found(api, &code, id, &parts).await,
        Err(_) => Err(EntryError::Unknown.into()),
    };
    let accepted = match found {
        Ok(found) => found.accepted(api, &parts, job).await,
        Err(error) => Err(error),
    };
    match accepted {
        Ok((accepted, room, id)) => {
            let answered = answer(api, accepted);
            let answered = answered.await.map_err(of_maker_gone);
            let response = answered.unwrap_or_else(|error| error.response(&RESPONSES, job));
            (response, Some((room, id)))
        }
        Err(error) => (refuse(&RESPONSES, api, &parts, body, &error, job).await, None),
    }
}

struct StoredResponse {
    request_scope: RequestScope,
    room: Arc<Room>,
    provider: ProviderId,
    id: String,
}

async fn found(
    api: &Api,
    code: &str,
    id: String,
    parts: &Parts,
) -> Result<StoredResponse, ApiError> {
    let request_scope = request_scope(api, code, parts).await?;
    let room = request_scope.room().cloned().ok_or(EntryError::Unknown)?;
    match api.response_makers().maker(room.id(), &id, Instant::now()) {
        Some(Maker::Provider(provider)) => Ok(StoredResponse { request_scope, room, provider, id }),
        Some(Maker::Translation) => Err(translated()),
        None => {
            let words = "Response not found";
            Err(ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words))
        }
    }
}

impl StoredResponse {
    async fn accepted(
        self,
        api: &Api,
        parts: &Parts,
        id: JobId,
    ) -> Result<(AdmittedJob, Arc<Room>, String), ApiError> {
        let via = head::via(api.marks(), api.via(), self.request_scope.scope(), &parts.headers)?;
        let admitted = self.request_scope.admitted();
        let admission = Admission::new(admitted, id, Charge::default(), Moment::now()).await?;
        let job = self.job(request(parts, via), id);
        let (room, memory) = (Some(Arc::clone(&self.room)), HeldMemory::none());
        Ok((AdmittedJob::new(&RESPONSES, job, admission, memory, room), self.room, self.id))
    }

    fn job(&self, request: JobRequest, id: JobId) -> Job {
        Job {
            id,
            scope: self.request_scope.scope().clone(),
            model: request.model.clone(),
            targets: vec![selector::EVERY.into()],
            known: true,
            endpoint: Endpoint::Responses,
            serve_as: Endpoints::only(Endpoint::Responses),
            translator: Arc::new(Untranslated(Endpoint::Responses)),
            key: self.request_scope.admitted().id.clone(),
            page_session: self.request_scope.admitted().page_session.clone(),
            size: 0,
            affinity: Affinity::default(),
            pinned: Some(self.provider),
            lent: None,
            route: Route::default(),
            clouds: false,
            resumes: false,
            trace: None,
            request,
            meter: Box::new(NoMeter),
        }
    }
}

/// The client's request without a body: these requests have none.
fn request(parts: &Parts, via: Option<HeaderValue>) -> JobRequest {
    let path_and_query = paths::without_room(&parts.uri);
    let streaming = parts.method == Method::GET
        && parameter(&parts.uri, "stream").is_some_and(|value| value == "true");
    JobRequest {
        method: parts.method.clone(),
        path_and_query,
        model: ModelName::from("*"),
        streaming,
        headers: head::put_via(head::for_provider(parts.headers.clone()), via),
        body: Bytes::new(),
    }
}

/// Turns the error for a missing model into that for a missing participant: only the response's maker can answer.
fn of_maker_gone(error: ApiError) -> ApiError {
    if error.code == Some("model_not_found") { disconnected() } else { error }
}

fn translated() -> ApiError {
    let words = "this response was created via chat/completions fallback, or another API's, and is \
                 kept nowhere: a participant whose backend has the Responses API itself keeps its own";
    ApiError::new(StatusCode::NOT_IMPLEMENTED, Kind::Invalid, words)
}

/// Counts nothing: a response that is shown again was counted when it was made.
struct NoMeter;

impl Meter for NoMeter {
    fn feed(&mut self, _: &[u8]) {}

    fn usage(&self) -> Usage {
        Usage::default()
    }
}
