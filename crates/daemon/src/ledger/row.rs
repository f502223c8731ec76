//! A job as a row of the ledger.

use std::sync::Arc;

use access::Moment;
use base::{ModelName, millis};
use scheduler::{Break, JobEnd, JobFacts};
use serde_json::{Value, json};
use store::UsageEntry;

use crate::telemetry::metrics::{UNKNOWN_MODEL, is_unknown_model};

/// The most tokens that one row counts. Some backends invent numbers, and the sums must not overflow.
const MAX_TOKENS: u64 = 1 << 36;

pub(super) fn entry(job: &JobFacts, ended: &JobEnd) -> UsageEntry {
    let tokens = |tokens: Option<u64>| tokens.map(|tokens| tokens.min(MAX_TOKENS));
    UsageEntry {
        at_ms: Moment::of(ended.at.0, ended.at.1).wall_ms,
        job: job.id,
        key: job.key.clone(),
        model: match is_unknown_model(ended) {
            true => ModelName::from(UNKNOWN_MODEL),
            false => job.model.clone(),
        },
        served_model: ended.served_model.clone(),
        provider: ended.provider_name.clone(),
        endpoint: job.endpoint,
        outcome: ended.outcome.as_str().into(),
        status: ended.outcome.status(),
        prompt_tokens: tokens(ended.usage.prompt_tokens),
        completion_tokens: tokens(ended.usage.completion_tokens),
        estimated: ended.usage.estimated,
        queue_ms: millis(ended.queued),
        first_byte_ms: ended.first_byte.map(millis),
        total_ms: millis(ended.total),
        streaming: job.streaming,
        requeues: ended.requeues,
        cost: ended.cost,
        resumes: resumes(&ended.breaks),
    }
}

/// The breaks of an answer as JSON, if there were any.
fn resumes(breaks: &[Break]) -> Option<Arc<str>> {
    let place = |it: &Break| json!({ "from": &*it.from, "to": it.to.as_deref(), "characters": it.delivered.characters });
    let places = || breaks.iter().map(place).collect::<Value>();
    (!breaks.is_empty()).then(|| places().to_string().into())
}

#[cfg(test)]
mod tests {
    use scheduler::{BreakOutcome, Delivered};

    use super::*;

    #[test]
    fn the_places_where_an_answer_was_gone_on_with_are_in_its_row() {
        let broken = |to: Option<&str>, outcome| Break {
            from: "a".into(),
            to: to.map(Into::into),
            delivered: Delivered { characters: 7, tokens: 2 },
            outcome,
            why: None,
        };
        assert_eq!(resumes(&[]), None);
        let breaks = [broken(Some("b"), BreakOutcome::Resumed), broken(None, BreakOutcome::Closed)];
        let value: Value = serde_json::from_str(&resumes(&breaks).unwrap()).unwrap();
        let expected = json!([
            {"from": "a", "to": "b", "characters": 7},
            {"from": "a", "to": null, "characters": 7},
        ]);
        assert_eq!(value, expected);
    }
}
