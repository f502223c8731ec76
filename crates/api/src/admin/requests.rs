//! `GET /admin/requests`: the most recently ended requests, the newest first.

use axum::{
    Json,
    extract::{Request, State},
};
use http::StatusCode;
use protocol::admin::requests::RequestList;

use super::{operator, usage::parameters};
use crate::{
    error::{ApiError, Kind},
    state::Api,
};

/// The number of requests in an answer, unless the query sets another.
const USUAL: usize = 100;

pub(crate) async fn list(
    State(api): State<Api>,
    request: Request,
) -> Result<Json<RequestList>, ApiError> {
    operator(&api, request.headers())?;
    let ListQuery { after, limit } = ListQuery::parse(request.uri().query())?;
    Ok(Json(RequestList { requests: api.administration().requests.list(after, limit) }))
}

struct ListQuery {
    after: u64,
    limit: usize,
}

impl ListQuery {
    fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        let mut asked = Self { after: 0, limit: USUAL };
        for (name, value) in parameters(query) {
            asked.take(&name, &value).ok_or_else(|| {
                let words =
                    format!("{name}={value} is no parameter of this: only after=N and limit=M are");
                ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
            })?;
        }
        Ok(asked)
    }

    fn take(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "after" => self.after = value.parse().ok()?,
            "limit" => self.limit = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_parameter_is_named() {
        for query in ["after=-1", "limit=x", "since=7d", "after="] {
            let Err(error) = ListQuery::parse(Some(query)) else { panic!("{query} is taken") };
            assert!(error.message.contains(query), "{}", error.message);
        }
        let Ok(list) = ListQuery::parse(Some("after=7&limit=0")) else { panic!("it is not taken") };
        assert_eq!((list.after, list.limit), (7, 0));
    }
}
