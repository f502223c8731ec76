//! From rankings in Jina's and Cohere's shape to a server of Text Embeddings Inference, which has a shape of its
//! own.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `query` | itself |
//! | `documents`, each a text or an object with `text` | `texts` |
//! | `top_n` | the answer has this number at most |
//! | `return_documents` | the answer has the documents |
//! | documents that are pictures | refused |
//! | fields not known | dropped |
//!
//! Long documents are cut (`truncate`), as Jina and Cohere do. An error passes as it is.

use std::borrow::Cow;

use protocol::{
    failure::BadAnswer,
    json::{
        self, BadRequest,
        fields::{self, Text},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::answer::{Answer, Context, WholeAnswer};

/// The request in the provider's shape.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let given: RerankRequest<'_> = fields::body(body)?;
    given.top()?;
    let (query, texts) = (fields::text(given.query, "query")?, given.texts()?);
    Ok(json::write(&TextsRequest { query, texts, truncate: true }).into_bytes())
}

/// Translates the answer; `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    let given = fields::body::<RerankRequest<'_>>(request).unwrap_or_default();
    // Errors cannot occur here: `request` refused such a body before.
    let most = given.top().unwrap_or_default().unwrap_or(usize::MAX);
    let texts = given.returns().then(|| given.texts().unwrap_or_default());
    let texts = texts.map(|texts| texts.into_iter().map(Cow::into_owned).collect());
    let ranking = Ranking { model: context.model.clone(), most, texts };
    WholeAnswer::new(|_, error| error, move |body, _| ranking.write(body))
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RerankRequest<'a> {
    query: Option<&'a RawValue>,
    documents: Option<&'a RawValue>,
    top_n: Option<&'a RawValue>,
    return_documents: Option<&'a RawValue>,
}

impl<'a> RerankRequest<'a> {
    fn top(&self) -> Result<Option<usize>, BadRequest> {
        self.top_n.map_or(Ok(None), |raw| fields::value(raw, "top_n"))
    }

    fn returns(&self) -> bool {
        self.return_documents.is_some_and(|raw| raw.get() == "true")
    }

    fn texts(&self) -> Result<Vec<Cow<'a, str>>, BadRequest> {
        let missing = || BadRequest::new("documents", "`documents` is missing");
        let all: Vec<&RawValue> = fields::value(self.documents.ok_or_else(missing)?, "documents")?;
        let text = |(at, raw): (usize, &'a RawValue)| {
            let path = format!("documents[{at}]");
            match raw.get().starts_with('{') {
                true => {
                    let document: Document<'a> = fields::value(raw, &path)?;
                    fields::text(document.text, format!("{path}.text"))
                }
                false => fields::value(raw, path).map(|Text(text)| text),
            }
        };
        all.into_iter().enumerate().map(text).collect()
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Document<'a> {
    text: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct TextsRequest<'a> {
    query: Cow<'a, str>,
    texts: Vec<Cow<'a, str>>,
    truncate: bool,
}

/// Writes the client's answer.
struct Ranking {
    model: String,
    most: usize,
    /// The documents, if the client wants them in the answer.
    texts: Option<Vec<String>>,
}

impl Ranking {
    fn write(&self, answer: &[u8]) -> Result<String, BadAnswer> {
        let ranks: Vec<Rank<'_>> = serde_json::from_slice(answer)
            .map_err(|error| BadAnswer(format!("the answer is no list of ranks: {error}")))?;
        let results = ranks.iter().take(self.most).map(|rank| self.result(rank));
        let results = results.collect::<Result<_, _>>()?;
        Ok(json::write(&RankingAnswer { model: &self.model, object: "list", results }))
    }

