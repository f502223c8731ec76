//! Makes a job for one of the models here from a message.

use base::{Endpoint, JobId, KeyId, ModelName, Scope};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use protocol::{
    json::clip,
    mesh::cluster::{ErrorCode, InferenceRequest},
    openai::{BadBody, Streamed, streamed},
    usage::prompt_tokens,
    via::{Marks, VIA},
};
use rand::RngExt;
use scheduler::{Affinity, Job, JobRequest, Route, Scheduler};

use super::meter::Cost;
use crate::{
    facts::ServedModels,
    peer::PeerId,
    share::{Refusal, Share},
};

/// The header that tells a backend which is a Warren itself not to send the request on.
const ROUTE: HeaderName = HeaderName::from_static("x-warren-route");

/// The endpoint that peers ask for.
const CHAT: Endpoint = Endpoint::ChatCompletions;

/// A request that can be served here.
pub(super) struct LocalRequest {
    /// The model's name in the request, as JSON. The chunks of the answer have the same name.
    pub(super) requested_model: String,
    /// Whether the peer wants a chunk with the usage.
    pub(super) asked_usage: bool,
    pub(super) model: ModelName,
    body: Bytes,
    /// The servers that it has passed, including this one.
    via: String,
    prompt_tokens: u64,
    affinity: Affinity,
}

/// The key under which the ledger counts a peer's requests.
pub(super) fn key(peer: &PeerId) -> String {
    format!("peer:{peer}")
}

/// Reads a request. This takes long for a large one.
///
/// # Errors
/// When it is not a valid request, when its model is not available here, or when it has passed this
/// server before.
pub(super) fn prepare(
    request: &InferenceRequest,
    scheduler: &Scheduler,
    share: &Share,
    marks: &Marks,
) -> Result<LocalRequest, Refusal> {
    let via = marks.pass(&Scope::server(), request.via.as_deref()).map_err(Refusal::looped)?;
    let body = Bytes::copy_from_slice(request.request.get().as_bytes());
    let requested = protocol::openai::peek(&body).map_err(|bad| bad_body(&bad))?.model;
    let model = find(&requested, scheduler, share)?;
    let Streamed { body, peek, asked_usage } =
        streamed(&body, Some(model.as_str())).map_err(|bad| bad_body(&bad))?;
    let [tools, instructions, prompt] = peek.prompt_parts(request.request.get().as_bytes());
    Ok(LocalRequest {
        requested_model: serde_json::Value::from(requested).to_string(),
        asked_usage,
        prompt_tokens: prompt_tokens(&body),
        affinity: Affinity::of(&[tools, instructions], prompt),
        model,
        body,
        via,
    })
}

impl LocalRequest {
    /// The job. It goes only to this machine's own providers, and does not wait for one to join.
    pub(super) fn job(self, peer: &PeerId, cost: &Cost) -> Job {
        let request = JobRequest {
            method: Method::POST,
            path_and_query: CHAT.path().to_owned(),
            model: self.model.clone(),
            streaming: true,
            headers: headers(&self.via),
            body: self.body,
        };
        let id = JobId::from_random(rand::rng().random());
        let meter = cost.meter(self.prompt_tokens);
        Job {
            key: KeyId::from(key(peer)),
            affinity: self.affinity,
            route: Route::LocalOnly,
            known: false,
            ..Job::new(id, CHAT, request, meter)
        }
    }
}

fn headers(via: &str) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ROUTE, HeaderValue::from_static(Route::LocalOnly.as_str())),
    ]);
    // Marks have only digits and commas, so this never fails.
    if let Ok(via) = HeaderValue::from_str(via) {
        headers.insert(VIA, via);
    }
    headers
}

fn find(requested: &str, scheduler: &Scheduler, share: &Share) -> Result<ModelName, Refusal> {
    // Usually the name is right. The list of all models is made only if it is not.
    let exact = ModelName::from(requested);
    let here = scheduler.endpoints(&Scope::server(), &exact, Route::LocalOnly);
    if here.contains(CHAT) && share.offers(requested) && !exact.is_wildcard() {
        return Ok(exact);
    }
    let models = ServedModels::of(&scheduler.status(), share).models;
    best_match(requested, &models)
        .map(ModelName::from)
        .ok_or_else(|| not_loaded(requested, &models))
}

/// The model that a name stands for: the one with this name; or else the first whose name differs
/// only in case; or else the first whose last part is the same.
///
/// Names in the mesh are often those of files or repositories. For the peer that asks,
/// `org/Qwen3-8B` and `qwen3-8b` are the same model.
fn best_match<'a>(requested: &str, models: &'a [String]) -> Option<&'a str> {
    let by =
        |same: &dyn Fn(&str) -> bool| models.iter().map(String::as_str).find(|model| same(model));
    let last = last_part(requested);
    by(&|model| model == requested)
        .or_else(|| by(&|model| model.eq_ignore_ascii_case(requested)))
        .or_else(|| by(&|model| last_part(model).eq_ignore_ascii_case(last)))
}

fn last_part(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

fn not_loaded(requested: &str, models: &[String]) -> Refusal {
    let shown = &models[..models.len().min(20)];
    let words =
        format!("model '{}' not loaded on this node (loaded: {shown:?})", clip(requested, 256));
    Refusal::new(ErrorCode::ModelNotLoaded, words)
}

fn bad_body(bad: &BadBody) -> Refusal {
    Refusal::bad_request(400, &bad.to_string(), bad.param())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_matches_and_no_part_of_one() {
        let models = ["Org/M-8b", "m-8B", "other/m-8b", "org/x"].map(str::to_owned);
        let table = [
            ("m-8B", Some("m-8B")),
            ("org/m-8b", Some("Org/M-8b")),
            ("M-8B", Some("m-8B")),
            ("new/M-8B", Some("Org/M-8b")),
            ("X", Some("org/x")),
            ("m", None),
            ("m-8", None),
            ("", None),
        ];
        for (requested, expected) in table {
            assert_eq!(best_match(requested, &models), expected, "{requested}");
        }
    }
}
