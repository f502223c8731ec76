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
    /// The address for peers on the LAN; `None`: there is no listener.
    pub listen: Option<SocketAddr>,
    /// The passcode that LAN peers and Warrens prove; `None`: everybody may link.
    pub passcode: Option<Secret>,
    /// Whether the passcode's hash is sent to a stock peer that closes on a hello without it.
    pub plain_passcode: bool,
    /// Whether only sealed links are taken.
    pub require_sealed: bool,
    /// Peers to link to where multicast does not pass, as HOST:PORT.
    pub peers: Vec<String>,
    /// Relays to be registered at: `ws://` or `wss://` URLs.
    pub relays: Vec<String>,
    /// Whether this machine is announced by mDNS, and others are looked for.
    pub advertise: bool,
    /// The reach of mDNS.
    pub reach: Reach,
    /// The share of this machine for peers.
    pub share: Share,
    /// Nodes that are trusted as if they had proved the passcode.
    pub trusted: Vec<NodeId>,
    /// Folders of models that are offered in place.
    pub model_dirs: Vec<PathBuf>,
    /// Whether models of the programs on this machine (Ollama, LM Studio, …) are offered, too.
    pub offer_found: bool,
    /// The directory of its lasting files: its key and the models that it fetched.
    pub data_dir: PathBuf,
}
