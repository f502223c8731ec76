//! A provider of another shape than the job's.

use std::sync::{Arc, Mutex};

use base::{Endpoint, Endpoints, ModelName};
use bytes::Bytes;
use dispatch::Ending;
use http::{HeaderValue, StatusCode, header};
use scheduler::{
    Answer, AnswerMap, Config, Event, Head, Job, JobRequest, Offer, Outcome, ProviderRequest,
    Translator, Unreadable, Untranslatable, WriteError, exchange::CreditSink,
};

use crate::kit::{JoinedProvider, Kit, offer, ok};

const CHAT: Endpoints = Endpoints::only(Endpoint::ChatCompletions);
const MESSAGES: Endpoints = Endpoints::only(Endpoint::Messages);

/// Knows how to ask for Messages as a chat completion, and nothing else.
struct Fake;

impl Translator for Fake {
    fn translate(
        &self,
        request: &Arc<JobRequest>,
        model: &ModelName,
        endpoints: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable> {
        if endpoints.contains(Endpoint::Messages) {
            let request = Arc::clone(request);
            return Ok(ProviderRequest { request, endpoint: Endpoint::Messages, answer: None });
        }
        if !endpoints.contains(Endpoint::ChatCompletions) {
            return Err(Untranslatable("`top_k` cannot be carried over".to_owned()));
        }
        let body = Bytes::from(format!("chat with {model}"));
        let request = Arc::new(JobRequest { body, ..(**request).clone() });
        let answer = Some(Box::new(Gather(Vec::new())) as Box<dyn AnswerMap>);
        Ok(ProviderRequest { request, endpoint: Endpoint::ChatCompletions, answer })
    }
}

/// Keeps everything until the end; knows nonsense when it sees it.
struct Gather(Vec<u8>);

impl AnswerMap for Gather {
    fn head(&mut self, mut head: Head) -> Head {
        head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/mapped"));
        head
    }

    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        if chunk == "nonsense" {
            return Err(unreadable("no JSON"));
        }
        self.0.extend_from_slice(&chunk);
        Ok(Bytes::new())
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        if self.0.ends_with(b"half") {
            return Err(unreadable("it ends in the middle"));
        }
        Ok(std::mem::take(&mut self.0).into())
    }
}

fn unreadable(why: &str) -> Unreadable {
    Unreadable { before: Bytes::new(), why: why.to_owned() }
}

/// A job in the shape of Messages.
fn submit(kit: &mut Kit, serve_as: Endpoints) -> Answer {
    let endpoint = Endpoint::Messages;
    let job = Job { endpoint, serve_as, translator: Arc::new(Fake), ..kit.job() };
    kit.scheduler.submit(job)
}

fn serving(kit: &mut Kit, endpoints: Endpoints) -> JoinedProvider {
    kit.join_as("test", Offer { endpoints, ..offer(1) })
}

