//! Answers that are complete for their client before their provider ends them.

use std::{sync::Arc, time::Duration};

use base::{Endpoint, Endpoints, ModelName};
use bytes::Bytes;
use dispatch::Ending;
use http::StatusCode;
use scheduler::{
    Answer, AnswerMap, Config, Event, Head, Job, JobRequest, Outcome, ProviderRequest, Translator,
    Unreadable, Untranslatable, WriteError,
};
use tokio::time::Instant;

use crate::kit::{JoinedProvider, Kit, ok};

/// Passes everything on up to `end`, and holds `held` back.
struct UpToEnd;

struct Passing {
    over: bool,
    held: Bytes,
}

impl Translator for UpToEnd {
    fn translate(
        &self,
        request: &Arc<JobRequest>,
        _: &ModelName,
        _: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable> {
        let (request, endpoint) = (Arc::clone(request), Endpoint::ChatCompletions);
        let answer = Passing { over: false, held: Bytes::new() };
        Ok(ProviderRequest { request, endpoint, answer: Some(Box::new(answer)) })
    }
}

impl AnswerMap for Passing {
    fn head(&mut self, head: Head) -> Head {
        head
    }

    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        match &*chunk {
            b"nonsense" => {
                return Err(Unreadable { before: "before".into(), why: "no JSON".to_owned() });
            }
            b"held" => {
                self.held = chunk;
                return Ok(Bytes::new());
            }
            _ => self.over = chunk.ends_with(b"end"),
        }
        Ok(chunk)
    }

    fn is_complete(&self) -> bool {
        self.over
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        Ok("not called".into())
    }

    fn broken_off(&mut self) -> Bytes {
        std::mem::take(&mut self.held)
    }
}

/// An answer that has begun.
async fn begun(kit: &mut Kit, provider: &mut JoinedProvider) -> (Answer, scheduler::AnswerWriter) {
    let job = Job { translator: Arc::new(UpToEnd), ..kit.job() };
    let mut answer = kit.scheduler.submit(job);
    let mut writer = provider.assigned().await.answer;
    writer.head(ok()).unwrap();
    answer.head().await.unwrap();
    (answer, writer)
}

async fn rest(answer: &mut Answer) -> (String, Option<Ending>) {
    let mut text = Vec::new();
    loop {
        match answer.next().await {
            Event::Chunk(chunk) => text.extend_from_slice(&chunk),
            Event::End => return (String::from_utf8(text).unwrap(), None),
            Event::Failed(failure) => {
                return (String::from_utf8(text).unwrap(), Some(failure.ending));
            }
        }
    }
}

const ANSWERED: Outcome = Outcome::Answered(StatusCode::OK);

#[tokio::test(start_paused = true)]
async fn nothing_follows_a_complete_answer_however_its_provider_ends() {
    for ending in ["ends", "fails", "is lost", "is dropped"] {
        let mut kit = Kit::new(Config { faults_to_rest: 1, ..Config::default() });
        let mut provider = kit.join(1);
        let (mut answer, mut writer) = begun(&mut kit, &mut provider).await;
        writer.chunk("the end".into()).unwrap();
        let start = Instant::now();
        assert_eq!(rest(&mut answer).await, ("the end".to_owned(), None), "{ending}");
        assert_eq!(start.elapsed(), Duration::ZERO, "its client does not wait");
        assert_eq!(writer.chunk("late".into()), Ok(0));
        assert_eq!(kit.slots(), (1, 0));
        match ending {
            "ends" => writer.end(),
            "fails" => writer.fail("the connection broke"),
            "is lost" => drop(provider.membership),
            _ => drop(writer),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        let ended = kit.last_ended();
        assert_eq!((&ended.outcome, ended.bytes), (&ANSWERED, 7), "{ending}");
        assert_eq!(kit.slots().0, 0, "{ending}");
        let status = kit.scheduler.status();
        assert!(status.workers.iter().all(|worker| worker.resting.is_none()), "{ending}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_goes_on_is_told_to_stop_and_its_slot_is_free() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let (mut answer, mut writer) = begun(&mut kit, &mut provider).await;
    writer.chunk("the end".into()).unwrap();
    rest(&mut answer).await;
    drop(answer);
    assert_eq!(kit.slots(), (1, 0));
    let start = Instant::now();
    provider.canceled().await;
    assert_eq!(start.elapsed(), Config::default().end_timeout);
    assert_eq!(writer.chunk("late".into()), Err(WriteError::Over));
    assert_eq!((kit.slots(), kit.last_ended().outcome), ((0, 0), ANSWERED));
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_nonsense_reaches_the_client() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let (mut answer, mut writer) = begun(&mut kit, &mut provider).await;
    assert_eq!(writer.chunk("nonsense".into()), Err(WriteError::Unreadable));
    writer.fail("it makes no sense");
    let broken = (String::from("before"), Some(Ending::ProviderFailed));
    assert_eq!(rest(&mut answer).await, broken);
}

#[tokio::test(start_paused = true)]
async fn what_was_held_back_reaches_the_client_when_the_answer_breaks_off() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let (mut answer, mut writer) = begun(&mut kit, &mut provider).await;
    writer.chunk("held".into()).unwrap();
    drop(provider.membership);
    assert_eq!(rest(&mut answer).await, ("held".to_owned(), Some(Ending::ProviderLost)));
}
