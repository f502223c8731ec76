//! Bodies of requests that are not for inference.

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;

use super::failure::Failure;
use crate::{read, state::Api};

/// The largest body of a request that is not for inference, in bytes.
const MAX_BODY: usize = 1 << 20;

/// Reads a body that is not for inference.
pub(super) async fn read_body(api: &Api, parts: &Parts, mut body: Body) -> Result<Bytes, Failure> {
    let mut held = api.uploads().hold();
    match read::read(&parts.headers, &mut body, MAX_BODY, &mut held).await {
        Ok(read) => Ok(read),
        Err(error) => {
            read::discard(&parts.headers, body).await;
            Err(error.into())
        }
    }
}
