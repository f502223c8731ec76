//! `GET /admin/usage`: the usage, summed up as the query asks, as JSON or CSV.

use std::{borrow::Cow, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use base::{Currency, UsageBy};
use http::{StatusCode, header};
use jiff::Timestamp;
use protocol::admin::{
    time,
    usage::{UsageReport, UsageRow},
};
use store::{UsageAnswer, UsageQuery};

use super::{blocking, failed, operator};
use crate::{
    error::{ApiError, Kind},
    state::Api,
};

pub(crate) async fn show(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    operator(&api, request.headers())?;
    let bad = |words| ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words);
    let parameters =
        UsageParameters::parse(request.uri().query(), Timestamp::now()).map_err(bad)?;
    let (ledger, query) = (Arc::clone(&api.administration().usage), parameters.query.clone());
    let answer = blocking(move || ledger.usage(&query)).await?.map_err(|error| failed(&error))?;
    let report = report(answer, &parameters.query.by, api.keys().prices().currency);
    Ok(match parameters.csv {
        true => {
            let kind = [(header::CONTENT_TYPE, "text/csv; charset=utf-8")];
            (kind, report.to_csv(&parameters.query.by)).into_response()
        }
        false => Json(report).into_response(),
    })
}

/// The parameters of a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UsageParameters {
    /// The query to the ledger.
    pub query: UsageQuery,
    /// Whether to answer with CSV.
    pub csv: bool,
}

impl UsageParameters {
    /// Reads `by`, `since`, `until`, `key`, `model`, `provider` and `format` of a query.
    ///
    /// # Errors
    /// The query's fault in words for the client: an unknown parameter, or a value that cannot be read.
    pub fn parse(query: Option<&str>, now: Timestamp) -> Result<Self, String> {
        let mut all = Self::default();
        for (name, value) in parameters(query).filter(|(_, value)| !value.is_empty()) {
            all.take(&name, &value, now).map_err(|why| format!("{name}={value}: {why}"))?;
        }
        Ok(all)
    }

    fn take(&mut self, name: &str, value: &str, now: Timestamp) -> Result<(), String> {
        let query = &mut self.query;
        match name {
            "by" => query.by = dimensions(value)?,
            "since" => query.since_ms = Some(millis(value, now)?),
            "until" => query.until_ms = Some(millis(value, now)?),
            "key" => query.key = Some(value.to_owned()),
            "model" => query.model = Some(value.to_owned()),
            "provider" => query.provider = Some(value.to_owned()),
            "format" if matches!(value, "json" | "csv") => self.csv = value == "csv",
            "format" => return Err("expected json or csv".to_owned()),
            _ => {
                let known = "by, since, until, key, model, provider and format";
                return Err(format!("there is no such parameter, only {known}"));
            }
        }
        Ok(())
    }
}

/// The ledger's answer as JSON.
pub fn report(answer: UsageAnswer, by: &[UsageBy], currency: Currency) -> UsageReport {
    let row = |group: store::UsageGroup| {
        let mut row = UsageRow { counts: group.sums, ..UsageRow::default() };
        by.iter().zip(group.names).for_each(|(by, name)| row.set(*by, name));
        row
    };
    UsageReport {
        totals: answer.totals,
        currency,
        truncated: answer.truncated,
        rows: answer.groups.into_iter().map(row).collect(),
    }
}

fn dimensions(text: &str) -> Result<Vec<UsageBy>, String> {
    let mut dimensions = Vec::new();
    for name in text.split(',').map(str::trim) {
        let by: UsageBy = name.parse().map_err(|error| format!("{error}, not {name:?}"))?;
        if !dimensions.contains(&by) {
            dimensions.push(by);
        }
    }
    Ok(dimensions)
}

fn millis(text: &str, now: Timestamp) -> Result<u64, String> {
    let at = time::past(text, now).map_err(|error| error.to_string())?;
    Ok(u64::try_from(at.as_millisecond()).unwrap_or(0))
}

pub(super) fn parameters(
    query: Option<&str>,
) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes())
}

/// Reads a query whose parameters are all numbers. `known`: their names, each with its usual value. `only`: the same
/// names as the error lists them.
///
/// # Errors
/// 400 for an unknown parameter, or a value that is not a number.
pub(super) fn numbers<const N: usize>(
    query: Option<&str>,
    known: [(&str, u64); N],
    only: &str,
) -> Result<[u64; N], ApiError> {
    let mut numbers = known.map(|(_, usual)| usual);
    for (name, value) in parameters(query) {
        let named = known.iter().zip(&mut numbers).find(|((known, _), _)| *known == name);
        let (number, given) =
            named.zip(value.parse().ok()).map(|((_, it), given)| (it, given)).ok_or_else(|| {
                let words = format!("{name}={value} is no parameter of this: only {only}");
                ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
            })?;
        *number = given;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<UsageParameters, String> {
        UsageParameters::parse(Some(query), "2026-11-20T16:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_query_is_read() {
        let query = "by=key,%20day,key&since=1970-01-02&until=1h&model=a%20b&provider=&format=csv";
        let parameters = parse(query).unwrap();
        assert_eq!(parameters.query.by, [UsageBy::Key, UsageBy::Day]);
        assert_eq!(parameters.query.since_ms, Some(86_400_000));
        assert_eq!(parameters.query.until_ms, Some(1_795_186_800_000));
        assert_eq!(
            (parameters.query.model.as_deref(), parameters.query.provider),
            (Some("a b"), None)
        );
        assert!(parameters.csv);
        assert_eq!(
            UsageParameters::parse(None, Timestamp::UNIX_EPOCH),
            Ok(UsageParameters::default())
        );
    }

    #[test]
    fn a_querys_fault_is_named() {
        for (query, named) in
            [("by=week", "week"), ("since=soon", "soon"), ("format=xml", "csv"), ("b=key", "b=key")]
        {
            let error = parse(query).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn a_wrong_parameter_of_a_list_is_named() {
        let known = [("after", 0), ("limit", 100)];
        for query in ["after=-1", "limit=x", "since=7d", "after="] {
            let error = numbers(Some(query), known, "after=N and limit=M are").unwrap_err();
            assert!(error.message.contains(query), "{}", error.message);
        }
        assert_eq!(numbers(Some("after=7&limit=0"), known, ""), Ok([7, 0]));
        assert_eq!(numbers(None, known, ""), Ok([0, 100]));
    }
}
