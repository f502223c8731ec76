//! The tables of rows that wait: how a row is written and read.

use base::{Endpoint, KeyId, ModelName, Money};
use rusqlite::{Row, ToSql};

use super::super::{parsed, signed, unsigned};
use crate::{Action, UsageEntry};

pub(super) const INSERT_USAGE: &str = "INSERT INTO unsent_usage (source, at, job, key, model, served_model, provider,
        api, outcome, status, prompt_tokens, completion_tokens, estimated, queue_ms, first_byte_ms, total_ms,
        streaming, requeues, cost, resumes)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";

pub(super) const INSERT_ACTION: &str =
    "INSERT INTO unsent_audit (source, at, who, what, target, outcome)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

pub(super) fn of_usage(entry: &UsageEntry) -> Vec<Box<dyn ToSql + '_>> {
    vec![
        Box::new(signed(entry.at_ms)),
        Box::new(entry.job.to_string()),
        Box::new(entry.key.as_str()),
        Box::new(entry.model.as_str()),
        Box::new(entry.served_model.as_ref().map(ModelName::as_str)),
        Box::new(entry.provider.as_deref()),
        Box::new(entry.endpoint.path()),
        Box::new(&*entry.outcome),
        Box::new(entry.status),
        Box::new(entry.prompt_tokens.map(signed)),
        Box::new(entry.completion_tokens.map(signed)),
        Box::new(entry.estimated),
        Box::new(signed(entry.queue_ms)),
        Box::new(entry.first_byte_ms.map(signed)),
        Box::new(signed(entry.total_ms)),
        Box::new(entry.streaming),
        Box::new(entry.requeues),
        Box::new(entry.cost.map(|cost| signed(cost.0))),
        Box::new(entry.resumes.as_deref()),
    ]
}

pub(in crate::sqlite) fn usage(row: &Row<'_>) -> rusqlite::Result<UsageEntry> {
    let text = |column| row.get::<_, String>(column);
    let maybe = |column| row.get::<_, Option<i64>>(column).map(|it| it.map(unsigned));
    Ok(UsageEntry {
        at_ms: unsigned(row.get("at")?),
        job: parsed(&text("job")?)?,
        key: KeyId::from(text("key")?),
        model: ModelName::from(text("model")?),
        served_model: row.get::<_, Option<String>>("served_model")?.map(ModelName::from),
        provider: row.get::<_, Option<String>>("provider")?.map(Into::into),
        endpoint: endpoint(&text("api")?),
        outcome: text("outcome")?.into(),
        status: row.get("status")?,
        prompt_tokens: maybe("prompt_tokens")?,
        completion_tokens: maybe("completion_tokens")?,
        estimated: row.get("estimated")?,
        queue_ms: unsigned(row.get("queue_ms")?),
        first_byte_ms: maybe("first_byte_ms")?,
        total_ms: unsigned(row.get("total_ms")?),
        streaming: row.get("streaming")?,
        requeues: row.get("requeues")?,
        cost: maybe("cost")?.map(Money),
        resumes: row.get::<_, Option<String>>("resumes")?.map(Into::into),
    })
}

pub(super) fn of_action(action: &Action) -> Vec<Box<dyn ToSql + '_>> {
    let Action { at, who, what, target, outcome } = action;
    vec![Box::new(signed(*at)), Box::new(who), Box::new(what), Box::new(target), Box::new(outcome)]
}

pub(in crate::sqlite) fn action(row: &Row<'_>) -> rusqlite::Result<Action> {
    Ok(Action {
        at: unsigned(row.get("at")?),
        who: row.get("who")?,
        what: row.get("what")?,
        target: row.get("target")?,
        outcome: row.get("outcome")?,
    })
}

/// The endpoint of a path. Where several share a path, the first of them stands for all, as in the ledger. A newer
/// version may have left a row with a path that this one does not know: it counts as chat, so that its tokens and its
/// cost are not lost, and the rows behind it are not held up.
fn endpoint(path: &str) -> Endpoint {
    Endpoint::of_path(path).unwrap_or(Endpoint::ChatCompletions)
}
