//! A request that is read: admitted, prepared for its likely provider, and made a job.

use std::sync::Arc;

use access::{Charge, Moment};
use base::{Endpoint, JobId, ModelName};
use bytes::Bytes;
use protocol::{room::selector::RESERVED, usage::AnswerCounter};
use scheduler::{Job, JobRequest, Meter, Usage};
use translate::{BadRequest, served_as};

use crate::{
    admission::Admission,
    answer::AdmittedJob,
    blocking::off_thread,
    content::{PeekedRequest, wire_size},
    error::ApiError,
    handling::Handling,
    models::served,
    request_scope::{RequestScope, Targets},
    shape::Shape,
    state::Api,
    translation::{Origin, Translation},
    uploads::HeldBody,
};

/// A request that is read and not yet admitted.
pub(crate) struct Draft {
    pub(crate) shape: &'static dyn Shape,
    pub(crate) id: JobId,
    pub(crate) scope: RequestScope,
    pub(crate) peeked: PeekedRequest,
    pub(crate) handling: Handling,
}

impl Draft {
    /// Admits the request and makes a job of it.
    ///
    /// # Errors
    /// The client's error.
    pub(crate) async fn accept(
        self,
        api: &Api,
        mut request: JobRequest,
        held: &mut HeldBody<'_>,
    ) -> Result<AdmittedJob, ApiError> {
        let targets = self.scope.resolve(api, &request.model)?;
        let (charge, now) = (self.charge(api, &targets.models), Moment::now());
        // Admitted before the body is worked on, so that a key over its limits causes no such work.
        let admission = Admission::new(self.scope.admitted(), self.id, charge, now).await?;
        let (shape, room) = (self.shape, self.scope.room().cloned());
        if room.is_none() && !self.peeked.peek.in_form {
            request.body = with_defaults(api, &request.model, request.body).await?;
        }
        let (model, streaming) = (request.model.clone(), request.streaming);
        let origin = Origin { job: self.id, accepted: now, model, streaming };
        let (peek, memory) = (self.peeked.peek.clone(), api.uploads().room_left());
        let translation = Arc::new(Translation::new(shape.endpoint(), origin, peek, memory));
        let prepared = prepare(api, &self, &translation, request, &targets.models).await?;
        if let Some(more) = &prepared.body {
            held.grow(prepared.request.body.len() + more.len()).await?;
        }
        let job = self.job(targets, prepared, &translation);
        let translation = Some(translation);
        Ok(AdmittedJob {
            translation,
            ..AdmittedJob::new(shape, job, admission, held.take(), room)
        })
    }

    /// The most that the request may cost, whichever model serves it. What members of a room lend costs nothing.
    fn charge(&self, api: &Api, models: &[ModelName]) -> Charge {
        let in_room = self.scope.room().is_some();
        let models = models.iter().filter(|_| !in_room).map(ModelName::as_str);
        let money = api.keys().prices().most(models, self.peeked.priced_tokens());
        Charge { tokens: self.peeked.tokens(), money }
    }

    fn may_use_clouds(&self) -> bool {
        self.scope.admitted().key.as_ref().is_none_or(|key| key.may_use_clouds())
    }

    fn job(self, targets: Targets, prepared: Preparation, translation: &Arc<Translation>) -> Job {
        let endpoint = self.shape.endpoint();
        let Handling { pinned, route, resumes, trace } = self.handling;
        let Preparation { request, body } = prepared;
        let sent = body.map_or(0, |body| wire_size(&body));
        Job {
            id: self.id,
            scope: self.scope.scope().clone(),
            model: targets.name,
            targets: targets.models,
            known: targets.known,
            endpoint,
            serve_as: served_as(endpoint),
            translator: Arc::<Translation>::clone(translation),
            key: self.scope.admitted().id.clone(),
            page_session: self.scope.admitted().page_session.clone(),
            size: self.peeked.size.max(sent),
            clouds: self.may_use_clouds(),
            affinity: self.peeked.affinity,
            pinned,
            lent: None,
            route,
            resumes,
            trace,
            request,
            meter: Box::new(UsageMeter::new(endpoint, self.peeked.prompt_tokens)),
        }
    }
}

