//! The machines of a workspace, as lists for people show them.

use std::collections::BTreeMap;

use client::{ClientError, Workspace};
use protocol::workspace::ClusterStatus;

use crate::commands::table::{plain, table};

/// The names of the machines by their ids. Empty if there is only one machine.
#[derive(Default)]
pub(crate) struct Machines(BTreeMap<String, String>);

impl Machines {
    /// The machines of the server's workspace.
    pub(crate) async fn of(workspace: &mut Workspace) -> Result<Self, ClientError> {
        Ok(Self::in_cluster(&workspace.cluster_status().await?))
    }

    fn in_cluster(cluster: &ClusterStatus) -> Self {
        let own = (cluster.node_id.clone(), cluster.name.clone());
        let others = cluster.peers.iter().map(|peer| (peer.node_id.clone(), peer.name.clone()));
        let named = |(id, name): (String, Option<String>)| {
            let name = name.unwrap_or_else(|| beginning(&id));
            (id, plain(&name))
        };
        Self(match cluster.peers.is_empty() {
            true => BTreeMap::new(),
            false => [own].into_iter().chain(others).map(named).collect(),
        })
    }

    /// Whether there is more than one machine.
    pub(crate) fn are_several(&self) -> bool {
        !self.0.is_empty()
    }

    /// The name of a machine, or the beginning of its id if it is not known.
    pub(crate) fn name(&self, node: Option<&str>) -> String {
        let node = node.unwrap_or_default();
        self.0.get(node).cloned().unwrap_or_else(|| plain(&beginning(node)))
    }

    /// A list for people. If there are several machines, the second column is the machine of each row:
    /// `nodes` has its id.
    pub(crate) fn table<'a>(
        &self,
        header: &[&str],
        mut rows: Vec<Vec<String>>,
        nodes: impl IntoIterator<Item = Option<&'a str>>,
        right: usize,
    ) -> String {
        let mut header = header.to_vec();
        if self.are_several() {
            header.insert(1, "machine");
            rows.iter_mut().zip(nodes).for_each(|(row, node)| row.insert(1, self.name(node)));
        }
        table(&header, &rows, right)
    }
}

/// The beginning of a machine's id, which tells it from most others.
pub(crate) fn beginning(id: &str) -> String {
    id.chars().take(8).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::workspace::ClusterMember;

    use super::*;

    /// `n-1`, which is asked, and its peers `n-2` and one without a name.
    pub(crate) fn cluster() -> ClusterStatus {
        let peer = |id: &str, name, connected| ClusterMember {
            node_id: id.to_owned(),
            name,
            address: Some("10.0.0.2:9179".to_owned()),
            connected,
            through: None,
        };
        ClusterStatus {
            node_id: "n-1".to_owned(),
            role: String::new(),
            term: 0,
            leader_id: None,
            leader_address: None,
            name: Some("here".to_owned()),
            address: None,
            notices: Vec::new(),
            peers: vec![
                peer("n-2", Some("lab\u{1b}".to_owned()), true),
                peer("n-3-is-long", None, false),
            ],
        }
    }

    #[test]
    fn several_machines_have_a_column() {
        let list = |machines: &Machines| {
            let rows = vec![vec!["1".to_owned(), "dev".to_owned()]];
            machines.table(&["id", "name"], rows, [Some("n-2")], 0)
        };
        let machines = Machines::in_cluster(&cluster());
        assert_eq!(list(&machines), "ID  MACHINE  NAME\n1   lab\u{fffd}     dev");
        assert_eq!(machines.name(Some("n-3-is-long")), "n-3-is-l");
        assert_eq!(machines.name(Some("unknown-at-all")), "unknown-");
        let alone = ClusterStatus { peers: Vec::new(), ..cluster() };
        assert_eq!(list(&Machines::in_cluster(&alone)), "ID  NAME\n1   dev");
    }
}
