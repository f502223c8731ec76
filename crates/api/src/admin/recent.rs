//! The most recently ended requests, in memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use access::Moment;
use base::{ModelName, Money, Scope, millis};
use jiff::Timestamp;
use protocol::admin::requests::{KEPT, RequestJson, ResumeJson};
use scheduler::{Break, JobEnd, JobFacts, Observer, Usage};

/// The most recently ended requests, in memory.
pub struct RecentRequests(Mutex<Ring>);

struct Ring {
    /// The oldest first, [`KEPT`] at most.
    requests: VecDeque<EndedRequest>,
    /// The number of requests ever added.
    count: u64,
}

/// An ended request. Its texts are shared, so that keeping it allocates nothing.
struct EndedRequest {
    /// Its number, from 1.
    n: u64,
    at_ms: u64,
    job: JobFacts,
    served_model: Option<ModelName>,
    provider: Option<Arc<str>>,
    outcome: &'static str,
    status: Option<u16>,
    usage: Usage,
    queued: Duration,
    first_byte: Option<Duration>,
    first_token: Option<Duration>,
    total: Duration,
    requeues: u32,
    breaks: Vec<Break>,
    cost: Option<Money>,
}

impl RecentRequests {
    /// At most `limit` requests with numbers above `after`, the newest first. If no request has had the number
    /// `after` yet, the number comes from an earlier run of this server, and all requests are listed.
    pub fn list(&self, after: u64, limit: usize) -> Vec<RequestJson> {
        let ring = self.lock();
        let after = if after > ring.count { 0 } else { after };
        let newer = ring.requests.iter().rev().take_while(|request| request.n > after);
        newer.take(limit).map(EndedRequest::shown).collect()
    }

    fn keep(&self, mut new: EndedRequest) {
        let mut ring = self.lock();
        ring.count += 1;
        new.n = ring.count;
        let oldest = if ring.requests.len() < KEPT { None } else { ring.requests.pop_front() };
        ring.requests.push_back(new);
        drop(ring);
        // Freed outside the lock.
        drop(oldest);
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for RecentRequests {
    fn default() -> Self {
        Self(Mutex::new(Ring { requests: VecDeque::with_capacity(KEPT), count: 0 }))
    }
}

impl Observer for RecentRequests {
    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        self.keep(EndedRequest::new(job, ended));
    }
}

impl EndedRequest {
    fn new(job: &JobFacts, ended: &JobEnd) -> Self {
        Self {
            n: 0,
            at_ms: Moment::of(ended.at.0, ended.at.1).wall_ms,
            job: job.clone(),
            served_model: ended.served_model.clone(),
            provider: ended.provider_name.clone(),
            outcome: ended.outcome.as_str(),
            status: ended.outcome.status(),
            usage: ended.usage,
            queued: ended.queued,
            first_byte: ended.first_byte,
            first_token: ended.first_token,
            total: ended.total,
            requeues: ended.requeues,
            breaks: ended.breaks.clone(),
            cost: ended.cost,
        }
    }