/// The body, completed with the default parameters of its alias.
async fn with_defaults(api: &Api, model: &ModelName, body: Bytes) -> Result<Bytes, ApiError> {
    let aliases = api.aliases();
    let Some((_, alias)) = served::alias_of(api, &aliases, model) else { return Ok(body) };
    if alias.defaults.is_empty() {
        return Ok(body);
    }
    let defaults = alias.defaults.clone();
    off_thread(body.len(), move || defaults.complete(&body)).await
}

/// A request, and the translated body for its most likely provider, if it needs one.
struct Preparation {
    request: JobRequest,
    body: Option<Bytes>,
}

/// Prepares the body for a provider of the first target that is served now.
async fn prepare(
    api: &Api,
    draft: &Draft,
    translation: &Arc<Translation>,
    request: JobRequest,
    targets: &[ModelName],
) -> Result<Preparation, ApiError> {
    // Which model name a participant is asked for is known only when the job is assigned to it.
    let targets = targets.iter().filter(|target| !target.as_str().starts_with(RESERVED));
    let scope = draft.scope.scope();
    let endpoints =
        |target| (target, api.scheduler().endpoints(scope, target, draft.handling.route));
    let served = targets.map(endpoints).find(|(_, endpoints)| !endpoints.is_empty());
    let Some((model, endpoints)) = served else { return Ok(Preparation { request, body: None }) };
    let (translation, model, len) = (Arc::clone(translation), model.clone(), request.body.len());
    let preparing = move || {
        let body = translation.prepare(&request, &model, endpoints)?;
        Ok(Preparation { request, body })
    };
    off_thread(len, preparing).await?.map_err(|bad: BadRequest| ApiError::from(bad))
}

/// Reads usage from a copy of the answer, and estimates it if the answer does not report it.
struct UsageMeter(AnswerCounter);

impl UsageMeter {
    /// A meter for a request of this endpoint with about `prompt_tokens` tokens.
    fn new(endpoint: Endpoint, prompt_tokens: u64) -> Self {
        Self(AnswerCounter::new(endpoint, prompt_tokens))
    }
}

impl Meter for UsageMeter {
    fn feed(&mut self, chunk: &[u8]) {
        self.0.feed(chunk);
    }

    fn usage(&self) -> Usage {
        self.0.told()
    }

    fn has_text(&self) -> bool {
        self.0.has_text()
    }

    fn estimate(&self) -> Usage {
        Usage { estimated: true, ..self.0.estimate() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(endpoint: Endpoint, answer: &str) -> (Option<u64>, Option<u64>, bool) {
        let mut meter = UsageMeter::new(endpoint, 9);
        meter.feed(answer.as_bytes());
        let Usage { estimated, prompt_tokens, completion_tokens, .. } =
            meter.usage().or(meter.estimate());
        (prompt_tokens, completion_tokens, estimated)
    }

    #[test]
    fn reported_usage_counts_and_only_gaps_are_estimated() {
        let chat = Endpoint::ChatCompletions;
        let delta = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        assert_eq!(used(chat, &delta.repeat(3)), (Some(9), Some(3), true));
        let text = format!(
            "{delta}data: {{\"usage\":{{\"prompt_tokens\":0,\"completion_tokens\":0}}}}\n\n"
        );
        assert_eq!(used(chat, &text), (Some(0), Some(0), false));
        let half = r#"{"type":"message_start","message":{"usage":{"input_tokens":5}}}"#;
        assert_eq!(
            used(Endpoint::Messages, &format!("data: {half}\n\n")),
            (Some(5), Some(0), true)
        );
    }

    #[test]
    fn where_nothing_is_generated_nothing_is_counted() {
        let embedding = r#"{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":7}}"#;
        assert_eq!(used(Endpoint::Embeddings, embedding), (Some(7), None, false));
        assert_eq!(used(Endpoint::Embeddings, "{}"), (Some(9), None, true));
        let counted = meter_of_a_count();
        assert_eq!((counted.prompt_tokens, counted.completion_tokens), (None, None));
    }

    fn meter_of_a_count() -> Usage {
        let mut meter = UsageMeter::new(Endpoint::CountTokens, 9);
        meter.feed(br#"{"input_tokens":9}"#);
        meter.usage().or(meter.estimate())
    }
}
