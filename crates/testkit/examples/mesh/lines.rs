//! A model that a machine is told to fetch, and how it says that it goes.

use std::io;

use protocol::admin::mesh::MeshTransfer;
use serde_json::json;

use crate::{
    file::MODEL,
    http::{self, Answer},
    machine::Machine,
};

/// What a machine says of a pull, line by line.
pub(crate) struct Lines {
    answer: Answer,
    buffer: Vec<u8>,
}

/// Why a pull cannot be followed.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The machine has ended, or its connection has.
    Gone(io::Error),
    /// It says no: a status, and why.
    Refused(u16, String),
    /// It says what is no step of a pull.
    Nonsense(String),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

impl Lines {
    /// Has a machine fetch the model.
    pub(crate) async fn of(machine: &Machine) -> Result<Self, Lost> {
        let request = machine.admin().post("/admin/mesh/pull", &json!({"model": MODEL}));
        let answer = http::send(machine.state().address, &request).await?;
        match answer.status {
            200 => Ok(Self { answer, buffer: Vec::new() }),
            status => Err(Lost::Refused(status, answer.text().await.0)),
        }
    }

    /// The next step; nothing after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<MeshTransfer>, Lost> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let nonsense = || Lost::Nonsense(String::from_utf8_lossy(&line).into_owned());
                return serde_json::from_slice(&line).map(Some).map_err(|_| nonsense());
            }
            match self.answer.piece().await? {
                Some(piece) => self.buffer.extend_from_slice(&piece),
                None => return Ok(None),
            }
        }
    }
}
