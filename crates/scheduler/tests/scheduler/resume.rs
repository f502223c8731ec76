//! An answer that breaks off, and that another provider goes on with.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use base::{Continuation, Endpoint, Endpoints, ModelName};
use bytes::Bytes;
use dispatch::{Ending, LeaveReason};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use scheduler::{
    Answer, BreakOutcome, Config, Delivered, Event, Head, Job, JobRequest, NextRequest, NoRequest,
    ProviderRequest, Record, Rest, Scheduler, Translator, Unreadable, Untranslatable, Usage,
    WriteError,
    exchange::{CreditSink, Seam},
};

use crate::kit::{Kit, ProviderCall};

/// Answers whose events are lines: `!` begins one after which nothing can be gone on with, and `.` is the last.
/// A provider that goes on is sent what was delivered, and answers with the rest alone.
struct Lines;

#[derive(Clone, Default)]
struct LineRecord {
    delivered: String,
    half: String,
}

impl Translator for Lines {
    fn translate(
        &self,
        request: &Arc<JobRequest>,
        _: &ModelName,
        _: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable> {
        let endpoint = Endpoint::ChatCompletions;
        Ok(ProviderRequest { request: Arc::clone(request), endpoint, answer: None })
    }

    fn record(&self, _: &JobRequest, _: Endpoint) -> Option<Box<dyn Record>> {
        Some(Box::<LineRecord>::default())
    }
}

impl Record for LineRecord {
    fn serve_as(&self) -> Endpoints {
        Endpoints::only(Endpoint::ChatCompletions)
    }

    fn goes_on(&mut self, head: &Head) -> bool {
        self.half.clear();
        head.headers.contains_key(header::CONTENT_TYPE)
    }

    fn pass(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        self.half.push_str(std::str::from_utf8(&chunk).unwrap());
        let whole = self.half.rfind('\n').map_or(0, |at| at + 1);
        let rest = self.half.split_off(whole);
        let whole = std::mem::replace(&mut self.half, rest);
        self.delivered.push_str(&whole);
        Ok(whole.into())
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        Ok(std::mem::take(&mut self.half).into())
    }

    fn rest(&mut self) -> Rest {
        let characters = self.delivered.chars().count() as u64;
        match &self.delivered {
            all if all.contains('!') => Rest::No("it is in the middle of a call".to_owned()),
            all if all.contains('.') => Rest::Closing(Bytes::from_static(b"closed\n")),
            _ => Rest::Text(Delivered { characters, tokens: characters }),
        }
    }

    fn copy(&self) -> Box<dyn Record> {
        Box::new(self.clone())
    }

