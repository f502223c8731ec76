//! Providers that want to be asked on their own terms.

use std::sync::{Arc, Mutex};

use base::{Endpoint, JobId, ModelName};
use bytes::Bytes;
use dispatch::CancelReason;
use scheduler::{Assignment, Config, JobRequest, Provider, RequestEdit, Terms};

use crate::kit::{Kit, offer};

/// Offers a model under another name than its own, and wants its requests marked.
#[derive(Default)]
struct Particular(Mutex<Vec<Assignment>>);

struct Mark;

impl RequestEdit for Mark {
    fn apply(&self, request: Arc<JobRequest>, endpoint: Endpoint) -> Arc<JobRequest> {
        let body = [&request.body[..], endpoint.path().as_bytes()].concat();
        Arc::new(JobRequest { body: Bytes::from(body), ..(*request).clone() })
    }
}

impl Provider for Particular {
    fn name(&self) -> &'static str {
        "particular"
    }

    fn assign(&self, assignment: Assignment) {
        self.0.lock().unwrap().push(assignment);
    }

    fn cancel(&self, _: JobId, _: CancelReason) {}

    fn drain(&self, _: &str, _: std::time::Duration) {}

    fn retire(&self, _: bool) {}

    fn refresh(&self, _: &str) {}

    fn terms(&self, _: ModelName) -> Terms {
        Terms { model: "real".into(), edit: Some(Arc::new(Mark)) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_is_sent_what_its_terms_make_of_a_request_and_counted_by_its_own_name() {
    let mut kit = Kit::new(Config::default());
    let provider = Arc::new(Particular::default());
    let joined: Arc<dyn Provider> = Arc::<Particular>::clone(&provider);
    let _membership = kit.scheduler.join(base::ProviderId::from_random(1), offer(1), joined);
    let answer = kit.submit();
    let assignment = provider.0.lock().unwrap().pop().unwrap();
    assert_eq!(assignment.request.body, "{}/v1/chat/completions");
    assignment.answer.fail("enough");
    drop(answer);
    assert_eq!(kit.ended.lock().unwrap()[0].1.served_model, Some("real".into()));
}
