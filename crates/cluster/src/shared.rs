//! The parts of a member that its links and their tasks use.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use base::NodeId;
use protocol::workspace::SessionId;
use replica::{Change, Entry, Input, Key, Kind, Refused};
use tokio::{
    sync::{Notify, Semaphore},
    task,
};

use crate::{
    barred::Barred,
    carried::Carrying,
    circuit::{Circuits, Host, Service},
    config::Config,
    directory::Directory,
    driver::{Driver, WriteError},
    error::ClusterError,
    facts::Facts,
    invite::Invites,
    link::{
        carrier::CarrierEnd,
        sealed::{COPIED, LinkEnd},
    },
    links::Links,
    member::Member,
    notices::Notices,
    plain::{inbound::Owner, peers::PlainPeers},
    settings::Settings,
    strangers::Strangers,
    this_member::ThisMember,
    tokens::Tokens,
};

/// The parts that links and their tasks use.
pub(crate) struct Shared {
    pub(crate) this: ThisMember,
    pub(crate) directory: Arc<Directory>,
    pub(crate) links: Arc<Links>,
    pub(crate) carrying: Arc<Carrying>,
    pub(crate) plain: Arc<PlainPeers>,
    /// The members at the last look, with their keys. Held while a machine is taken out: otherwise
    /// a look between the barring of its key and the delete of its entry would admit the key again.
    pub(crate) followed: tokio::sync::Mutex<BTreeMap<String, NodeId>>,
    /// Held while this member's entry is written.
    pub(crate) introducing: tokio::sync::Mutex<()>,
    /// The places of plain peers that have not greeted yet.
    pub(crate) plain_strangers: Arc<Semaphore>,
    pub(crate) strangers: Strangers,
    /// Notified when there may be other addresses to dial.
    pub(crate) targets_changed: Notify,
    /// Whether new links are refused, because this machine is stopping or leaving.
    pub(crate) is_closed: AtomicBool,
    pub(crate) driver: Driver,
    pub(crate) circuits: Arc<Circuits>,
    pub(crate) notices: Notices,
    pub(crate) facts: Facts,
    pub(crate) settings: Settings,
    pub(crate) config: Mutex<Config>,
    pub(crate) invites: Invites,
    pub(crate) barred: Arc<Barred>,
    pub(crate) tokens: Tokens,
    /// Held while the setup changes.
    pub(crate) reconfiguring: tokio::sync::Mutex<()>,
}

impl Shared {
    /// The host that serves the clients of other members.
    pub(crate) fn host(&self) -> Option<Arc<dyn Host>> {
        self.circuits.host(Service::Workspace)
    }

    /// Whether a node is a plain peer: one that is or was linked to a member, or that owns adopted
    /// sessions.
    pub(crate) fn is_plain(&self, node: &str) -> bool {
        if self.directory.get(Kind::MEMBER, node).is_some() {
            return false;
        }
        let is_its = |entry: &Entry| entry.adopted && *entry.owner.as_str() == *node;
        let sessions = || self.directory.list(Kind::SESSION);
        self.plain_name(node).is_some() || sessions().iter().any(|(_, entry)| is_its(entry))
    }

    /// The name of a plain peer that is or was linked here, or is linked to another member.
    pub(crate) fn plain_name(&self, node: &str) -> Option<String> {
        let elsewhere = || {
            let mut plain = self.members().flat_map(|member| member.plain);
            plain.find(|peer| peer.node_id == node).map(|peer| peer.name)
        };
        self.plain.name(node).or_else(elsewhere)
    }

    /// The members with a key, including this one.
    pub(crate) fn members(&self) -> impl Iterator<Item = Member> {
        let entries = self.directory.list(Kind::MEMBER).into_iter();
        entries.filter_map(|(_, entry)| Member::read(&entry.value))
    }

    /// The linked member through which a plain peer is reached.
    pub(crate) fn via(&self, node: &str) -> Option<String> {
        let leads = |member: &Member| member.plain.iter().any(|peer| peer.node_id == node);
        let mut members = self.members().filter(leads);
        let is_alive = |id: &str| self.links.get(id).is_some_and(|link| link.is_alive());
        members.find(|member| is_alive(&member.node_id)).map(|member| member.node_id)
    }