    fn result<'a>(&'a self, rank: &Rank<'a>) -> Result<RankedDocument<'a>, BadAnswer> {
        let text = |texts: &'a Vec<String>| {
            let nothing = || BadAnswer(format!("the answer ranks a document {}", rank.index));
            texts.get(rank.index).map(|text| WrittenDocument { text }).ok_or_else(nothing)
        };
        let document = self.texts.as_ref().map(text).transpose()?;
        Ok(RankedDocument { index: rank.index, relevance_score: rank.score, document })
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Rank<'a> {
    index: usize,
    score: &'a RawValue,
}

#[derive(Serialize)]
struct RankingAnswer<'a> {
    model: &'a str,
    object: &'static str,
    results: Vec<RankedDocument<'a>>,
}

#[derive(Serialize)]
struct RankedDocument<'a> {
    index: usize,
    /// As the provider wrote it.
    relevance_score: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<WrittenDocument<'a>>,
}

#[derive(Serialize)]
struct WrittenDocument<'a> {
    text: &'a str,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::answer::Body;

    fn context() -> Context {
        Context { id: String::new(), created: 1, model: "m".to_owned(), streaming: false }
    }

    fn sent(body: &Value) -> Result<Value, BadRequest> {
        let body = request(body.to_string().as_bytes(), &context())?;
        Ok(serde_json::from_slice(&body).unwrap())
    }

    fn answer_to(given: &Value, status: u16, answer: &str) -> Result<String, BadAnswer> {
        let mut map = super::answer(&context(), given.to_string().as_bytes());
        assert_eq!(map.head(status, Body::Json), (status, Body::Json));
        let mut out = Vec::new();
        for byte in answer.bytes() {
            map.feed(&[byte], &mut out)?;
        }
        assert!(out.is_empty() && !map.is_over());
        map.end(&mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn documents_become_texts_and_ranks_results() {
        let mut given = json!({
            "model": "m", "query": "q", "documents": ["a", {"text": "b", "id": 7}], "top_n": 1, "max_tokens_per_doc": 9,
        });
        let expected = json!({"query": "q", "texts": ["a", "b"], "truncate": true});
        assert_eq!(sent(&given).unwrap(), expected);
        let answer = r#"[{"index":1,"score":0.99750},{"index":0,"score":0.1}]"#;
        let results =
            r#"{"model":"m","object":"list","results":[{"index":1,"relevance_score":0.99750}]}"#;
        assert_eq!(answer_to(&given, 200, answer).unwrap(), results);
        given["return_documents"] = json!(true);
        given["top_n"] = Value::Null;
        let results: Value =
            serde_json::from_str(&answer_to(&given, 200, answer).unwrap()).unwrap();
        let document = json!({"index": 0, "relevance_score": 0.1, "document": {"text": "a"}});
        assert_eq!(results["results"][1], document);
        let error = r#"{"error":"`texts` cannot be empty","error_type":"Empty"}"#;
        assert_eq!(answer_to(&given, 400, error).unwrap(), error);
    }

    #[test]
    fn what_cannot_be_carried_is_named() {
        let cases = [
            (json!({"documents": ["a"]}), "query"),
            (json!({"query": 7, "documents": ["a"]}), "query"),
            (json!({"query": "q"}), "documents"),
            (json!({"query": "q", "documents": "a"}), "documents"),
            (json!({"query": "q", "documents": ["a", 7]}), "documents[1]"),
            (json!({"query": "q", "documents": [{"image": "x"}]}), "documents[0].text"),
            (json!({"query": "q", "documents": ["a"], "top_n": -1}), "top_n"),
        ];
        for (given, param) in cases {
            assert_eq!(sent(&given).unwrap_err().param.as_deref(), Some(param), "{given}");
        }
    }

    #[test]
    fn an_answer_of_another_shape_is_none() {
        let given = json!({"query": "q", "documents": ["a"], "return_documents": true});
        for answer in ["{}", "[{\"index\":0}]", "[{\"index\":1,\"score\":1}]", "", "[7]"] {
            assert!(answer_to(&given, 200, answer).is_err(), "{answer}");
        }
    }
}
