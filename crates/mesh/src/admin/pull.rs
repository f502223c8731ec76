//! Fetching a model on request.

use protocol::admin::mesh::{MeshPull, MeshTransfer};

use crate::{
    Mesh,
    peer::PeerId,
    transfer::{Pull, PullError},
};

/// The most peers that an error names.
const NAMED: usize = 8;

/// Why the search for a model is not begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPull {
    /// No model can have this name.
    #[error("{0}")]
    BadName(String),
    /// No peer has this id or name.
    #[error("there is no peer {0:?}: `warren mesh peers` lists those that there are")]
    NoSuchPeer(String),
    /// Several peers have it.
    #[error("{text:?} may be any of {}: give more of the id", ids.join(", "))]
    Ambiguous {
        /// The text of the request.
        text: String,
        /// The ids of some of them.
        ids: Vec<String>,
    },
    /// It cannot be fetched now; the text says why.
    #[error("{0}")]
    Busy(String),
}

impl From<PullError> for NoPull {
    fn from(error: PullError) -> Self {
        match error {
            PullError::Name(_) => Self::BadName(error.to_string()),
            PullError::TooMany(_) | PullError::Unavailable(_) => Self::Busy(error.to_string()),
        }
    }
}

/// A model that is being fetched. Dropping this does not stop the transfer.
#[derive(Debug)]
pub struct ModelPull {
    pull: Pull,
    last: LastReport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastReport {
    Nothing,
    Step,
    End,
}

impl ModelPull {
    /// Returns the present state first, then each change; `None` after the end. Cancel safe.
    pub async fn next(&mut self) -> Option<MeshTransfer> {
        let step = match self.last {
            LastReport::Nothing => self.pull.now(),
            LastReport::Step => self.pull.next().await?,
            LastReport::End => return None,
        };
        self.last = if has_ended(&step) { LastReport::End } else { LastReport::Step };
        Some(step)
    }
}

fn has_ended(step: &MeshTransfer) -> bool {
    matches!(step.state.as_str(), "done" | "failed" | "cancelled")
}

impl Mesh {
    /// Begins to fetch a model, or joins a transfer of it that is running.
    ///
    /// # Errors
    /// [`NoPull`]. Later failures are in the reports of the [`ModelPull`].
    pub fn pull(&self, request: &MeshPull) -> Result<ModelPull, NoPull> {
        let from = request.from.as_deref().map(|text| self.find_peer(text)).transpose()?;
        let pull = self.0.transfers.pull(request.model.trim(), from)?;
        Ok(ModelPull { pull, last: LastReport::Nothing })
    }

    /// Stops the transfer with this id and returns its state; `None` if no such transfer runs.
    pub fn cancel(&self, id: &str) -> Option<MeshTransfer> {
        if !self.0.transfers.cancel(id) {
            return None;
        }
        let found = self.0.transfers.list().into_iter().find(|transfer| transfer.id == id);
        let gone = || MeshTransfer {
            id: id.to_owned(),
            state: "cancelled".to_owned(),
            ..MeshTransfer::default()
        };
        Some(found.unwrap_or_else(gone))
    }

    /// The peer with this id, with an id that begins with this text, or with this name.
    fn find_peer(&self, text: &str) -> Result<PeerId, NoPull> {
        let peers = self.0.peers.all();
        let known = peers.iter().map(|peer| (peer.id.clone(), peer.facts().name));
        find(text.trim(), known.collect())
    }
}

fn find(text: &str, peers: Vec<(PeerId, String)>) -> Result<PeerId, NoPull> {
    let lower = text.to_ascii_lowercase();
    let is = |id: &PeerId, name: &str| id.to_string().starts_with(&lower) || name == text;
    let found = peers.into_iter().filter(|(id, name)| !text.is_empty() && is(id, name));
    let mut found: Vec<PeerId> = found.map(|(id, _)| id).collect();
    match found.len() {
        0 => Err(NoPull::NoSuchPeer(text.to_owned())),
        1 => Ok(found.remove(0)),
        _ => Err(NoPull::Ambiguous {
            text: text.to_owned(),
            ids: found.iter().take(NAMED).map(ToString::to_string).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use base::NodeId;

    use super::*;

    #[test]
    fn a_peer_is_found_by_its_id_its_beginning_or_its_name() {
        let node = |byte: u8| PeerId::Node(NodeId::new([byte; 32]));
        let device = PeerId::Device("abc-1".to_owned());
        let peers = || {
            let names = ["gpu", "laptop", "mac"].map(str::to_owned);
            [node(0x1a), node(0x1b), device.clone()].into_iter().zip(names).collect::<Vec<_>>()
        };
        let find = |text: &str| find(text, peers());
        assert_eq!(find("1A1"), Ok(node(0x1a)));
        assert_eq!(find(&node(0x1b).to_string()), Ok(node(0x1b)));
        assert_eq!(find("gpu"), Ok(node(0x1a)));
        assert_eq!(find("device-ABC"), Ok(device.clone()));
        assert!(matches!(find("1"), Err(NoPull::Ambiguous { ids, .. }) if ids.len() == 2));
        for unknown in ["", "GPU", "2", "abc"] {
            assert_eq!(find(unknown), Err(NoPull::NoSuchPeer(unknown.to_owned())));
        }
    }
}
