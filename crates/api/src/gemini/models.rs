//! `GET /v1beta/models` and `/v1beta/models/{model}`: the models that are served now, in Gemini's form. A client sees
//! those that its key may use.

use std::collections::BTreeMap;

use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use base::{Capability, Endpoint, ModelFacts, ModelName};
use http::{StatusCode, header, request::Parts};
use protocol::gemini::{Call, call::bare_name};
use serde::Serialize;

use super::{key::is_key, no_such_thing, settle_key};
use crate::{
    error::{ApiError, Kind},
    head::new_id,
    models::{
        details, may_use,
        served::{served, served_in},
    },
    nearest::Known,
    paths,
    request_scope::RequestScope,
    shape,
    state::Api,
};

/// The number of models of a page if the client does not say, and the most that it may ask for.
const PAGE: usize = 50;
const LONGEST_PAGE: usize = 1000;

/// The tokens that are reported for an unknown context: clients take 0 for a model that can read nothing.
const UNKNOWN_CONTEXT: u64 = 131_072;

/// Whether a request to a path that several APIs have comes from a client of Gemini's.
pub(super) fn asks_for(request: &Request) -> bool {
    let has = |name: &str| request.headers().contains_key(name);
    let in_query = || {
        let query = request.uri().query().unwrap_or_default();
        form_urlencoded::parse(query.as_bytes())
            .any(|(name, _)| is_key(&name) || is_size(&name) || is_token(&name))
    };
    has("x-goog-api-key") || has("x-goog-api-client") || in_query()
}

pub(super) async fn list(State(api): State<Api>, mut request: Request) -> Response {
    settle_key(&mut request);
    let (parts, _) = request.into_parts();
    answer(listed(&api, &parts))
}

pub(super) async fn show(State(api): State<Api>, mut request: Request) -> Response {
    settle_key(&mut request);
    let (parts, _) = request.into_parts();
    if Call::of(parts.uri.path(), None).is_some() {
        return answer::<Model>(Err(no_such_thing(&parts.method, &parts.uri)));
    }
    answer(shown(&api, &parts))
}

fn answer<T: Serialize>(made: Result<T, ApiError>) -> Response {
    match made {
        Ok(made) => {
            let headers = [(header::CONTENT_TYPE, "application/json")];
            (headers, protocol::json::write(&made)).into_response()
        }
        Err(error) => error.response(shape::of(Endpoint::GeminiGenerate), new_id()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    models: Vec<Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// A model as Google describes one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Model {
    name: String,
    base_model_id: String,
    version: &'static str,
    display_name: String,
    description: String,
    input_token_limit: u64,
    output_token_limit: u64,
    supported_generation_methods: &'static [&'static str],
    thinking: bool,
}

impl Model {
    fn new(name: &ModelName, facts: &ModelFacts) -> Self {
        let tokens = facts.context_tokens.unwrap_or(UNKNOWN_CONTEXT);
        let can = |capability| facts.capabilities.is_some_and(|all| all.contains(capability));
        let embeds = can(Capability::Embedding) && !can(Capability::Completion)
            || facts.capabilities.is_none() && name.as_str().contains("embed");
        Self {
            name: format!("models/{name}"),
            base_model_id: name.to_string(),
            version: "001",
            display_name: name.to_string(),
            description: String::new(),
            input_token_limit: tokens,
            output_token_limit: tokens,
            supported_generation_methods: if embeds { &EMBEDS } else { &GENERATES },
            thinking: can(Capability::Thinking),
        }
    }
}

const GENERATES: [&str; 2] = ["generateContent", "countTokens"];
const EMBEDS: [&str; 2] = ["embedContent", "batchEmbedContents"];

/// The models that a request may use, each with the known facts.
fn known(api: &Api, scope: &RequestScope) -> BTreeMap<ModelName, ModelFacts> {
    let served = scope.room().map_or_else(|| served(api), |room| served_in(room));
    let all = details::of_scope(api, scope.scope());
    let known = |model: ModelName| {
        let facts = details::of(api, scope, &all, &model).facts;
        (model, facts)
    };
    served.into_keys().filter(|model| may_use(scope, model)).map(known).collect()
}

fn listed(api: &Api, parts: &Parts) -> Result<List, ApiError> {
    let scope = RequestScope::of_plain(api, parts)?;
    let page = Page::of(parts.uri.query().unwrap_or_default())?;
    Ok(page.of_models(&known(api, &scope)))
}

/// The part of a list that a client asks for.
struct Page {
    from: usize,
    size: usize,
}

impl Page {
    fn of(query: &str) -> Result<Self, ApiError> {
        let mut page = Self { from: 0, size: PAGE };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if is_size(&name) {
                page.size = number("pageSize", "a number", &value)?;
            } else if is_token(&name) {
                page.from = number("pageToken", "what an earlier answer has given", &value)?;
            }
        }
        let size = if page.size == 0 { PAGE } else { page.size.min(LONGEST_PAGE) };
        Ok(Self { size, ..page })
    }

    fn of_models(&self, models: &BTreeMap<ModelName, ModelFacts>) -> List {
        let end = self.from.saturating_add(self.size);
        let next_page_token = (models.len() > end).then(|| end.to_string());
        let these = models.iter().skip(self.from).take(self.size);
        let models = these.map(|(name, facts)| Model::new(name, facts)).collect();
        List { models, next_page_token }
    }
}

