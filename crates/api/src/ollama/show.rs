//! `/api/show`: what is known of one model.

use axum::response::Response;
use base::Capabilities;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    listed::{self, Details, Listed},
    reply::json,
};
use crate::{error::ApiError, request_scope::RequestScope, state::Api};

/// The architecture of a model whose backends do not say it.
const UNKNOWN: &str = "unknown";

#[derive(Serialize)]
struct Shown {
    license: &'static str,
    modelfile: String,
    parameters: String,
    template: &'static str,
    details: Details,
    model_info: Map<String, Value>,
    capabilities: Capabilities,
    modified_at: String,
}

pub(super) fn show(
    api: &Api,
    request_scope: &RequestScope,
    body: &[u8],
) -> Result<Response, ApiError> {
    let listed = listed::named(api, request_scope, body)?;
    Ok(json(api, &Shown::of(listed)))
}

impl Shown {
    fn of(listed: Listed) -> Self {
        let context = listed.facts.context_tokens;
        Self {
            license: "",
            modelfile: format!("# A model of a Warren server.\nFROM {}\n", listed.name),
            // Some editors read the length of the context here.
            parameters: context.map(|tokens| format!("num_ctx {tokens}")).unwrap_or_default(),
            template: "{{ .Prompt }}",
            details: listed.details(),
            model_info: model_info(&listed),
            capabilities: listed.capabilities(),
            modified_at: listed.modified_at,
        }
    }
}

fn model_info(listed: &Listed) -> Map<String, Value> {
    let architecture = listed.facts.family.as_deref().unwrap_or(UNKNOWN);
    let known = [
        ("general.architecture".to_owned(), Some(Value::from(architecture))),
        ("general.basename".to_owned(), Some(Value::from(&*listed.name))),
        ("general.parameter_count".to_owned(), listed.facts.parameters.map(Value::from)),
        (format!("{architecture}.context_length"), listed.facts.context_tokens.map(Value::from)),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
