//! The settings of a mesh.

use std::{net::SocketAddr, path::PathBuf};

use base::{NodeId, Secret};
use discovery::Reach;

use crate::share::Share;

/// The settings of this machine's part in the mesh.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its name, for people.
    pub name: String,
    /// The version of this program.
    pub version: &'static str,
    /// The address of the listener for peers on the LAN; `None` if there is none.
    pub listen: Option<SocketAddr>,
    /// The passcode that LAN peers and Warrens must prove; `None` if any peer may link.
    pub passcode: Option<Secret>,
    /// Whether the passcode's hash is sent to a stock peer that closes on a hello without it.
    pub plain_passcode: bool,
    /// Whether only sealed links are accepted.
    pub require_sealed: bool,
    /// Peers to link to that multicast does not reach, as HOST:PORT.
    pub peers: Vec<String>,
    /// The mesh relays at which this machine registers: `ws://` or `wss://` URLs.
    pub relays: Vec<String>,
    /// Whether this machine is announced by mDNS, and other machines are looked for.
    pub advertise: bool,
    /// The reach of mDNS.
    pub reach: Reach,
    /// The rules by which this machine shares with peers.
    pub share: Share,
    /// Nodes that are trusted as if they had proved the passcode.
    pub trusted: Vec<NodeId>,
    /// Folders of models that are offered in place.
    pub model_dirs: Vec<PathBuf>,
    /// Whether models of other programs on this machine (Ollama, LM Studio, …) are offered as well.
    pub offer_found: bool,
    /// The directory of the files that it keeps: its key and the models that it fetched.
    pub data_dir: PathBuf,
}