    fn request(
        self: Box<Self>,
        request: &Arc<JobRequest>,
        _: Endpoints,
        how: Continuation,
    ) -> Result<NextRequest, NoRequest> {
        match &*self.delivered {
            "full\n" => return Err(NoRequest::Closing(Bytes::from_static(b"closed\n"))),
            "json\n" => return Err(NoRequest::Refused("JSON was asked for".to_owned())),
            _ => {}
        }
        assert_eq!(how, Continuation::LastMessage);
        let body = Bytes::from(format!("{}+{}", text(&request.body), self.delivered));
        let request = Arc::new(JobRequest { body, ..(**request).clone() });
        let endpoint = Endpoint::ChatCompletions;
        Ok(NextRequest { request, endpoint, record: self })
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn stream() -> Head {
    let kind = HeaderValue::from_static("text/event-stream");
    Head { status: StatusCode::OK, headers: HeaderMap::from_iter([(header::CONTENT_TYPE, kind)]) }
}

fn job(kit: &mut Kit) -> Job {
    Job { translator: Arc::new(Lines), resumes: true, ..kit.job() }
}

fn submit(kit: &mut Kit) -> Answer {
    let job = job(kit);
    kit.scheduler.submit(job)
}

/// The rest of an answer, with `|` for each seam, and its failure.
async fn all(answer: &mut Answer) -> (String, Option<Ending>) {
    let mut read = String::new();
    loop {
        if answer.take_seam().is_some() {
            read.push('|');
        }
        match answer.next().await {
            Event::Chunk(chunk) => read.push_str(text(&chunk)),
            Event::End => return (read, None),
            Event::Failed(failure) => return (read, Some(failure.ending)),
        }
    }
}

async fn next(answer: &mut Answer) -> String {
    match answer.next().await {
        Event::Chunk(chunk) => text(&chunk).to_owned(),
        other => panic!("{other:?}"),
    }
}

fn outcomes(kit: &Kit) -> Vec<BreakOutcome> {
    kit.breaks.lock().unwrap().iter().map(|broken| broken.outcome).collect()
}

#[tokio::test(start_paused = true)]
async fn goes_on_at_another_provider_as_one_answer() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join_continuing("first");
    let mut answer = submit(&mut kit);
    let mut begun = first.assigned().await;
    begun.answer.head(stream()).unwrap();
    assert_eq!(answer.head().await.unwrap().status, StatusCode::OK);
    assert!(answer.may_be_resumed());
    begun.answer.chunk(Bytes::from_static(b"one\ntw")).unwrap();
    assert_eq!(next(&mut answer).await, "one\n");
    let mut second = kit.join_continuing("second");
    first.membership.leave(LeaveReason::Closed);
    assert_eq!(begun.answer.chunk(Bytes::from_static(b"o\n")), Err(WriteError::Over));
    let mut rest = second.assigned().await;
    assert_eq!((rest.attempt, text(&rest.request.body)), (1, "{}+one\n"));
    rest.answer.head(stream()).unwrap();
    rest.answer.chunk(Bytes::from_static(b"two\n")).unwrap();
    rest.answer.end();
    let delivered = Delivered { characters: 4, tokens: 4 };
    let seam = Seam { provider: Some("second".into()), delivered };
    assert_eq!(answer.take_seam(), Some(seam));
    assert_eq!(next(&mut answer).await, "two\n");
    assert!(matches!(answer.next().await, Event::End));
    assert_eq!((answer.seams(), kit.slots()), (1, (0, 0)));
    let ended = kit.last_ended();
    let broken = &ended.breaks[0];
    assert_eq!((&*broken.from, broken.to.as_deref()), ("first", Some("second")));
    assert_eq!((broken.delivered, broken.outcome), (delivered, BreakOutcome::Resumed));
    assert_eq!(ended.provider_name.as_deref(), Some("second"));
    assert_eq!(ended.usage.completion_tokens, Some(8), "one answer is counted");
}

#[tokio::test(start_paused = true)]
async fn breaks_off_twice_and_is_one_answer() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join_continuing("a");
    let mut answer = submit(&mut kit);
    for (name, line) in [("b", "one\n"), ("c", "two\n")] {
        let mut part = provider.assigned().await;
        part.answer.head(stream()).unwrap();
        part.answer.chunk(Bytes::from(line)).unwrap();
        let next = kit.join_continuing(name);
        part.answer.fail("its backend died");
        provider = next;
    }
    let mut last = provider.assigned().await;
    assert_eq!(text(&last.request.body), "{}+one\ntwo\n");
    last.answer.head(stream()).unwrap();
    last.answer.chunk(Bytes::from_static(b"three\n")).unwrap();
    last.answer.end();
    answer.head().await.unwrap();
    assert_eq!(all(&mut answer).await, ("one\n|two\n|three\n".to_owned(), None));
    assert_eq!(kit.last_ended().breaks.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn is_closed_here_when_only_its_end_is_missing() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join_continuing("first");
    let mut answer = submit(&mut kit);
    let mut begun = first.assigned().await;
    begun.answer.head(stream()).unwrap();
    begun.answer.chunk(Bytes::from_static(b"all.\n")).unwrap();
    first.membership.leave(LeaveReason::HeartbeatLost);
    answer.head().await.unwrap();
    let (read, failed) = all(&mut answer).await;
    assert_eq!((&*read.replace('|', ""), failed), ("all.\nclosed\n", None));
    assert_eq!((outcomes(&kit), kit.slots()), (vec![BreakOutcome::Closed], (0, 0)));
    assert_eq!(kit.last_ended().outcome.as_str(), "answered");
}

#[tokio::test(start_paused = true)]
async fn ends_at_once_where_it_cannot_be_gone_on_with() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join_continuing("first");
    let mut second = kit.join_continuing("second");
    let mut answer = submit(&mut kit);
    let mut begun = first.assigned().await;
    begun.answer.head(stream()).unwrap();
    begun.answer.chunk(Bytes::from_static(b"call!\n")).unwrap();
    first.membership.leave(LeaveReason::Closed);
    answer.head().await.unwrap();
    assert_eq!(all(&mut answer).await, ("call!\n".to_owned(), Some(Ending::ProviderLost)));
    assert_eq!((outcomes(&kit), kit.slots()), (vec![BreakOutcome::Refused], (0, 0)));
    let why = kit.breaks.lock().unwrap()[0].why.clone();
    assert_eq!(why.as_deref(), Some("it is in the middle of a call"));
    assert!(second.calls.try_recv().is_err(), "the other one has heard of nothing");
}

#[tokio::test(start_paused = true)]
async fn what_its_request_rules_out_waits_for_nobody() {
    let mut kit = Kit::new(Config::default());
    let whole = ("full\n|closed\n".to_owned(), None);
    let failed = ("json\n".to_owned(), Some(Ending::ProviderLost));
    for (line, end) in [("full\n", whole), ("json\n", failed)] {
        let mut first = kit.join_continuing("first");
        let mut answer = submit(&mut kit);
        let mut begun = first.assigned().await;
        begun.answer.head(stream()).unwrap();
        begun.answer.chunk(Bytes::from_static(line.as_bytes())).unwrap();
        first.membership.leave(LeaveReason::Closed);
        assert_eq!(kit.slots(), (0, 0));
        answer.head().await.unwrap();
        assert_eq!(all(&mut answer).await, end);
    }
    assert_eq!(outcomes(&kit), [BreakOutcome::Closed, BreakOutcome::Refused]);
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_provider_and_not_for_ever() {
    let mut kit = Kit::new(Config::default());
    for comes_back in [true, false] {
        let mut first = kit.join_continuing("first");
        let mut answer = submit(&mut kit);
        let mut begun = first.assigned().await;
        begun.answer.head(stream()).unwrap();
        begun.answer.chunk(Bytes::from_static(b"one\n")).unwrap();
        kit.scheduler.drain(first.membership.id(), "restarts", Duration::ZERO);
        assert!(matches!(first.calls.recv().await, Some(ProviderCall::Canceled(..))));
        first.membership.leave(LeaveReason::Drained);
        answer.head().await.unwrap();
        if comes_back {
            tokio::time::sleep(Duration::from_secs(59)).await;
            let mut next = kit.join_continuing("again");
            let mut rest = next.assigned().await;
            rest.answer.head(stream()).unwrap();
            rest.answer.end();
            assert_eq!(all(&mut answer).await, ("one\n|".to_owned(), None));
        } else {
            let failed = Some(Ending::ProviderLost);
            assert_eq!(all(&mut answer).await, ("one\n".to_owned(), failed));
        }
    }
    assert_eq!(outcomes(&kit), [BreakOutcome::Resumed, BreakOutcome::GivenUp]);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_no_stream_goes_on_with_nothing() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join_continuing("first");
    let mut answer = submit(&mut kit);
    let mut begun = first.assigned().await;
    begun.answer.head(stream()).unwrap();
    begun.answer.chunk(Bytes::from_static(b"one\n")).unwrap();
    let mut others = [kit.join_continuing("second"), kit.join_continuing("third")];
    begun.answer.fail("it died");
    let bad = [
        Head { status: StatusCode::BAD_REQUEST, ..stream() },
        Head { headers: HeaderMap::new(), ..stream() },
    ];
    for (other, head) in others.iter_mut().zip(bad) {
        let mut rest = other.assigned().await;
        assert_eq!(rest.answer.head(head), Err(WriteError::Refused));
        rest.answer.fail("refused");
    }
    answer.head().await.unwrap();
    assert_eq!(all(&mut answer).await, ("one\n".to_owned(), Some(Ending::ProviderFailed)));
}

#[tokio::test(start_paused = true)]
async fn is_recorded_only_where_somebody_could_go_on() {
    let mut kit = Kit::new(Config::default());
    let plain = |scheduler: &Scheduler, job| scheduler.submit(job);
    let mut first = kit.join(1);
    let mut answer = submit(&mut kit);
    first.assigned().await.answer.head(stream()).unwrap();
    answer.head().await.unwrap();
    assert!(!answer.may_be_resumed(), "nobody goes on with this model");
    drop((answer, first));
    let mut goes_on = kit.join_continuing("goes on");
    let job = Job { resumes: false, ..job(&mut kit) };
    let mut answer = plain(&kit.scheduler, job);
    goes_on.assigned().await.answer.head(stream()).unwrap();
    answer.head().await.unwrap();
    assert!(!answer.may_be_resumed(), "its client does not want it");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_nobody_goes_on_leaves_nothing() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join_continuing("first");
    let mut answer = submit(&mut kit);
    first.assigned().await.answer.head(stream()).unwrap();
    answer.head().await.unwrap();
    first.membership.leave(LeaveReason::Closed);
    assert_eq!(kit.slots(), (0, 1));
    drop(answer);
    assert_eq!((kit.slots(), outcomes(&kit)), ((0, 0), vec![BreakOutcome::GivenUp]));
}

#[derive(Default)]
struct GivenCredit(AtomicU32);

impl CreditSink for GivenCredit {
    fn credit(&self, _: u32, bytes: u32) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn credit_is_for_what_the_present_provider_has_sent() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join_continuing("first");
    let mut answer = submit(&mut kit);
    let mut begun = first.assigned().await;
    let given = [(); 2].map(|()| Arc::new(GivenCredit::default()));
    begun.answer.give_credit(given[0].clone(), 1, 1);
    begun.answer.head(stream()).unwrap();
    for line in ["one\n", "two\n", "three\n"] {
        begun.answer.chunk(Bytes::from(line)).unwrap();
    }
    let mut second = kit.join_continuing("second");
    first.membership.leave(LeaveReason::Closed);
    let mut rest = second.assigned().await;
    rest.answer.give_credit(given[1].clone(), 1, 1);
    rest.answer.head(stream()).unwrap();
    rest.answer.chunk(Bytes::from_static(b"four\n")).unwrap();
    rest.answer.end();
    answer.head().await.unwrap();
    assert_eq!(all(&mut answer).await.0, "one\ntwo\nthree\n|four\n");
    let given = given.map(|given| given.0.load(Ordering::Relaxed));
    assert!(given[0] == 0 && given[1] <= 5, "{given:?}");
}

#[tokio::test(start_paused = true)]
async fn what_its_provider_reports_is_added_to_what_was_delivered() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join_continuing("first");
    let job = Job { meter: Box::new(()), ..job(&mut kit) };
    let mut answer = kit.scheduler.submit(job);
    let mut begun = first.assigned().await;
    begun.answer.head(stream()).unwrap();
    begun.answer.chunk(Bytes::from_static(b"four\n")).unwrap();
    let mut second = kit.join_continuing("second");
    begun.answer.fail("it died");
    let mut rest = second.assigned().await;
    rest.answer.head(stream()).unwrap();
    let (prompt_tokens, completion_tokens) = (Some(12), Some(3));
    rest.answer.report(Usage { prompt_tokens, completion_tokens, ..Usage::default() });
    rest.answer.end();
    answer.head().await.unwrap();
    all(&mut answer).await;
    let usage = kit.last_ended().usage;
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(7), Some(8)));
}