    /// The owner of a session, if it is known.
    pub(crate) fn owner_of(&self, session: SessionId) -> Option<Owner> {
        let owner = self.directory.get(Kind::SESSION, &session.to_string())?.owner.clone();
        let has_key = |node: &str| self.directory.get(Kind::MEMBER, node).is_some();
        let is_member = *owner.as_str() == *self.this.node_id || has_key(owner.as_str());
        Some(if is_member { Owner::Member } else { Owner::Plain(owner.as_str().to_owned()) })
    }

    pub(crate) async fn rename(self: &Arc<Self>, name: String) -> Result<(), ClusterError> {
        self.reconfigure(|config| config.name.clone_from(&name)).await?;
        self.this.rename(name);
        self.introduce().await
    }

    pub(crate) fn config(&self) -> Config {
        self.lock().clone()
    }

    /// Notes that another machine has this one's id.
    pub(crate) fn doubled(&self) {
        let words = "another machine has this one's node id, as when a disk is copied: start one of the \
                     two with an empty --data-dir";
        self.notices.keep(words.to_owned());
        let driver = self.driver.clone();
        tokio::spawn(async move {
            let _never_refused = driver.ask(Input::Doubled).await;
        });
    }

    /// Reports the end of a link. If two machines have one id, the operators of all ends get a
    /// notice.
    pub(crate) fn link_ended(&self, node: &str, end: &LinkEnd) {
        match end {
            LinkEnd::Copied => {
                self.notices.keep(format!("of {node} there are two: {end}"));
                tracing::warn!(node, %end, "a member's link was refused");
            }
            LinkEnd::Carrier(CarrierEnd::Closed(words) | CarrierEnd::Refused(words))
                if words == COPIED =>
            {
                tracing::warn!(node, %end, "a member refused the link");
                self.doubled();
            }
            end => tracing::info!(node, %end, "a link to a member ended"),
        }
    }

    /// A plain peer came, left, or was renamed. The other members see it in this member's entry.
    pub(crate) fn plain_changed(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = shared.introduce().await {
                let error = base::error::chain(&error);
                tracing::warn!(error, "other members do not hear of a plain peer");
            }
        });
    }

    /// Writes this member's own entry, even if it was deleted before, since this machine was
    /// invited.
    pub(crate) async fn begin(&self) -> Result<(), ClusterError> {
        let member = self.this.member();
        let (key, owner) =
            (Key::new(Kind::MEMBER, &*member.node_id), member.node_id.as_str().into());
        Ok(self.driver.write(key, owner, member.text().into(), Change::Begin).await?)
    }

    /// Writes this member's own entry, if it has changed.
    pub(crate) async fn introduce(&self) -> Result<(), ClusterError> {
        // One at a time, so that an older state is not written last.
        let _turn = self.introducing.lock().await;
        self.this.set_plain(self.plain.linked());
        let member = self.this.member();
        let shown = self.directory.get(Kind::MEMBER, &member.node_id);
        if shown.is_some_and(|entry| Member::read(&entry.value).as_ref() == Some(&member)) {
            return Ok(());
        }
        let (key, owner) =
            (Key::new(Kind::MEMBER, &*member.node_id), member.node_id.as_str().into());
        match self.driver.write(key, owner, member.text().into(), Change::Update).await {
            Err(WriteError::Refused(Refused::Deleted)) => {
                let words = "this machine was taken out of the cluster: it needs a new invitation";
                self.notices.keep(words.to_owned());
                tracing::warn!("{words}");
                Ok(())
            }
            other => Ok(other?),
        }
    }

    pub(crate) async fn reconfigure(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Config),
    ) -> Result<(), ClusterError> {
        let _turn = self.reconfiguring.lock().await;
        let mut config = self.config();
        change(&mut config);
        let (shared, keeping) = (Arc::clone(self), config.clone());
        let kept = task::spawn_blocking(move || keeping.keep(&shared.settings, &shared.facts));
        kept.await.map_err(|_| ClusterError::Failed)??;
        *self.lock() = config;
        self.targets_changed.notify_one();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
