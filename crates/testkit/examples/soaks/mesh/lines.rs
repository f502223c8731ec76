//! A pull of the model, and the machine's reports on its progress.

use protocol::admin::mesh::MeshTransfer;
use serde_json::json;
use testkit::lab::http::{self, Answer};

use crate::mesh::{file::MODEL, machine::Machine};

/// The reports of a machine on a pull, line by line.
pub(crate) struct Lines {
    answer: Answer,
    buffer: Vec<u8>,
}

impl Lines {
    /// Has a machine fetch the model.
    pub(crate) async fn of(machine: &Machine) -> Result<Self, String> {
        let request = machine.admin().post("/admin/mesh/pull", &json!({"model": MODEL}));
        let answer = http::send(machine.state().address, &request).await;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status {
            200 => Ok(Self { answer, buffer: Vec::new() }),
            status => Err(format!("{status} {}", answer.text().await.0)),
        }
    }

    /// The next step; nothing after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<MeshTransfer>, String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let nonsense = || format!("no step: {:?}", String::from_utf8_lossy(&line));
                return serde_json::from_slice(&line).map(Some).map_err(|_| nonsense());
            }
            match self.answer.piece().await.map_err(|error| error.to_string())? {
                Some(piece) => self.buffer.extend_from_slice(&piece),
                None => return Ok(None),
            }
        }
    }
}
