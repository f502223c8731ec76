//! Anthropic's form: a page of the list, and one model.

use std::borrow::Cow;

use http::StatusCode;
use jiff::Timestamp;
use protocol::json;
use serde::Serialize;

use super::details::ModelEntry;
use crate::error::{ApiError, Kind};

/// The most models of a page, and the number for a client that does not say.
const MAX_PAGE: usize = 1_000;

/// The page that the query asks for. `models` are sorted by name.
///
/// # Errors
/// 400 when a parameter is not valid, or the query has both `after_id` and `before_id`.
pub(super) fn page(models: &[ModelEntry], query: &str) -> Result<String, ApiError> {
    let parameters = PageParameters::read(query)?;
    let is_within = |model: &&ModelEntry| {
        parameters.after.as_ref().is_none_or(|after| model.id.as_str() > &**after)
            && parameters.before.as_ref().is_none_or(|before| model.id.as_str() < &**before)
    };
    let all: Vec<&ModelEntry> = models.iter().filter(is_within).collect();
    let count = all.len().min(parameters.limit);
    // The page before a model has the models directly in front of it, not the first of all.
    let page = match parameters.before {
        Some(_) => &all[all.len() - count..],
        None => &all[..count],
    };
    let id = |model: Option<&&'_ ModelEntry>| model.map(|model| model.id.to_string());
    Ok(json::write(&Page {
        first_id: id(page.first()),
        last_id: id(page.last()),
        has_more: count < all.len(),
        data: page.iter().map(|model| Model::of(model)).collect(),
    }))
}

/// One model.
pub(super) fn one(model: &ModelEntry) -> String {
    json::write(&Model::of(model))
}

struct PageParameters<'a> {
    limit: usize,
    after: Option<Cow<'a, str>>,
    before: Option<Cow<'a, str>>,
}

impl<'a> PageParameters<'a> {
    fn read(query: &'a str) -> Result<Self, ApiError> {
        let mut parameters = Self { limit: MAX_PAGE, after: None, before: None };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "limit" => parameters.limit = limit(&value)?,
                "after_id" => parameters.after = Some(value).filter(|id| !id.is_empty()),
                "before_id" => parameters.before = Some(value).filter(|id| !id.is_empty()),
                _ => {}
            }
        }
        if parameters.after.is_some() && parameters.before.is_some() {
            return Err(invalid("before_id", "only one of before_id and after_id may be given"));
        }
        Ok(parameters)
    }
}

fn limit(value: &str) -> Result<usize, ApiError> {
    let limit = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    limit.ok_or_else(|| invalid("limit", "limit must be a number from 1 to 1000"))
}

fn invalid(param: &'static str, words: &'static str) -> ApiError {
    let error = ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words);
    ApiError { param: Some(param.into()), ..error }
}

#[derive(Serialize)]
struct Page<'a> {
    data: Vec<Model<'a>>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

#[derive(Serialize)]
struct Model<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a str,
    display_name: &'a str,
    created_at: String,
}

impl<'a> Model<'a> {
    fn of(ModelEntry { id, created, .. }: &'a ModelEntry) -> Self {
        let created = i64::try_from(*created).unwrap_or_default();
        let created_at = Timestamp::from_second(created).unwrap_or_default().to_string();
        Self { kind: "model", id: id.as_str(), display_name: id.as_str(), created_at }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::models::details::Details;

    fn models() -> Vec<ModelEntry> {
        let model =
            |id: &str| ModelEntry { id: id.into(), created: 5, details: Details::default() };
        ["a", "b", "c", "d"].map(model).into()
    }

    fn paged(query: &str) -> (String, bool, Value, Value) {
        let answer: Value = serde_json::from_str(&page(&models(), query).unwrap()).unwrap();
        let ids =
            answer["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap());
        let (first, last) = (answer["first_id"].clone(), answer["last_id"].clone());
        (ids.collect(), answer["has_more"] == true, first, last)
    }

    #[test]
    fn pages_follow_one_another_in_both_directions() {
        assert_eq!(paged(""), ("abcd".to_owned(), false, json!("a"), json!("d")));
        assert_eq!(paged("limit=2"), ("ab".to_owned(), true, json!("a"), json!("b")));
        assert_eq!(paged("limit=2&after_id=b"), ("cd".to_owned(), false, json!("c"), json!("d")));
        assert_eq!(paged("limit=2&before_id=d"), ("bc".to_owned(), true, json!("b"), json!("c")));
        assert_eq!(paged("before_id=b&x=1").0, "a");
        assert_eq!(paged("after_id=bb").0, "cd", "a model that is gone still has a place");
        assert_eq!(paged("after_id=z"), (String::new(), false, Value::Null, Value::Null));
    }

    #[test]
    fn a_query_that_is_no_pages_is_refused() {
        for query in ["limit=0", "limit=1001", "limit=-1", "limit=x", "after_id=a&before_id=b"] {
            assert_eq!(page(&models(), query).unwrap_err().status, 400, "{query}");
        }
    }

    #[test]
    fn a_model_has_anthropics_fields() {
        let answer: Value = serde_json::from_str(&one(&models()[0])).unwrap();
        let expected = json!({"type": "model", "id": "a", "display_name": "a",
            "created_at": "1970-01-01T00:00:05Z"});
        assert_eq!(answer, expected);
    }
}
