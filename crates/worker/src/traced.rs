//! The spans of requests to a backend, of jobs whose server traces them.

use std::time::SystemTime;

use base::Endpoint;
use http::{HeaderMap, HeaderValue, StatusCode};
use traces::{
    Span, SpanKind, TRACEPARENT, TraceContext, Traces,
    times::{nanoseconds, new_span},
};

use crate::order::Order;

/// The span of a request to a backend. Its drop ends and records it, because a job may be ended by a drop as
/// well.
pub(crate) struct BackendSpan {
    traces: Traces,
    span: Span,
    /// Whether the answer was complete.
    is_whole: bool,
}

impl BackendSpan {
    /// Begins the span of an order, if the order belongs to a sampled trace. The backend gets this span as
    /// its parent.
    pub(crate) fn begin(
        traces: Option<&Traces>,
        place: &str,
        order: &mut Order,
    ) -> Option<Box<Self>> {
        let traces = traces?;
        let parent = given(&order.headers).filter(|parent| parent.sampled)?;
        let own = TraceContext { span: new_span(), ..parent };
        if let Ok(value) = HeaderValue::try_from(own.to_string()) {
            order.headers.insert(TRACEPARENT, value);
        }
        let operation = operation(&order.path);
        let mut span = Span {
            trace: own.trace,
            id: own.span,
            parent: Some(parent.span),
            name: format!("{operation} {}", order.model),
            kind: SpanKind::Client,
            start: nanoseconds(SystemTime::now()),
            end: 0,
            attributes: Vec::new(),
            error: None,
        };
        span.attributes.push(("gen_ai.operation.name", operation.into()));
        span.attributes.push(("gen_ai.request.model", order.model.as_str().into()));
        span.attributes.push(("server.address", base::redact_url(place).into()));
        span.attributes.push(("url.path", path(&order.path).into()));
        span.attributes.push(("warren.request_id", order.request_id.as_str().into()));
        Some(Box::new(Self { traces: traces.clone(), span, is_whole: false }))
    }

    /// Notes that the request has a slot of the backend now. Until then it waited at the worker.
    pub(crate) fn note_slot(&mut self) {
        let waited = nanoseconds(SystemTime::now()).saturating_sub(self.span.start) / 1_000_000;
        self.span.attributes.push(("warren.slot_wait_ms", waited.into()));
    }

    /// Notes that the head of the answer has come.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        let began = nanoseconds(SystemTime::now()).saturating_sub(self.span.start) / 1_000_000;
        self.span.attributes.push(("http.response.status_code", status.as_u16().into()));
        self.span.attributes.push(("warren.first_byte_ms", began.into()));
        if status.is_client_error() || status.is_server_error() {
            self.fail(status.as_str());
        }
    }

    /// Notes that the answer is complete.
    pub(crate) fn note_whole(&mut self) {
        self.is_whole = true;
    }

    fn fail(&mut self, why: &str) {
        self.span.attributes.push(("error.type", why.into()));
        self.span.error = Some(why.to_owned());
    }
}

impl Drop for BackendSpan {
    fn drop(&mut self) {
        if !self.is_whole && self.span.error.is_none() {
            self.fail("broken_off");
        }
        let (traces, span) = (&self.traces, &mut self.span);
        span.end = nanoseconds(SystemTime::now()).max(span.start);
        traces.record(span.clone());
    }
}

fn given(headers: &HeaderMap) -> Option<TraceContext> {
    TraceContext::parse(headers.get(TRACEPARENT)?.to_str().ok()?)
}

fn path(path_and_query: &str) -> &str {
    path_and_query.split('?').next().unwrap_or_default()
}

fn operation(path_and_query: &str) -> &'static str {
    match Endpoint::of_path(path(path_and_query)) {
        Some(Endpoint::Embeddings) => "embeddings",
        Some(Endpoint::Completions) => "text_completion",
        _ => "chat",
    }
}
