//! A request whose translation takes its time.

use std::sync::{
    Arc, Mutex, PoisonError,
    mpsc::{self, TrySendError},
};

use base::{Endpoint, Endpoints, ModelName};
use bytes::Bytes;
use dispatch::Ending;
use scheduler::{
    Answer, Config, Job, JobRequest, LeaveReason, ProviderRequest, Translator, Untranslatable,
};

use crate::kit::{Kit, ok};

/// Translates when the test says so, as what it says.
struct Slow(Mutex<mpsc::Receiver<Result<&'static str, Untranslatable>>>);

impl Translator for Slow {
    fn is_quick(&self, _: &JobRequest, model: &ModelName, _: Endpoints) -> bool {
        model.as_str() != "m"
    }

    fn translate(
        &self,
        request: &Arc<JobRequest>,
        _: &ModelName,
        _: Endpoints,
    ) -> Result<ProviderRequest, Untranslatable> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let body = Bytes::from(said.unwrap_or(Ok("the test is over"))?);
        let request = Arc::new(JobRequest { body, ..(**request).clone() });
        Ok(ProviderRequest { request, endpoint: Endpoint::ChatCompletions, answer: None })
    }
}

type Say = mpsc::SyncSender<Result<&'static str, Untranslatable>>;

/// A job of model `m`, and what has its request translated.
fn submit(kit: &mut Kit) -> (Answer, Say) {
    let (say, said) = mpsc::sync_channel(2);
    let job = Job { translator: Arc::new(Slow(Mutex::new(said))), ..kit.job() };
    (kit.scheduler.submit(job), say)
}

/// Lets what is still being translated come to its end.
async fn finish(say: Say) {
    while !matches!(say.try_send(Ok("for nobody")), Err(TrySendError::Disconnected(_))) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn holds_up_neither_the_scheduler_nor_other_jobs() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(2);
    let (mut answer, say) = submit(&mut kit);
    assert_eq!(kit.slots(), (1, 0), "its slot is taken");
    let _other = kit.submit();
    assert_eq!(provider.assigned().await.request.body, "{}", "the other one");
    say.send(Ok("translated")).unwrap();
    let mut assignment = provider.assigned().await;
    assert_eq!((assignment.attempt, &*assignment.request.body), (0, &b"translated"[..]));
    assignment.answer.head(ok()).unwrap();
    assignment.answer.end();
    answer.head().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_meanwhile_frees_the_slot_and_the_provider_hears_nothing() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let (answer, say) = submit(&mut kit);
    drop(answer);
    assert_eq!(kit.slots(), (0, 0));
    finish(say).await;
    let _next = kit.submit();
    assert_eq!(provider.assigned().await.request.body, "{}");
    assert!(provider.calls.try_recv().is_err());
    assert_eq!(kit.last_ended().provider, None);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_leaves_meanwhile_loses_the_job_to_another() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join(1);
    let (_answer, say) = submit(&mut kit);
    first.membership.leave(LeaveReason::Closed);
    assert_eq!(kit.slots(), (0, 1));
    let mut second = kit.join(1);
    for _for_whom in [1, 2] {
        say.send(Ok("translated")).unwrap();
    }
    let assignment = second.assigned().await;
    assert_eq!((assignment.attempt, &*assignment.request.body), (1, &b"translated"[..]));
    assert!(first.calls.recv().await.is_none(), "it never heard of the job");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_meanwhile_tells_the_client_alone() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let (mut answer, say) = submit(&mut kit);
    kit.scheduler.abort();
    assert_eq!(answer.head().await.unwrap_err().ending, Ending::ShuttingDown);
    finish(say).await;
    assert!(provider.calls.try_recv().is_err(), "neither of the job nor of a cancellation");
}

#[tokio::test(start_paused = true)]
async fn an_untranslatable_job_ends_with_the_reason_and_frees_its_slot() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let (mut answer, say) = submit(&mut kit);
    say.send(Err(Untranslatable("`top_k` cannot be carried over".to_owned()))).unwrap();
    let failure = answer.head().await.unwrap_err();
    assert_eq!(failure.ending, Ending::Untranslatable);
    assert_eq!(failure.detail.as_deref(), Some("`top_k` cannot be carried over"));
    assert_eq!(kit.slots(), (0, 0));
    let _next = kit.submit();
    assert_eq!(provider.assigned().await.request.body, "{}");
}