    fn shown(&self) -> RequestJson {
        let Self { job, usage, .. } = self;
        let foreign = job.scope != Scope::server();
        RequestJson {
            n: self.n,
            id: job.id.to_string(),
            at: timestamp(self.at_ms),
            key: job.key.to_string(),
            scope: foreign.then(|| job.scope.to_string()),
            model: job.model.to_string(),
            served_model: self.served_model.as_ref().map(ToString::to_string),
            endpoint: job.endpoint.path().to_owned(),
            provider: self.provider.as_deref().map(str::to_owned),
            outcome: self.outcome.to_owned(),
            status: self.status,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            estimated: usage.estimated,
            queue_ms: millis(self.queued),
            first_byte_ms: self.first_byte.map(millis),
            first_token_ms: self.first_token.map(millis),
            total_ms: millis(self.total),
            streaming: job.streaming,
            requeues: self.requeues,
            resumes: self.breaks.iter().map(resume).collect(),
            cost: self.cost,
        }
    }
}

fn resume(broken: &Break) -> ResumeJson {
    let Break { from, to, delivered, .. } = broken;
    let to = to.as_deref().map(str::to_owned);
    ResumeJson { from: from.to_string(), to, characters: delivered.characters }
}

fn timestamp(ms: u64) -> Timestamp {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::{Instant, SystemTime};

    use base::{Endpoint, JobId};
    use http::StatusCode;
    use scheduler::{Ending, Failure, Outcome};

    use super::*;

    fn facts(scope: Scope) -> JobFacts {
        JobFacts {
            id: JobId::from_random(1),
            scope,
            model: "fast".into(),
            endpoint: Endpoint::Messages,
            key: "k-1".into(),
            path: "/v1/messages".into(),
            streaming: true,
            lent: None,
            trace: None,
        }
    }

    fn ended(outcome: Outcome) -> JobEnd {
        JobEnd {
            outcome,
            at: (Instant::now(), SystemTime::now()),
            provider: None,
            provider_name: Some("gpu".into()),
            served_model: Some("m".into()),
            usage: Usage { estimated: true, prompt_tokens: Some(3), ..Usage::default() },
            bytes: 9,
            queued: Duration::from_millis(5),
            load_wait: None,
            first_byte: None,
            first_token: None,
            total: Duration::from_millis(7),
            requeues: 2,
            breaks: Vec::new(),
            cost: Some(Money(150_000)),
        }
    }

    fn numbers(recent: &RecentRequests, after: u64, limit: usize) -> Vec<u64> {
        recent.list(after, limit).iter().map(|request| request.n).collect()
    }

    #[test]
    fn a_request_is_told_as_it_ended() {
        let recent = RecentRequests::default();
        let failure = Failure { ending: Ending::ProviderLost, detail: Some("secret".to_owned()) };
        recent.ended(&facts(Scope::from("room:a")), &ended(Outcome::Failed(failure)));
        recent.ended(&facts(Scope::server()), &ended(Outcome::Answered(StatusCode::OK)));
        let [answered, lost] = <[_; 2]>::try_from(recent.list(0, 9)).unwrap();
        assert_eq!(
            (&*lost.outcome, lost.status, lost.scope.as_deref()),
            ("worker_lost", None, Some("room:a"))
        );
        assert_eq!(
            (&*answered.outcome, answered.status, &answered.scope),
            ("answered", Some(200), &None)
        );
        assert_eq!((&*answered.model, answered.served_model.as_deref()), ("fast", Some("m")));
        assert_eq!(
            (answered.prompt_tokens, answered.completion_tokens, answered.estimated),
            (Some(3), None, true)
        );
        assert_eq!((answered.queue_ms, answered.first_byte_ms, answered.total_ms), (5, None, 7));
        assert_eq!(answered.cost, Some(Money(150_000)));
        assert!(answered.id.starts_with("r-") && answered.at > Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn the_last_five_hundred_are_kept() {
        let (recent, answered) = (RecentRequests::default(), ended(Outcome::ClientGone));
        (0..KEPT + 10).for_each(|_| recent.ended(&facts(Scope::server()), &answered));
        let newest = numbers(&recent, 0, usize::MAX);
        assert_eq!((newest.len(), newest[0], newest[KEPT - 1]), (KEPT, 510, 11));
        assert_eq!(recent.lock().requests.capacity(), KEPT);
    }

    #[test]
    fn a_client_that_asks_after_its_last_number_misses_none() {
        let (recent, answered) = (RecentRequests::default(), ended(Outcome::ClientGone));
        assert!(numbers(&recent, 0, 9).is_empty());
        (0..3).for_each(|_| recent.ended(&facts(Scope::server()), &answered));
        assert_eq!(numbers(&recent, 1, 9), [3, 2]);
        assert_eq!(numbers(&recent, 0, 2), [3, 2]);
        assert!(numbers(&recent, 3, 9).is_empty());
        assert_eq!(numbers(&recent, 4, 9), [3, 2, 1], "a number of another run");
    }
}
