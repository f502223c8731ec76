//! The kind of a request's body: JSON or a form.

use bytes::Bytes;
use http::{HeaderMap, header};
use protocol::multipart::{Boundary, is_form};

use crate::{
    error::ApiError,
    peeked::{PeekedRequest, peek_form, peek_request},
    read,
    shape::Shape,
};

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

    /// Reads the fields that routing needs.
    ///
    /// # Errors
    /// 400 when the request cannot be routed.
    pub(crate) async fn peek(
        self,
        shape: &dyn Shape,
        body: Bytes,
        with_affinity: bool,
    ) -> Result<(Bytes, PeekedRequest), ApiError> {
        let (body, mut peeked) = match self {
            Self::Json => peek_request(body, with_affinity).await?,
            Self::Form(boundary) => peek_form(body, boundary).await?,
        };
        if shape.endpoint().takes_forms() {
            // Sound and pictures have no tokens by their length.
            peeked.prompt_tokens = 0;
        }
        Ok((body, peeked))
    }
}
