//! A node's description of itself: the query of the URL that it dials.

use base::Secret;
use form_urlencoded::{Serializer, parse};

/// The longest model or name, in bytes.
pub const MAX_NAME: usize = 256;

/// The most tasks at once that a node may claim to take.
pub const MAX_CONCURRENCY: u32 = 10_000;

/// A node's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Its token.
    pub token: Secret,
    /// The one model that it serves.
    pub model: String,
    /// How many tasks it takes at once, from 1 to [`MAX_CONCURRENCY`].
    pub max_concurrency: u32,
    /// Its name, unique among the nodes of its model.
    pub name: String,
}

/// Why a query names no node. The text is the reason of a close with code 4001.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    /// A parameter is missing or empty.
    #[error("Missing token, model, max_concurrency, or name")]
    Missing,
    /// `max_concurrency` is no number, or an absurd one.
    #[error("max_concurrency must be a whole number from 1 to {MAX_CONCURRENCY}")]
    Concurrency,
    /// The model or the name is longer than [`MAX_NAME`].
    #[error("model and name must not be longer than {MAX_NAME} bytes")]
    TooLong,
    /// The model is `*`, which means any model elsewhere.
    #[error("model must name one model")]
    Wildcard,
}

impl Query {
    /// Reads a query, without its `?`. Of repeated parameters the first counts; unknown ones mean
    /// nothing.
    ///
    /// # Errors
    /// [`BadQuery`].
    pub fn parse(query: &str) -> Result<Self, BadQuery> {
        let required = |name: &str| first(query, name).ok_or(BadQuery::Missing);
        let token = Secret::from(required("token")?);
        let (model, name) = (required("model")?, required("name")?);
        let max_concurrency = required("max_concurrency")?;
        if model.len() > MAX_NAME || name.len() > MAX_NAME {
            return Err(BadQuery::TooLong);
        }
        if model == "*" {
            return Err(BadQuery::Wildcard);
        }
        let max_concurrency = concurrency(&max_concurrency).ok_or(BadQuery::Concurrency)?;
        Ok(Self { token, model, max_concurrency, name })
    }

    /// The query, without its `?`. It holds the token: log it only through [`base::redact_url`].
    pub fn encode(&self) -> String {
        Serializer::new(String::new())
            .append_pair("name", &self.name)
            .append_pair("model", &self.model)
            .append_pair("token", self.token.expose())
            .append_pair("max_concurrency", &self.max_concurrency.to_string())
            .finish()
    }
}

fn first(query: &str, wanted: &str) -> Option<String> {
    let value = parse(query.as_bytes()).find(|(name, _)| name == wanted)?.1;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

fn concurrency(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    (1..=MAX_CONCURRENCY).contains(&number).then_some(number)
}

/// The parameters of a query, including empty ones: they identify a node on a path that several
/// protocols share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parameters {
    /// `token`.
    pub token: bool,
    /// `model`.
    pub model: bool,
    /// `max_concurrency`.
    pub max_concurrency: bool,
    /// `name`.
    pub name: bool,
    /// `node`, which a mesh peer sends.
    pub node: bool,
}

impl Parameters {
    /// The parameters of a query, without its `?`.
    pub fn of(query: &str) -> Self {
        let mut there = Self::default();
        for (name, _) in parse(query.as_bytes()) {
            match &*name {
                "token" => there.token = true,
                "model" => there.model = true,
                "max_concurrency" => there.max_concurrency = true,
                "name" => there.name = true,
                "node" => there.node = true,
                _ => {}
            }
        }
        there
    }

    /// Whether it has all four parameters of a node.
    pub fn complete(self) -> bool {
        self.token && self.model && self.max_concurrency && self.name
    }

    /// Whether it has one that only a node sends.
    pub fn names_node(self) -> bool {
        self.token || self.model || self.max_concurrency
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_query_of_a_stock_node_is_read() {
        let query =
            Query::parse("name=gpu%201&model=org/m%3A8b&token=a+b%26&max_concurrency=4&x=1");
        let expected = Query {
            token: "a b&".into(),
            model: "org/m:8b".into(),
            max_concurrency: 4,
            name: "gpu 1".into(),
        };
        assert_eq!(query, Ok(expected));
    }

    #[test]
    fn missing_or_empty_parameters_get_the_stock_error() {
        let whole = ["token=t", "model=m", "max_concurrency=1", "name=n"];
        for (at, parameter) in whole.into_iter().enumerate() {
            let mut lacking = whole.to_vec();
            lacking.remove(at);
            assert_eq!(Query::parse(&lacking.join("&")), Err(BadQuery::Missing));
            let name = parameter.split('=').next().unwrap();
            lacking.push(name);
            assert_eq!(Query::parse(&lacking.join("&")), Err(BadQuery::Missing), "{name} is empty");
        }
        let words = BadQuery::Missing.to_string();
        assert_eq!(words, "Missing token, model, max_concurrency, or name");
    }

    #[test]
    fn absurd_values_are_refused() {
        let with = |model: &str, number: &str, name: &str| {
            Query::parse(&format!("token=t&model={model}&max_concurrency={number}&name={name}"))
                .map(|query| query.max_concurrency)
        };
        assert_eq!(with("m", "1", "n"), Ok(1));
        assert_eq!(with("m", "10000", "n"), Ok(10_000));
        for absurd in ["0", "-1", "10001", "1.5", "1e3", "four", "%2B4", "99999999999999999999"] {
            assert_eq!(with("m", absurd, "n"), Err(BadQuery::Concurrency), "{absurd}");
        }
        let long = "x".repeat(MAX_NAME);
        assert_eq!(with(&long, "1", &long), Ok(1));
        assert_eq!(with(&(long.clone() + "x"), "1", "n"), Err(BadQuery::TooLong));
        assert_eq!(with("m", "1", &(long + "x")), Err(BadQuery::TooLong));
        assert_eq!(with("*", "1", "n"), Err(BadQuery::Wildcard));
    }

    #[test]
    fn every_reason_fits_a_close_frame() {
        for bad in [BadQuery::Missing, BadQuery::Concurrency, BadQuery::TooLong, BadQuery::Wildcard]
        {
            assert!(bad.to_string().len() <= 123, "{bad}");
        }
    }

    #[test]
    fn parameters_tell_who_knocks() {
        assert!(Parameters::of("token=a&model=b&max_concurrency=c&name=").complete());
        assert!(!Parameters::of("token=a&model=b&max_concurrency=c").complete());
        assert!(Parameters::of("model=").names_node());
        let peer = Parameters::of("node=abc&name=x");
        assert!(peer.node && !peer.names_node());
        assert_eq!(Parameters::of(""), Parameters::default());
    }

    proptest! {
        #[test]
        fn a_written_query_is_read_the_same(
            token in "\\S{1,20}", model in "[^\\s*]{1,20}", name in "\\S{1,20}",
            max_concurrency in 1..=MAX_CONCURRENCY,
        ) {
            let query = Query { token: token.into(), model, max_concurrency, name };
            prop_assert_eq!(Query::parse(&query.encode()), Ok(query));
        }

        #[test]
        fn no_query_is_too_strange(query: String) {
            let _ = Query::parse(&query);
        }
    }
}
