//! Jobs from their start to their end, and the announcements to watchers.

use base::ProviderId;
use serde_json::{Value, json};

use super::*;

fn id(number: u128) -> JobId {
    JobId::from_random(number)
}

fn given(number: u128) -> JobStarted {
    JobStarted {
        job: id(number),
        provider: ProviderId::from_random(1),
        model: "*".to_owned(),
        protocol: Protocol::ChatCompletions,
        message: None,
    }
}

fn answered(number: u128) -> JobEnded {
    let metrics = AnswerMetrics::new(22, 1000, Some(3), Some(4));
    JobEnded { job: id(number), how: How::Answered(metrics) }
}

fn failed(number: u128, begun: bool) -> JobEnded {
    JobEnded { job: id(number), how: How::Failed { begun, error: "no luck".to_owned() } }
}

/// Participant `w1` or another, with two models.
struct Someone(&'static str, [String; 2]);

fn someone(id: &'static str) -> Someone {
    Someone(id, ["mock-1".to_owned(), "mock-2".to_owned()])
}

impl Someone {
    fn holder(&self) -> Holder<'_> {
        Holder { id: self.0, nickname: "Ann", endpoint: "http://127.0.0.1:3921", models: &self.1 }
    }
}

/// The name and the data of an event.
fn event(announcement: &Announcement) -> (String, Value) {
    let value = serde_json::to_value(announcement.event.as_ref().unwrap()).unwrap();
    (value["type"].as_str().unwrap().to_owned(), value["data"].clone())
}

fn message(announcement: &Announcement) -> Value {
    serde_json::to_value(announcement.message.as_ref().unwrap()).unwrap()
}

