//! The content of a request, JSON or a form: the fields that routing needs, read before it becomes a job.

use access::Tokens;
use bytes::Bytes;
use http::{HeaderMap, header};
use protocol::{
    json::{escaped_len, mended},
    multipart::{BadForm, Boundary, Form, is_form},
    openai::{BadBody, Peek, peek},
    usage::prompt_tokens,
};
use scheduler::Affinity;

use crate::{blocking::off_thread, error::ApiError, read, shape::Shape};

/// Bodies up to this size, in bytes, are not measured in their escaped form: escaping at most
/// doubles a JSON body, so they always fit into the 60 MiB that a stock worker takes.
const SURELY_FITS: usize = 29 * 1024 * 1024;

/// How the fields of a body are found.
pub(crate) enum Content {
    Json,
    Form(Boundary),
}

impl Content {
    /// The kind that these headers declare, for this API.
    ///
    /// # Errors
    /// 415 when the API does not take it, 400 when it is a form whose fields cannot be found.
    pub(crate) fn of(shape: &dyn Shape, headers: &HeaderMap) -> Result<Self, ApiError> {
        if !shape.endpoint().takes_forms() {
            if shape.says_json() {
                read::expect_json(headers)?;
            }
            return Ok(Self::Json);
        }
        match headers.get(header::CONTENT_TYPE).filter(|kind| is_form(kind.as_bytes())) {
            Some(kind) => Ok(Self::Form(Boundary::of(kind.as_bytes())?)),
            None => read::expect_json_or(headers, " or multipart/form-data").map(|()| Self::Json),
        }
    }

    /// Whether it is a form.
    pub(crate) fn is_form(&self) -> bool {
        matches!(self, Self::Form(_))
    }

    /// Reads the fields that routing needs, and returns the body with them. The body is the client's own, unless
    /// different readers could understand it differently: then it is mended.
    ///
    /// # Errors
    /// 400 when the request cannot be routed.
    pub(crate) async fn peek(
        self,
        shape: &dyn Shape,
        body: Bytes,
        with_affinity: bool,
    ) -> Result<(Bytes, PeekedRequest), ApiError> {
        let len = body.len();
        let (body, mut peeked) = off_thread(len, move || match self {
            Self::Json => {
                let read = PeekedRequest::of_json(body, with_affinity);
                read.map_err(|bad| ApiError::from(&bad))
            }
            Self::Form(boundary) => PeekedRequest::of_form(body, &boundary).map_err(ApiError::from),
        })
        .await??;
        if shape.endpoint().takes_forms() {
            // The length of sound and pictures says nothing about their tokens.
            peeked.prompt_tokens = 0;
        }
        Ok((body, peeked))
    }
}

/// The facts about a request that routing and limits need.
pub(crate) struct PeekedRequest {
    /// The fields that routing needs.
    pub(crate) peek: Peek,
    /// Its size on the wire, in bytes.
    pub(crate) size: u64,
    /// The estimated tokens of its prompt.
    pub(crate) prompt_tokens: u64,
    /// Hashes of how the prompt begins, for routing by prefix; empty unless they were asked for.
    pub(crate) affinity: Affinity,
}

impl PeekedRequest {
    /// An estimate of the tokens of prompt and answer together.
    pub(crate) fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.peek.most_tokens)
    }

    /// The same estimate, divided into the sorts of tokens that have their own prices.
    pub(crate) fn priced_tokens(&self) -> Tokens {
        Tokens { prompt: self.prompt_tokens, cached: 0, completion: self.peek.most_tokens }
    }

    /// Reads a JSON body. One that is not strict JSON, or has a field of routing twice, is mended first.
    fn of_json(body: Bytes, with_affinity: bool) -> Result<(Bytes, Self), BadBody> {
        match Self::read(&body, with_affinity) {
            Ok(peeked) => Ok((body, peeked)),
            Err(bad @ (BadBody::NotJson { .. } | BadBody::Twice(_))) => {
                let mended = Bytes::from(mended(&body).ok_or_else(|| bad.clone())?);
                let peeked = Self::read(&mended, with_affinity).map_err(|_| bad)?;
                Ok((mended, peeked))
            }
            Err(bad) => Err(bad),
        }
    }

    /// A form passes as it is, and its files are not looked into.
    fn of_form(body: Bytes, boundary: &Boundary) -> Result<(Bytes, Self), BadForm> {
        let form = Form::read(boundary, &body)?;
        let (size, affinity) = (wire_size(&body), Affinity::default());
        Ok((body, Self { peek: form.into(), size, prompt_tokens: 0, affinity }))
    }

    fn read(body: &[u8], with_affinity: bool) -> Result<Self, BadBody> {
        let peek = peek(body)?;
        let affinity = if with_affinity { affinity(body, &peek) } else { Affinity::default() };
        let (size, prompt_tokens) = (wire_size(body), prompt_tokens(body));
        Ok(Self { size, prompt_tokens, affinity, peek })
    }
}

fn affinity(body: &[u8], peek: &Peek) -> Affinity {
    let [tools, instructions, prompt] = peek.prompt_parts(body);
    Affinity::of(&[tools, instructions], prompt)
}

/// The body's size as a JSON string, in bytes. A body travels as it is or as a JSON string, which is the larger form.
pub(crate) fn wire_size(body: &[u8]) -> u64 {
    if body.len() <= SURELY_FITS {
        return body.len() as u64;
    }
    std::str::from_utf8(body).map_or(body.len(), escaped_len) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Result<(Bytes, PeekedRequest), BadBody> {
        PeekedRequest::of_json(Bytes::copy_from_slice(body.as_bytes()), false)
    }

    #[test]
    fn the_last_of_a_repeated_field_counts_for_everybody() {
        let (body, peeked) =
            of(r#"{"model":"a","stream":false,"x":1, "model":"b","stream":true}"#).unwrap();
        assert_eq!((peeked.peek.model.as_str(), peeked.peek.stream), ("b", true));
        assert_eq!(body, r#"{"x":1,"model":"b","stream":true}"#);
    }

    #[test]
    fn no_number_in_a_field_that_nobody_reads_is_null() {
        let (body, _) = of(r#"{"model":"a","x":[NaN,-Infinity],"y":1.0}"#).unwrap();
        assert_eq!(body, r#"{"model":"a","x":[null,null],"y":1.0}"#);
    }

    #[test]
    fn what_routing_can_read_passes_unchanged() {
        let given = r#"{"x":1, "x":2,"y":"\ud83c","model" : "a"}"#;
        assert_eq!(of(given).unwrap().0, given);
        assert!(matches!(of("{\"model\":"), Err(BadBody::NotJson { .. })));
    }
}
