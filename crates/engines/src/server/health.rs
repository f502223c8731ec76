//! Whether a server answers.

use std::time::Duration;

use backend::{BackendRequest, HttpBackend};
use http::{Method, StatusCode};
use tokio::time::timeout;

/// The paths at which servers say whether their model is loaded. The first one that a server has
/// counts.
const USUAL: [&str; 2] = ["/health", "/v1/models"];
/// How long one look may take.
const LOOK: Duration = Duration::from_secs(5);

/// Whether a server says that its model is loaded.
pub(super) async fn answers(backend: &HttpBackend, path: Option<&str>) -> bool {
    let Some(path) = path else {
        for path in USUAL {
            match look(backend, path).await {
                Some(status) if status.is_success() => return true,
                Some(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) => {}
                _ => return false,
            }
        }
        return false;
    };
    look(backend, path).await.is_some_and(|status| status.is_success())
}

async fn look(backend: &HttpBackend, path: &str) -> Option<StatusCode> {
    let (method, path_and_query) = (Method::GET, path.to_owned());
    let ask = BackendRequest { method, path_and_query, ..BackendRequest::default() };
    let look = async {
        let mut answer = backend.send(ask).await.ok()?;
        // Read to its end, so that the connection can be used again.
        while let Some(Ok(_)) = answer.body.next().await {}
        Some(answer.status)
    };
    timeout(LOOK, look).await.ok().flatten()
}
