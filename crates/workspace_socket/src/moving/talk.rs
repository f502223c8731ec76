//! A circuit to the other end of a move.

use std::time::Duration;

use cluster::{Caller, Circuit, Cluster, Service};
use protocol::workspace::peer::sealed::{SealedMessage, decode_sealed};
use tokio::time::{Instant, timeout};
use wire::Frame;
use workspace::Refusal;

/// The most bytes that wait for the link.
const WAITING: usize = 4 * 1024 * 1024;
/// The interval of checks for room.
const LOOK: Duration = Duration::from_millis(20);
/// The other end counts as lost after this time without a message and without progress.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// A circuit to the other end.
pub(super) struct Talk {
    circuit: Circuit,
    name: String,
}

impl Talk {
    pub(super) fn open(cluster: &Cluster, node: &str) -> Self {
        let circuit = cluster.open_service(node, Service::Moves, Caller::member_itself());
        Self { circuit, name: cluster.name_of(node) }
    }

    /// Sends a message, and waits for the answer.
    pub(super) async fn ask(
        &mut self,
        message: &SealedMessage,
        within: Duration,
    ) -> Result<SealedMessage, Refusal> {
        self.say(message)?;
        self.hear(within).await
    }

    pub(super) fn say(&self, message: &SealedMessage) -> Result<(), Refusal> {
        let text = message.encode();
        self.circuit.send(Frame::from(text)).map_err(|_| self.lost("cannot be reached"))
    }

    pub(super) async fn hear(&mut self, within: Duration) -> Result<SealedMessage, Refusal> {
        let heard = timeout(within, self.circuit.next()).await;
        let heard = heard.map_err(|_| self.lost("did not answer in time"))?;
        let frame = heard.map_err(|ended| self.lost(&format!("was lost: {ended}")))?;
        let Frame::Text(text) = frame else { return Err(self.lost("answered with output")) };
        match decode_sealed(&text) {
            Ok(Some(message)) => Ok(message),
            _ => Err(self.lost("knows nothing of moves: it runs an older Warren")),
        }
    }

    /// Waits until there is room for more.
    ///
    /// # Errors
    /// When the other end sends a message meanwhile, or takes nothing for too long.
    pub(super) async fn room(&mut self) -> Result<(), Refusal> {
        let mut least = self.circuit.waiting();
        let mut since = Instant::now();
        while self.circuit.waiting() > WAITING {
            // No message is lost when this wait ends first.
            if let Ok(heard) = timeout(LOOK, self.hear(SILENCE)).await {
                return Err(refused(heard?).unwrap_or_else(|| self.lost("spoke out of turn")));
            }
            let waiting = self.circuit.waiting();
            if waiting < least {
                (least, since) = (waiting, Instant::now());
            } else if since.elapsed() > SILENCE {
                return Err(self.lost("takes nothing more"));
            }
        }
        Ok(())
    }

    fn lost(&self, what: &str) -> Refusal {
        Refusal::Failed(format!("{} {what}", self.name))
    }
}

/// The refusal in a message; `None` if the message is no refusal.
pub(super) fn refused(message: SealedMessage) -> Option<Refusal> {
    match message {
        SealedMessage::MoveRefused(refused) => Some(Refusal::Failed(refused.message)),
        _ => None,
    }
}