#[test]
fn a_job_is_announced_as_stock_servers_do_when_it_starts_and_when_it_is_answered() {
    let (mut activity, w1) = (Activity::default(), someone("w1"));
    let announcement = activity.started(&given(1), w1.holder()).unwrap();
    let request_id = id(1).to_string();
    let expected = json!({"requestId": request_id, "participantId": "w1", "model": "*",
        "protocol": "chatCompletions"});
    assert_eq!(event(&announcement), ("llm.request".to_owned(), expected));
    assert_eq!(announcement.message, None);

    let announcement = activity.ended(&answered(1)).unwrap();
    let expected = json!({"requestId": request_id, "participantId": "w1", "model": "mock-1",
        "protocol": "chatCompletions", "metrics": {"ttftMs": 22, "durationMs": 1000,
        "inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "tokensPerSecond": 4.0}});
    assert_eq!(event(&announcement), ("llm.complete".to_owned(), expected));
    let expected = json!({"type": "llm:complete", "requestId": request_id, "participantId": "w1",
        "metrics": {"tokens": 4, "latencyFirstTokenMs": 22, "durationMs": 1000,
        "tokensPerSecond": 4.0}});
    assert_eq!(message(&announcement), expected);
}

#[test]
fn a_failure_says_when_it_came_and_whose_it_was() {
    for (begun, stage) in [(false, "dispatch"), (true, "stream")] {
        let (mut activity, w1) = (Activity::default(), someone("w1"));
        let _ = activity.started(&given(1), w1.holder());
        let announcement = activity.ended(&failed(1, begun)).unwrap();
        let expected = json!({"requestId": id(1).to_string(), "participantId": "w1",
            "nickname": "Ann", "endpoint": "http://127.0.0.1:3921", "model": "mock-1",
            "protocol": "chatCompletions", "stage": stage, "error": "no luck"});
        assert_eq!(event(&announcement), ("llm.error".to_owned(), expected));
        let expected = json!({"type": "llm:error", "requestId": id(1).to_string(),
            "participantId": "w1", "error": "no luck"});
        assert_eq!(message(&announcement), expected);
    }
}

#[test]
fn watchers_see_the_end_of_a_job_whose_client_left() {
    let (mut activity, w1) = (Activity::default(), someone("w1"));
    let _ = activity.started(&given(1), w1.holder());
    let announcement = activity.ended(&JobEnded { job: id(1), how: How::ClientGone }).unwrap();
    assert_eq!(event(&announcement).1["error"], "the client left");
    assert_eq!(event(&announcement).0, "llm.error");
}

#[test]
fn the_end_of_an_llm_request_is_an_event_only_and_waits_for_its_last_token() {
    let (mut activity, w1) = (Activity::default(), someone("w1"));
    let asked = |number| JobStarted { message: Some("q-1".to_owned()), ..given(number) };
    let _ = activity.started(&asked(1), w1.holder());
    assert_eq!(activity.ended(&answered(1)), None);
    assert_eq!(activity.conclude(id(1)).unwrap().name(), "llm.complete");
    let _ = activity.started(&asked(2), w1.holder());
    assert_eq!(activity.conclude(id(2)), None, "the job has not ended");
    let announcement = activity.ended(&answered(2)).unwrap();
    assert_eq!((event(&announcement).0.as_str(), announcement.message), ("llm.complete", None));
    assert!(activity.withheld.is_empty() && activity.conclude(id(3)).is_none());
}

#[test]
fn the_model_is_the_participants_own() {
    let models = ["mock-1".to_owned(), "mock-2".to_owned()];
    for (selector, model) in [("*", 0), ("any", 0), ("w1", 0), ("model:mock-2", 1), ("mock-2", 1)] {
        assert_eq!(model_of(selector, &models), models[model], "{selector}");
    }
    assert_eq!(model_of("*", &[]), "");
}

#[test]
fn a_participant_is_busy_with_its_jobs() {
    let (mut activity, w1, w2) = (Activity::default(), someone("w1"), someone("w2"));
    for (number, holder) in [(1, &w1), (2, &w1), (3, &w2)] {
        let _ = activity.started(&given(number), holder.holder());
    }
    assert_eq!((activity.in_flight("w1"), activity.in_flight("w2")), (2, 1));
    assert_eq!(activity.holder(id(3)), Some("w2"));
    let _ = activity.ended(&answered(1));
    let _ = activity.ended(&failed(2, true));
    assert_eq!((activity.in_flight("w1"), activity.in_flight("w2")), (0, 1));
    assert_eq!(activity.metrics("w1"), Some(AnswerMetrics::new(22, 1000, Some(3), Some(4))));
    assert_eq!(activity.metrics("w2"), None);
    assert_eq!(activity.holder(id(1)), None);
}

#[test]
fn a_job_that_is_assigned_anew_is_announced_anew_and_counts_for_one_participant() {
    let (mut activity, w1, w2) = (Activity::default(), someone("w1"), someone("w2"));
    let _ = activity.started(&given(1), w1.holder());
    let announcement = activity.started(&given(1), w2.holder()).unwrap();
    assert_eq!(event(&announcement).1["participantId"], "w2");
    assert_eq!((activity.in_flight("w1"), activity.in_flight("w2")), (0, 1));
    assert_eq!(activity.holder(id(1)), Some("w2"));
    assert_eq!(event(&activity.ended(&answered(1)).unwrap()).1["participantId"], "w2");
    assert_eq!(activity.in_flight("w2"), 0);
}

#[test]
fn a_job_that_waits_anew_is_nobodys_and_its_end_names_its_last_participant() {
    let (mut activity, w1) = (Activity::default(), someone("w1"));
    let _ = activity.started(&given(1), w1.holder());
    activity.requeued(id(1));
    activity.requeued(id(1));
    assert_eq!((activity.holder(id(1)), activity.in_flight("w1")), (None, 0));
    assert_eq!(event(&activity.ended(&failed(1, false)).unwrap()).1["participantId"], "w1");
}

#[test]
fn a_job_without_a_participant_has_no_events() {
    assert_eq!(Activity::default().ended(&failed(1, false)), None);
}

#[test]
fn an_end_that_comes_before_its_start_leaves_nothing_behind() {
    let (mut activity, w1) = (Activity::default(), someone("w1"));
    assert_eq!(activity.ended(&answered(1)), None);
    assert_eq!(activity.started(&given(1), w1.holder()), None);
    assert_eq!((activity.jobs.len(), activity.in_flight("w1")), (0, 0));
    for number in 2..1000 {
        let _ = activity.ended(&failed(number, false));
    }
    assert_eq!(activity.ended_early.len(), ENDED_EARLY);
}

#[test]
fn one_that_left_and_came_back_does_not_pay_for_its_old_jobs() {
    let (mut activity, w1) = (Activity::default(), someone("w1"));
    let _ = activity.started(&given(1), w1.holder());
    activity.forget("w1");
    let _ = activity.started(&given(2), w1.holder());
    assert!(activity.ended(&failed(1, true)).is_some());
    assert_eq!(activity.in_flight("w1"), 1);
}

#[test]
fn jobs_above_the_bound_are_served_without_events() {
    let (mut activity, w1) = (Activity::default(), someone("w1"));
    for number in 0..MAX_JOBS as u128 {
        assert!(activity.started(&given(number), w1.holder()).is_some());
    }
    assert_eq!(activity.started(&given(u128::MAX), w1.holder()), None);
    assert!(activity.started(&given(0), w1.holder()).is_some(), "one that is followed goes on");
    assert_eq!(activity.jobs.len(), MAX_JOBS);
    assert!(activity.ended(&answered(0)).is_some());
    assert!(activity.started(&given(u128::MAX), w1.holder()).is_some());
}