async fn whole(answer: &mut Answer) -> Vec<u8> {
    let mut text = Vec::new();
    loop {
        match answer.next().await {
            Event::Chunk(chunk) => text.extend_from_slice(&chunk),
            Event::End => return text,
            Event::Failed(failure) => panic!("{failure:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_mapped_from_head_to_end() {
    let mut kit = Kit::new(Config::default());
    let mut provider = serving(&mut kit, CHAT);
    let mut answer = submit(&mut kit, CHAT.union(MESSAGES));
    let mut assignment = provider.assigned().await;
    assert_eq!(assignment.request.body, "chat with m");
    assert_eq!(assignment.endpoint, Endpoint::ChatCompletions);
    assignment.answer.head(ok()).unwrap();
    for chunk in ["one ", "two"] {
        assert_eq!(assignment.answer.chunk(chunk.into()), Ok(0), "nothing is held back");
    }
    assignment.answer.end();
    assert_eq!(answer.head().await.unwrap().headers[header::CONTENT_TYPE], "text/mapped");
    assert_eq!(whole(&mut answer).await, b"one two");
    let ended = kit.last_ended();
    assert_eq!((ended.bytes, ended.outcome), (7, Outcome::Answered(StatusCode::OK)));
}

#[tokio::test(start_paused = true)]
async fn a_requeued_job_goes_to_a_native_provider_as_its_client_sent_it() {
    let mut kit = Kit::new(Config::default());
    let mut other = serving(&mut kit, CHAT);
    let mut answer = submit(&mut kit, CHAT.union(MESSAGES));
    let assignment = other.assigned().await;
    let mut native = serving(&mut kit, MESSAGES);
    assignment.answer.fail("refused");
    let mut next = native.assigned().await;
    assert_eq!((next.endpoint, &*next.request.body), (Endpoint::Messages, &b"{}"[..]));
    next.answer.head(ok()).unwrap();
    assert_eq!(next.answer.chunk("as it is".into()), Ok(8));
    next.answer.end();
    assert!(answer.head().await.unwrap().headers.is_empty());
    assert_eq!(whole(&mut answer).await, b"as it is");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_not_there_is_learnt_and_the_job_served_in_another_shape() {
    let mut kit = Kit::new(Config { max_requeue_count: 0, ..Config::default() });
    let mut provider = kit.join(1);
    let mut answer = submit(&mut kit, CHAT.union(MESSAGES));
    let assignment = provider.assigned().await;
    assert_eq!(assignment.alternatives, CHAT);
    assert_eq!(assignment.endpoint, Endpoint::Messages);
    provider.membership.endpoints(Endpoints::ASSUMED.without(Endpoint::Messages));
    assignment.answer.unserved();
    let mut next = provider.assigned().await;
    assert_eq!((next.endpoint, next.attempt), (Endpoint::ChatCompletions, 1));
    next.answer.head(ok()).unwrap();
    next.answer.chunk("served".into()).unwrap();
    next.answer.end();
    answer.head().await.unwrap();
    assert_eq!(whole(&mut answer).await, b"served");
    assert!(kit.scheduler.status().workers[0].resting.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_untranslatable_job_ends_with_the_reason_and_frees_its_slot() {
    let mut kit = Kit::new(Config::default());
    let embeddings = Endpoints::only(Endpoint::Embeddings);
    let mut provider = serving(&mut kit, CHAT.union(embeddings));
    let held = kit.submit();
    let first = provider.assigned().await;
    provider.membership.endpoints(embeddings);
    let mut refused = [(); 2].map(|()| submit(&mut kit, embeddings));
    first.answer.abandon();
    drop(held);
    provider.canceled().await;
    for answer in &mut refused {
        let failure = answer.head().await.unwrap_err();
        assert_eq!(failure.ending, Ending::Untranslatable);
        assert_eq!(failure.detail.as_deref(), Some("`top_k` cannot be carried over"));
    }
    assert_eq!(kit.slots(), (0, 0));
    assert!(provider.calls.try_recv().is_err(), "the provider heard nothing of them");
    let ended = kit.ended.lock().unwrap().clone();
    let of_messages = ended.iter().filter(|(facts, _)| facts.endpoint == Endpoint::Messages);
    assert_eq!(of_messages.filter(|(_, ended)| ended.provider.is_none()).count(), 2);
    provider.membership.endpoints(CHAT);
    let _next = kit.submit();
    provider.assigned().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_flushed_for_an_answer_that_fails() {
    let mut kit = Kit::new(Config::default());
    let mut provider = serving(&mut kit, CHAT);
    let mut answer = submit(&mut kit, CHAT);
    let mut writer = provider.assigned().await.answer;
    writer.head(ok()).unwrap();
    writer.chunk("kept".into()).unwrap();
    writer.fail("the backend broke off");
    answer.head().await.unwrap();
    let Event::Failed(failure) = answer.next().await else { panic!("not failed") };
    assert_eq!(failure.ending, Ending::ProviderFailed);
    assert_eq!(kit.last_ended().bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_makes_no_sense_fails_with_the_reason() {
    let chunks: [(&[&str], &str); 2] =
        [(&["nonsense", "more"], "no JSON"), (&["half"], "it ends in the middle")];
    for (chunks, reason) in chunks {
        for ends in [false, true] {
            let mut kit = Kit::new(Config { faults_to_rest: 1, ..Config::default() });
            let mut provider = serving(&mut kit, CHAT);
            let mut answer = submit(&mut kit, CHAT);
            let mut writer = provider.assigned().await.answer;
            writer.head(ok()).unwrap();
            for chunk in chunks {
                let written = writer.chunk(Bytes::from_static(chunk.as_bytes()));
                assert_eq!(written.err(), (reason == "no JSON").then_some(WriteError::Unreadable));
            }
            if ends || reason != "no JSON" {
                writer.end();
            } else {
                writer.fail("it was told so");
            }
            answer.head().await.unwrap();
            let Event::Failed(failure) = answer.next().await else { panic!("not failed") };
            assert_eq!(failure.ending, Ending::ProviderFailed);
            assert_eq!(failure.detail.as_deref(), Some(reason));
            assert!(kit.scheduler.status().workers[0].resting.is_some(), "a fault of its own");
        }
    }
}

/// How much may be sent.
struct Allowance(Mutex<usize>);

impl CreditSink for Allowance {
    fn credit(&self, _: u32, bytes: u32) {
        *self.0.lock().unwrap() += bytes as usize;
    }
}

#[tokio::test(start_paused = true)]
async fn a_map_that_keeps_everything_does_not_stop_its_own_provider() {
    const ALL: usize = 1 << 20;
    let mut kit = Kit::new(Config::default());
    let mut provider = serving(&mut kit, CHAT);
    let mut answer = submit(&mut kit, CHAT);
    let mut writer = provider.assigned().await.answer;
    let allowance = Arc::new(Allowance(Mutex::new(256 * 1024)));
    let sink: Arc<dyn CreditSink> = Arc::<Allowance>::clone(&allowance);
    writer.give_credit(sink, 0, 64 * 1024);
    writer.head(ok()).unwrap();
    let mut sent = 0;
    while sent < ALL {
        let size = (*allowance.0.lock().unwrap()).min(30_000).min(ALL - sent);
        assert!(size > 0, "stopped after {sent} bytes");
        *allowance.0.lock().unwrap() -= size;
        assert_eq!(writer.chunk(Bytes::from(vec![b'x'; size])), Ok(0));
        sent += size;
    }
    writer.end();
    answer.head().await.unwrap();
    assert_eq!(whole(&mut answer).await.len(), ALL);
}