fn is_size(name: &str) -> bool {
    matches!(name, "pageSize" | "page_size")
}

fn is_token(name: &str) -> bool {
    matches!(name, "pageToken" | "page_token")
}

/// A number in the query; an empty value counts as 0. `what`: what the client may send, for the error.
fn number(name: &'static str, what: &str, text: &str) -> Result<usize, ApiError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let words = format!("`{name}` must be {what}, or be left out");
        let error = ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words);
        ApiError { param: Some(name.into()), ..error }
    })
}

fn shown(api: &Api, parts: &Parts) -> Result<Model, ApiError> {
    let scope = RequestScope::of_plain(api, parts)?;
    let wanted = wanted_name(paths::path(&parts.uri));
    let models = known(api, &scope);
    let other = wanted.with_or_without_latest();
    let names = std::iter::once(&wanted).chain(&other);
    let found = names.into_iter().find_map(|name| models.get_key_value(name));
    if let Some((name, facts)) = found {
        return Ok(Model::new(name, facts));
    }
    let (key, room) = (scope.admitted().key.clone(), scope.room().cloned());
    let near = Known { api, key, room }.nearest(&wanted);
    let words = format!("no provider for model {wanted}{near}");
    Err(ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words))
}

/// The model that a path names.
fn wanted_name(path: &str) -> ModelName {
    // Read as the path of a call, which has the name before a colon: `Call::of` also decodes the name.
    let as_call = format!("{path}:generateContent");
    let named = Call::of(&as_call, None).and_then(|call| call.model);
    named.map_or_else(|| ModelName::from(""), |name| ModelName::from(bare_name(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(count: usize) -> BTreeMap<ModelName, ModelFacts> {
        (0..count).map(|n| (ModelName::from(format!("m{n:04}")), ModelFacts::default())).collect()
    }

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let page = |query: &str| Page::of(query).unwrap().of_models(&models(120));
        let first = page("");
        assert_eq!((first.models.len(), first.next_page_token.as_deref()), (PAGE, Some("50")));
        let last = page("pageSize=60&pageToken=60");
        assert_eq!((last.models.len(), last.next_page_token), (60, None));
        assert_eq!(last.models[0].name, "models/m0060");
        let beyond = page(&format!("pageToken={}", usize::MAX));
        assert_eq!((beyond.models.len(), beyond.next_page_token), (0, None));
        let all = Page::of("pageSize=99999").unwrap().of_models(&models(LONGEST_PAGE + 1));
        assert_eq!(all.models.len(), LONGEST_PAGE);
        for bad in ["pageSize=x", "pageToken=-1", "pageSize=1e3"] {
            assert_eq!(Page::of(bad).map(|_| ()).unwrap_err().status.as_u16(), 400, "{bad}");
        }
    }

    #[test]
    fn a_model_says_what_is_known_of_it() {
        let facts = ModelFacts { context_tokens: Some(4096), ..ModelFacts::default() };
        let json = protocol::json::write(&Model::new(&"a/b:8b".into(), &facts));
        assert!(json.starts_with(r#"{"name":"models/a/b:8b","baseModelId":"a/b:8b","#), "{json}");
        assert!(json.contains(r#""inputTokenLimit":4096,"outputTokenLimit":4096"#), "{json}");
        let embeds = Model::new(&"nomic-embed-text".into(), &ModelFacts::default());
        assert_eq!(embeds.supported_generation_methods, EMBEDS);
    }

    #[test]
    fn a_path_names_its_model_decoded() {
        for (path, name) in [
            ("/v1beta/models/a%2Fb:8b", "a/b:8b"),
            ("/v1beta/tunedModels/t", "t"),
            ("/v1beta/models/m", "m"),
        ] {
            assert_eq!(wanted_name(path).as_str(), name);
        }
    }

    #[test]
    fn a_client_of_geminis_is_known_by_every_way_to_send_a_key_or_to_ask_for_a_page() {
        let asks = |query: &str| {
            let request = Request::builder().uri(format!("/v1/models?{query}"));
            asks_for(&request.body(axum::body::Body::empty()).unwrap())
        };
        for query in ["key=a", "$key=a", "%24key=a", "pageSize=1", "page_size=1", "pageToken=1"] {
            assert!(asks(query), "{query}");
        }
        for query in ["", "limit=1", "after_id=a", "keys=a"] {
            assert!(!asks(query), "{query}");
        }
    }

    #[test]
    fn the_error_for_a_page_says_what_may_be_sent() {
        let words = |query| Page::of(query).err().unwrap().message.into_owned();
        assert_eq!(words("page_size=x"), "`pageSize` must be a number, or be left out");
        assert!(words("pageToken=x").contains("an earlier answer"));
    }
}
