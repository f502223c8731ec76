//! The requests about a server's part in the mesh.

use std::time::Duration;

use base::Secret;
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use protocol::{
    admin::mesh::{
        MeshId, MeshModel, MeshModels, MeshPeers, MeshPull, MeshTransfer, MeshTransfers,
    },
    headers::ROUTE,
};
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    error::ClientError,
    rooms::PATIENCE,
    server::{Warren, segment},
};

/// The longest silence of a pull. It waits ten minutes for peers to come back.
const PULLING: Duration = Duration::from_secs(15 * 60);

/// The longest line of a pull, in bytes.
const LONGEST: usize = 1 << 20;

impl Warren {
    /// The server's identity in the mesh.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses. It refuses when it takes no part in the mesh.
    pub async fn mesh_id(&self) -> Result<MeshId, ClientError> {
        self.get("/admin/mesh/id").await
    }

    /// Its peers, in the order of their ids, and those that it could not link to.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`].
    pub async fn mesh_peers(&self) -> Result<MeshPeers, ClientError> {
        self.get("/admin/mesh/peers").await
    }

    /// The models of the mesh, by name.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`].
    pub async fn mesh_models(&self) -> Result<Vec<MeshModel>, ClientError> {
        let list: MeshModels = self.get("/admin/mesh/models").await?;
        Ok(list.models)
    }

    /// The running transfers of models and those that ended last, the newest first.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`].
    pub async fn mesh_transfers(&self) -> Result<Vec<MeshTransfer>, ClientError> {
        let list: MeshTransfers = self.get("/admin/mesh/transfers").await?;
        Ok(list.transfers)
    }

    /// Stops a transfer, by its id. What has arrived stays for another pull.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`]; [`ClientError::NotFound`] when no such transfer runs.
    pub async fn cancel_mesh_transfer(&self, id: &str) -> Result<MeshTransfer, ClientError> {
        self.ask(Method::DELETE, &format!("/admin/mesh/transfers/{}", segment(id)), None).await
    }

    /// Makes the server fetch a model from its peers, or follows the transfer if it already does.
    /// Dropping the answer does not stop the transfer.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`]; [`ClientError::NotFound`] when there is no such peer.
    pub async fn mesh_pull(&self, pull: &MeshPull) -> Result<Pulling, ClientError> {
        let body = serde_json::to_vec(pull).map_err(|error| self.0.strange(error.to_string()))?;
        let body = self.0.open(Method::POST, "/admin/mesh/pull", Some(body), PATIENCE).await?;
        Ok(Pulling { body, url: self.url(), lines: Lines::default() })
    }

    /// The names of the models that the server can answer for, by itself or through others.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn model_ids(&self) -> Result<Vec<String>, ClientError> {
        #[derive(Deserialize)]
        struct List {
            data: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            id: String,
        }
        let list: List = self.get("/v1/models").await?;
        Ok(list.data.into_iter().map(|model| model.id).collect())
    }

    /// The same server, with this route for each request: `local-only`, `prefer-local` or `mesh`.
    ///
    /// # Errors
    /// When `route` cannot be sent in a header.
    pub fn routed(&self, route: &str) -> Result<Self, ClientError> {
        self.0.with_header(ROUTE, &Secret::from(route)).map(Self)
    }

    /// The same server with another token.
    ///
    /// # Errors
    /// When the token cannot be sent in a header.
    pub fn shown(&self, token: Option<&Secret>) -> Result<Self, ClientError> {
        self.0.showing(token).map(Self)
    }
}

/// The steps of a model's transfer.
#[derive(Debug)]
pub struct Pulling {
    body: Incoming,
    url: String,
    lines: Lines,
}

impl Pulling {
    /// The next step; `None` after the last.
    ///
    /// # Errors
    /// When the connection broke, nothing came for 15 minutes, or something else came.
    pub async fn next(&mut self) -> Result<Option<MeshTransfer>, ClientError> {
        let strange = |reason: String| ClientError::Strange { url: self.url.clone(), reason };
        loop {
            if let Some(line) = self.lines.next().map_err(|long| strange(long.to_owned()))? {
                let step = serde_json::from_slice(&line);
                return step.map(Some).map_err(|error| strange(error.to_string()));
            }
            let late = |_| ClientError::Late { url: self.url.clone(), after: PULLING };
            match timeout(PULLING, self.body.frame()).await.map_err(late)? {
                None => return Ok(None),
                Some(Ok(frame)) => self.lines.feed(frame.data_ref()),
                Some(Err(error)) => {
                    let reason = error.to_string();
                    return Err(ClientError::Unreachable { url: self.url.clone(), reason });
                }
            }
        }
    }
}

/// Bytes that are read line by line.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn feed(&mut self, bytes: Option<&Bytes>) {
        self.0.extend_from_slice(bytes.map_or(&[], |bytes| bytes));
    }

    /// The next whole line that is not empty.
    fn next(&mut self) -> Result<Option<Vec<u8>>, &'static str> {
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = self.0.drain(..=end).collect();
            line.pop();
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
        if self.0.len() > LONGEST { Err("a line that does not end") } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_whole_however_they_come() {
        let mut lines = Lines::default();
        lines.feed(Some(&Bytes::from_static(b"{\"a\":1}\n\r\n{\"b")));
        assert_eq!(lines.next(), Ok(Some(b"{\"a\":1}".to_vec())));
        assert_eq!(lines.next(), Ok(None));
        lines.feed(Some(&Bytes::from_static(b"\":2}\n")));
        assert_eq!(lines.next(), Ok(Some(b"{\"b\":2}".to_vec())));
        lines.feed(None);
        assert_eq!(lines.next(), Ok(None));
    }

    #[test]
    fn a_line_without_an_end_is_given_up() {
        let mut lines = Lines::default();
        lines.feed(Some(&Bytes::from(vec![b'x'; LONGEST + 1])));
        assert!(lines.next().is_err());
    }
}
