//! A server's requests on one tunnel (pure): frames and answers in, actions out.

use std::collections::HashMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use protocol::{
    openai,
    room::tunnel::{BadFrame, ToParticipant, TunnelRequest, close},
};

use crate::{
    order::{NOT_SERVED, Order, headers},
    outcome::Outcome,
    room::{GiveUpReason, plane::HeartbeatFailure},
};

/// How many requests beyond the announced number are still taken. A server may count an abandoned
/// request as ended, so its next request may arrive before the abandoned one has ended here.
const SLACK: usize = 8;

/// After this many failed heartbeats in a row, the participant joins again.
const MISSES: u32 = 3;

/// An action of the codec.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Begin this job.
    Start(Order),
    /// Tell the server that this request gets no answer.
    Decline { request_id: String, why: String },
    /// Stop this job: the server no longer waits for it.
    Stop(u32),
}

/// The requests of one tunnel, and how its heartbeats went.
#[derive(Debug)]
pub(super) struct Requests {
    max_jobs: usize,
    draining: bool,
    last_number: u32,
    jobs: HashMap<u32, String>,
    misses: u32,
}

impl Requests {
    pub(super) fn new(max_concurrent: u32) -> Self {
        let max_jobs = (max_concurrent as usize).saturating_add(SLACK);
        Self { max_jobs, draining: false, last_number: 0, jobs: HashMap::new(), misses: 0 }
    }

    pub(super) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Takes nothing new from now on.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }

    /// A job has ended. Returns the id of its request.
    pub(super) fn ended(&mut self, number: u32) -> Option<String> {
        self.jobs.remove(&number)
    }

    /// Handles a text frame.
    pub(super) fn on_text(&mut self, text: &str) -> Option<Action> {
        match ToParticipant::decode(text) {
            Ok(ToParticipant::Request(request)) => self.on_request(&request),
            Ok(ToParticipant::Pong(_)) => None,
            // A job that is unknown had ended before it was cancelled.
            Ok(ToParticipant::Cancel(cancel)) => self.number(&cancel.request_id).map(Action::Stop),
            Err(bad) => self.on_bad_frame(&bad),
        }
    }

    fn on_request(&mut self, request: &TunnelRequest<'_>) -> Option<Action> {
        let request_id = request.request_id.clone().into_owned();
        if self.has(&request_id) {
            tracing::warn!(request_id, "a request that is here already was ignored");
            return None;
        }
        let number = self.last_number.wrapping_add(1);
        let order = order(number, request);
        if let Some(why) = self.reason_to_decline(order.as_ref()) {
            return Some(Action::Decline { request_id, why: why.to_owned() });
        }
        self.last_number = number;
        self.jobs.insert(number, request_id);
        order.map(Action::Start)
    }

    fn has(&self, request_id: &str) -> bool {
        self.number(request_id).is_some()
    }

    fn number(&self, request_id: &str) -> Option<u32> {
        let known = self.jobs.iter().find(|(_, known)| *known == request_id);
        known.map(|(number, _)| *number)
    }

    fn reason_to_decline(&self, order: Option<&Order>) -> Option<&'static str> {
        match order {
            _ if self.draining => Some("this participant is leaving"),
            _ if self.jobs.len() >= self.max_jobs => Some("this participant has no room"),
            Some(order) if order.is_served() => None,
            _ => Some(NOT_SERVED),
        }
    }

    /// Handles a bad frame: it declines its own request at most.
    fn on_bad_frame(&self, bad: &BadFrame) -> Option<Action> {
        tracing::warn!(request_id = bad.request_id, "a bad frame of the server: {bad}");
        let about_a_request = bad.kind.as_deref() == Some("tunnel.request");
        let request_id = bad.request_id.clone().filter(|id| about_a_request && !self.has(id))?;
        Some(Action::Decline { request_id, why: format!("the request is bad: {}", bad.problem) })
    }

    /// Takes the result of a heartbeat. Returns the reason if the participant has to join again.
    pub(super) fn on_heartbeat(&mut self, answer: Result<(), HeartbeatFailure>) -> Option<String> {
        match answer {
            Ok(()) => {
                self.misses = 0;
                None
            }
            Err(HeartbeatFailure::Forgotten) => Some("the server knows it no longer".to_owned()),
            Err(HeartbeatFailure::Missed(why)) => {
                self.misses += 1;
                tracing::debug!(self.misses, "a heartbeat failed: {why}");
                (self.misses >= MISSES).then(|| format!("{MISSES} heartbeats failed: {why}"))
            }
        }
    }
}

