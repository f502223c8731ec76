//! A server that was asked to end.

use std::time::Duration;

use protocol::admin::stop::StopProgress;

use crate::{error::ClientError, lines::JsonLines};

/// The longest silence of a server that ends.
pub(crate) const SILENCE: Duration = Duration::from_secs(15 * 60);

/// The progress of a server that was asked to end.
#[derive(Debug)]
pub struct Stopping(pub(crate) JsonLines);

impl Stopping {
    /// The work that it waits for now; `None` when the server has closed the connection.
    ///
    /// # Errors
    /// When nothing came for 15 minutes, or something else came.
    pub async fn next(&mut self) -> Result<Option<StopProgress>, ClientError> {
        match self.0.next().await {
            // A server that ends may not finish its sentence.
            Err(ClientError::Unreachable { .. }) => Ok(None),
            step => step,
        }
    }
}
