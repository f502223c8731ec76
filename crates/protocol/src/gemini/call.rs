//! The parts of a path of Gemini's API: `/v1beta/models/MODEL:METHOD?alt=sse`.

use std::borrow::Cow;

use base::Endpoint;

/// The versions of the API in its paths.
const VERSIONS: [&str; 2] = ["/v1beta/", "/v1/"];

/// The collections whose members are models.
const COLLECTIONS: [&str; 2] = ["models", "tunedModels"];

/// A method of a model, as a path names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The model, decoded. `None` where the path names none, and the body has to.
    pub model: Option<Cow<'a, str>>,
    /// The endpoint that is asked for.
    pub endpoint: Endpoint,
    /// The form in which the answer is asked for.
    pub form: Form,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One JSON object.
    Whole,
    /// A stream of events.
    Events,
    /// A JSON array that is streamed element by element.
    Array,
}

impl<'a> Call<'a> {
    /// The call of a path and its query; `None` for any other path.
    pub fn of(path: &'a str, query: Option<&str>) -> Option<Self> {
        let (name, method) = named(path)?;
        let (endpoint, streams) = match method {
            "generateContent" => (Endpoint::GeminiGenerate, false),
            "streamGenerateContent" => (Endpoint::GeminiGenerate, true),
            "countTokens" => (Endpoint::GeminiCountTokens, false),
            "embedContent" => (Endpoint::GeminiEmbed, false),
            "batchEmbedContents" => (Endpoint::GeminiBatchEmbed, false),
            _ => return None,
        };
        let form = match (streams, asks_for_events(query)) {
            (false, _) => Form::Whole,
            (true, true) => Form::Events,
            (true, false) => Form::Array,
        };
        Some(Self { model: name.map(decoded), endpoint, form })
    }
}

/// The model and the method of a path, still percent-encoded.
fn named(path: &str) -> Option<(Option<&str>, &str)> {
    let (_, rest) = below_version(path)?;
    let (collection, method) = rest.rsplit_once(':')?;
    if COLLECTIONS.contains(&collection) {
        return Some((None, method));
    }
    let (collection, name) = collection.split_once('/')?;
    (COLLECTIONS.contains(&collection) && !name.is_empty()).then_some((Some(name), method))
}

/// A path in two parts: its version, and what follows.
fn below_version(path: &str) -> Option<(&str, &str)> {
    VERSIONS.iter().find_map(|version| Some((*version, path.strip_prefix(version)?)))
}

/// Whether a path belongs to Gemini's API and no other, whatever its method.
pub fn is_geminis(path: &str) -> bool {
    path == "/v1beta" || path.starts_with(VERSIONS[0]) || Call::of(path, None).is_some()
}

/// A model's name without the collection that it is in.
pub fn bare_name(name: &str) -> &str {
    let within = |collection: &&str| name.strip_prefix(*collection)?.strip_prefix('/');
    COLLECTIONS.iter().find_map(within).unwrap_or(name)
}

fn asks_for_events(query: Option<&str>) -> bool {
    let query = query.unwrap_or_default();
    form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| matches!(&*name, "alt" | "$alt") && value.eq_ignore_ascii_case("sse"))
}

/// Decodes a piece of a path. A piece with invalid percent-encoding stays as it is.
fn decoded(piece: &str) -> Cow<'_, str> {
    if !piece.contains('%') {
        return Cow::Borrowed(piece);
    }
    let mut bytes = Vec::with_capacity(piece.len());
    let mut rest = piece.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| first == b'%');
        let mut byte = [0];
        match digits.map(|digits| hex::decode_to_slice(digits, &mut byte)) {
            Some(Ok(())) => {
                bytes.push(byte[0]);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(piece), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(path: &str, query: Option<&str>) -> Option<(Option<String>, Endpoint, Form)> {
        let call = Call::of(path, query)?;
        Some((call.model.map(Cow::into_owned), call.endpoint, call.form))
    }

    #[test]
    fn a_path_names_model_method_and_form() {
        use Endpoint::{GeminiBatchEmbed, GeminiCountTokens, GeminiEmbed, GeminiGenerate};
        for (path, query, model, endpoint, form) in [
            ("/v1beta/models/m:generateContent", None, "m", GeminiGenerate, Form::Whole),
            ("/v1/models/m:generateContent", Some("alt=sse"), "m", GeminiGenerate, Form::Whole),
            ("/v1beta/models/a/b:8b:countTokens", None, "a/b:8b", GeminiCountTokens, Form::Whole),
            ("/v1beta/models/a%2Fb%3A8b:embedContent", None, "a/b:8b", GeminiEmbed, Form::Whole),
            ("/v1beta/tunedModels/t:batchEmbedContents", None, "t", GeminiBatchEmbed, Form::Whole),
            (
                "/v1beta/models/m:streamGenerateContent",
                Some("x=1&alt=sse"),
                "m",
                GeminiGenerate,
                Form::Events,
            ),
            (
                "/v1beta/models/m:streamGenerateContent",
                Some("$alt=json"),
                "m",
                GeminiGenerate,
                Form::Array,
            ),
            ("/v1beta/models/100%:generateContent", None, "100%", GeminiGenerate, Form::Whole),
        ] {
            assert_eq!(call(path, query), Some((Some(model.to_owned()), endpoint, form)), "{path}");
        }
    }

    #[test]
    fn the_path_of_each_endpoint_is_a_call_without_a_model() {
        let geminis = Endpoint::ALL.into_iter().filter(|endpoint| is_geminis(endpoint.path()));
        let calls: Vec<_> = geminis.map(|it| (it, call(it.path(), None))).collect();
        assert_eq!(calls.len(), 4);
        for (endpoint, called) in calls {
            assert_eq!(called, Some((None, endpoint, Form::Whole)));
        }
    }

    #[test]
    fn other_paths_are_no_calls() {
        for path in [
            "/v1beta/models",
            "/v1beta/models/m",
            "/v1beta/models/:generateContent",
            "/v1beta/models/m:predict",
            "/v1beta/models/m:streamEmbedContent",
            "/v1beta/files/m:generateContent",
            "/v2/models/m:generateContent",
            "/v1/chat/completions",
            "",
        ] {
            assert_eq!(call(path, None), None, "{path}");
        }
        assert!(
            is_geminis("/v1beta/files") && !is_geminis("/v1/models/m") && !is_geminis("/v1betas")
        );
    }

    #[test]
    fn a_name_loses_its_collection() {
        for (given, bare) in
            [("models/a/b", "a/b"), ("tunedModels/t", "t"), ("m", "m"), ("modelsx/m", "modelsx/m")]
        {
            assert_eq!(bare_name(given), bare);
        }
    }
}