/// The outcome of a close code after which the tunnel is not opened again; `None` for any other
/// code.
pub(super) fn closed(code: u16, reason: &str) -> Option<Outcome> {
    if code == close::SUPERSEDED.0 {
        return Some(Outcome::Over(GiveUpReason::Superseded));
    }
    GiveUpReason::by_close(code, reason).map(Outcome::Over)
}

/// The order for a request; `None` if its method is not valid.
fn order(number: u32, request: &TunnelRequest<'_>) -> Option<Order> {
    let body = request.body.map(|body| Bytes::copy_from_slice(body.get().as_bytes()));
    let model = body.as_deref().and_then(|body| openai::peek(body).ok()).map(|peek| peek.model);
    Some(Order {
        number,
        request_id: request.request_id.clone().into_owned(),
        model: model.unwrap_or_default(),
        method: Method::from_bytes(request.method.as_bytes()).ok()?,
        path: request.path.clone().into_owned(),
        streaming: request.stream,
        headers: headers_of(request),
        body: body.into_iter().collect(),
    })
}

fn headers_of(request: &TunnelRequest<'_>) -> HeaderMap {
    let mut headers = headers(&request.headers);
    if request.body.is_some() {
        let json = HeaderValue::from_static("application/json");
        headers.entry(header::CONTENT_TYPE).or_insert(json);
    }
    headers
}

#[cfg(test)]
mod tests {
    use protocol::room::tunnel::close;

    use super::*;

    fn request(id: &str) -> String {
        let body = r#"{"model":"m","messages":[ ]}"#;
        format!(
            r#"{{"type":"tunnel.request","requestId":"{id}","operation":"chat.completions.create","method":"POST","path":"/v1/chat/completions","headers":{{"Content-Type":"application/json"}},"body":{body},"stream":true}}"#
        )
    }

