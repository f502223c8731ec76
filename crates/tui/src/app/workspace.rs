//! The workspace: the members of its cluster, and its sessions.

use std::collections::BTreeMap;

use client::ClientError;
use protocol::workspace::{
    ClusterStatus, SessionId, SessionInfo, SessionKind, SessionMode, SessionStatus,
};

use super::{list::List, reading::Reading};

/// A part of the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// The sessions.
    #[default]
    Sessions,
    /// The members.
    Members,
}

/// A server's answer about its workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceReport {
    /// The cluster.
    pub cluster: ClusterStatus,
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
}

/// A member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name, or the beginning of its id.
    pub name: String,
    /// The address of its peer port.
    pub address: String,
    /// The way to it.
    pub reach: Reach,
}

/// The way to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The server that answers.
    Server,
    /// A link leads to it.
    Linked,
    /// No link leads to it.
    Away,
}

/// The workspace.
#[derive(Debug, Default)]
pub struct Workspace {
    /// The notices of its cluster, if the server shows the workspace.
    pub reading: Reading<Vec<String>>,
    /// The members, the one that answers first.
    pub members: Vec<Member>,
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// The names of the machines by their ids, if there are several.
    machines: BTreeMap<String, String>,
    /// The part that the keyboard acts on.
    pub part: Part,
    /// The place in the list of sessions.
    pub list: List,
    /// The place in the list of members.
    pub members_list: List,
    /// The id of the session that is shown in full.
    pub whole: Option<SessionId>,
    /// Counts the watches. An answer to an older one is dropped.
    pub watch: u64,
    /// Whether the workspace is polled now.
    pub is_watched: bool,
}

impl Workspace {
    /// Takes a server's answer. The same session stays chosen.
    pub fn take(&mut self, came: Result<WorkspaceReport, ClientError>) {
        match came {
            Ok(WorkspaceReport { cluster, sessions }) => {
                let chosen = self.chosen().map(|session| session.id);
                let at = |id| sessions.iter().position(|session| session.id == id);
                self.list.at = chosen.and_then(at).unwrap_or(self.list.at);
                self.members = members(&cluster);
                self.machines = machines(&cluster);
                self.sessions = sessions;
                self.reading = Reading::Known(cluster.notices);
            }
            Err(error) => self.reading.take(Some(Err(error))),
        }
    }

    /// The notices of the cluster, the oldest first.
    pub fn notices(&self) -> &[String] {
        self.reading.all()
    }

    /// Whether there is more than one machine.
    pub fn are_several(&self) -> bool {
        !self.machines.is_empty()
    }

    /// The name of a session's machine, or the beginning of its id if it is not known.
    pub fn machine(&self, session: &SessionInfo) -> String {
        let node = session.node_id.as_deref().unwrap_or_default();
        self.machines.get(node).cloned().unwrap_or_else(|| beginning(node))
    }

    /// The chosen session.
    pub fn chosen(&self) -> Option<&SessionInfo> {
        self.sessions.get(self.list.at)
    }

    /// The session that is shown in full.
    pub fn whole(&self) -> Option<&SessionInfo> {
        let id = self.whole?;
        self.sessions.iter().find(|session| session.id == id)
    }

    /// Shows the chosen session in full.
    pub fn open(&mut self) {
        self.whole = self.chosen().map(|session| session.id);
    }

    /// Moves to the other part.
    pub fn turn(&mut self) {
        self.part = match self.part {
            Part::Sessions => Part::Members,
            Part::Members => Part::Sessions,
        };
    }
}

/// The program of a session: its command, or its agent and how it is driven.
pub fn runs(session: &SessionInfo) -> String {
    match (&session.kind, session.mode) {
        (SessionKind::Shell { command, args }, _) => {
            let args = args.iter().flatten().map(String::as_str);
            std::iter::once(command.as_str()).chain(args).collect::<Vec<_>>().join(" ")
        }
        (_, SessionMode::Sdk) => format!("{} agent", session.provider),
        (_, SessionMode::Pty) => format!("{} in a terminal", session.provider),
        (_, SessionMode::Adopted) => format!("{} process", session.provider),
    }
}

/// The state of a session's process.
pub const fn status(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Running => "running",
        SessionStatus::Idle => "idle",
        SessionStatus::Detached => "detached",
        SessionStatus::Exited => "exited",
    }
}

/// The beginning of an id, which tells it from most others.
pub fn beginning(id: &str) -> String {
    id.chars().take(8).collect()
}

fn named(name: Option<&str>, id: &str) -> String {
    name.filter(|name| !name.is_empty()).map_or_else(|| beginning(id), str::to_owned)
}

fn members(cluster: &ClusterStatus) -> Vec<Member> {
    let member = |name: Option<&str>, id: &str, address: Option<&str>, reach| Member {
        name: named(name, id),
        address: address.unwrap_or_default().to_owned(),
        reach,
    };
    let (name, address) = (cluster.name.as_deref(), cluster.address.as_deref());
    let own = member(name, &cluster.node_id, address, Reach::Server);
    let others = cluster.peers.iter().map(|peer| {
        let reach = if peer.connected { Reach::Linked } else { Reach::Away };
        member(peer.name.as_deref(), &peer.node_id, peer.address.as_deref(), reach)
    });
    std::iter::once(own).chain(others).collect()
}

fn machines(cluster: &ClusterStatus) -> BTreeMap<String, String> {
    if cluster.peers.is_empty() {
        return BTreeMap::new();
    }
    let own = (cluster.node_id.clone(), named(cluster.name.as_deref(), &cluster.node_id));
    let others = cluster
        .peers
        .iter()
        .map(|peer| (peer.node_id.clone(), named(peer.name.as_deref(), &peer.node_id)));
    std::iter::once(own).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::fixture::{cluster, session, unreachable};

    fn report(sessions: &[u128]) -> WorkspaceReport {
        WorkspaceReport {
            cluster: cluster(),
            sessions: sessions.iter().copied().map(session).collect(),
        }
    }

    #[test]
    fn the_choice_stays_on_its_session() {
        let mut workspace = Workspace::default();
        workspace.take(Ok(report(&[1, 2])));
        workspace.list.at = 1;
        workspace.open();
        workspace.take(Ok(report(&[3, 1, 4, 2])));
        assert_eq!((workspace.list.at, workspace.whole()), (3, Some(&session(2))));
        workspace.take(Ok(report(&[3])));
        assert_eq!(workspace.whole(), None);
    }

    #[test]
    fn known_facts_stay_while_the_server_is_away() {
        let mut workspace = Workspace::default();
        workspace.take(Ok(report(&[1])));
        workspace.take(Err(unreachable()));
        assert_eq!((workspace.sessions.len(), workspace.notices().len()), (1, 1));
    }

    #[test]
    fn a_machine_has_its_name_or_the_beginning_of_its_id_and_none_is_named_where_there_is_one() {
        let mut workspace = Workspace::default();
        workspace.take(Ok(report(&[1])));
        let of = |node: &str| SessionInfo { node_id: Some(node.to_owned()), ..session(1) };
        assert!(workspace.are_several());
        assert_eq!(workspace.machine(&of("node-two")), "two");
        assert_eq!(workspace.machine(&of("unknown-node")), "unknown-");
        let alone = ClusterStatus { peers: Vec::new(), ..cluster() };
        workspace.take(Ok(WorkspaceReport { cluster: alone, sessions: vec![session(1)] }));
        assert!(!workspace.are_several());
    }
}