    #[track_caller]
    fn started(action: Option<Action>) -> Order {
        match action {
            Some(Action::Start(order)) => order,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn declined(action: Option<Action>) -> (String, String) {
        match action {
            Some(Action::Decline { request_id, why }) => (request_id, why),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_becomes_an_order_whose_body_is_as_it_came() {
        let order = started(Requests::new(1).on_text(&request("R1")));
        assert_eq!((order.request_id.as_str(), order.model.as_str()), ("R1", "m"));
        assert_eq!((order.method, order.path.as_str()), (Method::POST, "/v1/chat/completions"));
        assert_eq!(order.body.concat(), br#"{"model":"m","messages":[ ]}"#);
        assert_eq!(order.headers["content-type"], "application/json");
        assert!(order.streaming);
    }

    #[test]
    fn a_request_without_a_body_has_none() {
        let text = r#"{"type":"tunnel.request","requestId":"R1","operation":"responses.get","method":"GET","path":"/v1/responses/a","headers":{},"stream":false}"#;
        let order = started(Requests::new(1).on_text(text));
        assert_eq!((order.method, order.body.len(), order.headers.len()), (Method::GET, 0, 0));
    }

    #[test]
    fn requests_run_at_once_up_to_the_bound() {
        let mut requests = Requests::new(2);
        let numbers: Vec<_> = (0..2 + SLACK)
            .map(|n| started(requests.on_text(&request(&n.to_string()))).number)
            .collect();
        assert_eq!(requests.jobs(), 2 + SLACK);
        let (id, why) = declined(requests.on_text(&request("more")));
        assert_eq!((id.as_str(), why.as_str()), ("more", "this participant has no room"));
        assert_eq!(requests.ended(numbers[0]).as_deref(), Some("0"));
        assert_eq!(requests.ended(numbers[0]), None);
        started(requests.on_text(&request("more")));
    }

    #[test]
    fn an_id_that_is_here_already_is_ignored_until_its_request_is_over() {
        let mut requests = Requests::new(2);
        let first = started(requests.on_text(&request("a")));
        assert_eq!(requests.on_text(&request("a")), None);
        requests.ended(first.number);
        started(requests.on_text(&request("a")));
    }

    #[test]
    fn a_request_that_is_cancelled_is_stopped_while_it_is_here() {
        let mut requests = Requests::new(2);
        let cancel = r#"{"type":"tunnel.cancel","requestId":"a"}"#;
        assert_eq!(requests.on_text(cancel), None);
        let order = started(requests.on_text(&request("a")));
        assert_eq!(requests.on_text(cancel), Some(Action::Stop(order.number)));
        assert_eq!(requests.jobs(), 1, "until its job has ended");
        requests.ended(order.number);
        assert_eq!(requests.on_text(cancel), None);
    }

    #[test]
    fn requests_for_other_paths_are_declined() {
        for (from, to) in [
            ("/v1/chat/completions", "/api/delete"),
            ("/v1/chat/completions", "/v1/../api/delete"),
            ("/v1/chat/completions", "/v1/load_lora_adapter"),
            ("\"POST\"", "\"PUT\""),
            ("\"POST\"", "\"\""),
        ] {
            let mut requests = Requests::new(1);
            let (_, why) = declined(requests.on_text(&request("a").replace(from, to)));
            assert_eq!(why, NOT_SERVED, "{to}");
            assert_eq!(requests.jobs(), 0);
        }
    }

    #[test]
    fn a_leaving_participant_takes_no_new_request() {
        let mut requests = Requests::new(1);
        started(requests.on_text(&request("a")));
        requests.drain();
        assert_eq!(declined(requests.on_text(&request("b"))).1, "this participant is leaving");
        assert_eq!(requests.jobs(), 1);
    }

    #[test]
    fn a_bad_frame_costs_its_request_at_most() {
        let mut requests = Requests::new(1);
        for text in ["", "x", "[]", "{}", r#"{"type":"novelty","requestId":"a"}"#] {
            assert_eq!(requests.on_text(text), None, "{text}");
        }
        assert_eq!(requests.on_text(r#"{"type":"tunnel.pong","timestamp":1}"#), None);
        let (id, _) = declined(requests.on_text(r#"{"type":"tunnel.request","requestId":"a"}"#));
        assert_eq!(id, "a");
        started(requests.on_text(&request("b")));
        assert_eq!(requests.on_text(r#"{"type":"tunnel.request","requestId":"b"}"#), None);
    }

    #[test]
    fn three_heartbeats_in_a_row_must_fail() {
        let mut requests = Requests::new(1);
        let missed = || Err(HeartbeatFailure::Missed("no answer".to_owned()));
        for answer in [missed(), missed(), Ok(()), missed(), missed()] {
            assert_eq!(requests.on_heartbeat(answer), None);
        }
        assert!(requests.on_heartbeat(missed()).unwrap().contains("no answer"));
        assert!(Requests::new(1).on_heartbeat(Err(HeartbeatFailure::Forgotten)).is_some());
    }

    #[test]
    fn only_a_superseded_or_removed_participant_stays_away() {
        let superseded = Some(Outcome::Over(GiveUpReason::Superseded));
        assert_eq!(closed(1000, "superseded by newer tunnel"), superseded);
        assert_eq!(closed(1000, ""), superseded);
        assert_eq!(
            closed(close::REMOVED.0, close::REMOVED.1),
            Some(Outcome::Over(GiveUpReason::Removed))
        );
        assert_eq!(closed(1001, "Hub closing"), None);
        assert_eq!(closed(4001, "ping timeout"), None);
    }
}
