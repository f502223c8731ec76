//! This machine leaves the cluster, or another member is taken out.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use base::NodeId;
use replica::{Input, Key, Kind, Refused};
use tokio::time::{sleep, timeout};

use crate::{driver::WriteError, error::ClusterError, member::Member, shared::Shared, tokens};

/// How long to wait until the linked members know that this machine leaves.
const FAREWELL: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

/// The words for a machine that is no longer a member.
pub(crate) const TAKEN_OUT: &str = "this machine was taken out of the cluster: run `warren cluster leave` here, then join with a \
     new invitation";

/// Deletes this member and its sessions, and waits until the linked members know. They close their
/// links when they do.
pub(crate) async fn leave(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    shared.is_closed.store(true, Ordering::Relaxed);
    // Before the delete: once members know of that, they ignore this machine.
    tokens::bequeath(shared);
    let deleted = delete(shared, &shared.this.node_id).await;
    deleted.inspect_err(|_| shared.is_closed.store(false, Ordering::Relaxed))?;
    let all_know = async {
        while !shared.links.is_empty() {
            sleep(LOOK).await;
        }
    };
    if timeout(FAREWELL, all_know).await.is_err() {
        tracing::warn!("not every linked member has said that it knows of the leaving");
    }
    Ok(())
}

/// Takes out another member, by its id or name. Returns its name.
pub(crate) async fn forget(shared: &Arc<Shared>, named: &str) -> Result<String, ClusterError> {
    let Member { node_id, name, key, .. } = meant(shared, named)?;
    if node_id == shared.this.node_id {
        let words = "that is this machine itself: `warren cluster leave` takes it out";
        return Err(ClusterError::Unknown(words.to_owned()));
    }
    let _turn = shared.followed.lock().await;
    if let Some(key) = key {
        shared.barred.bar(&shared.facts, key).await?;
        tokens::renew(shared).await?;
    }
    delete(shared, &node_id).await?;
    shared.links.hang_up(&node_id);
    shared.targets_changed.notify_one();
    Ok(if name.is_empty() { node_id } else { name })
}

fn meant(shared: &Shared, named: &str) -> Result<Member, ClusterError> {
    let entries = shared.directory.list(Kind::MEMBER);
    let members = entries.iter().filter_map(|(_, entry)| Member::read(&entry.value));
    let members: Vec<Member> = members.collect();
    if let Some(member) = members.iter().find(|member| member.node_id == named) {
        return Ok(member.clone());
    }
    let called: Vec<&Member> = members.iter().filter(|member| member.name == named).collect();
    match called[..] {
        [member] => Ok(member.clone()),
        [] => Err(ClusterError::Unknown(format!("there is no member {named:?} in this cluster"))),
        _ => {
            let ids: Vec<&str> = called.iter().map(|member| &*member.node_id).collect();
            let ids = ids.join(", ");
            Err(ClusterError::Unknown(format!("several members are called {named:?}: {ids}")))
        }
    }
}

/// Deletes the sessions of a member, and then the member.
async fn delete(shared: &Shared, node: &str) -> Result<(), ClusterError> {
    let sessions = shared.directory.list(Kind::SESSION).into_iter();
    let its = sessions.filter(|(_, entry)| *entry.owner.as_str() == *node).map(|(key, _)| key);
    let keys = its.chain([Key::new(Kind::MEMBER, node)]);
    let inputs = keys.map(|key| Input::Delete { key }).collect();
    for outcome in shared.driver.ask_all(inputs).await? {
        match outcome {
            // Another member may have deleted it first.
            Ok(()) | Err(Refused::Unknown) => {}
            Err(refused) => return Err(WriteError::Refused(refused).into()),
        }
    }
    Ok(())
}

/// Closes the links of former members, and bars their keys. Admits the keys of machines that are
/// members again.
pub(crate) async fn follow(shared: &Arc<Shared>) -> Result<(), ClusterError> {
    let mut members = shared.followed.lock().await;
    let entries = shared.directory.list(Kind::MEMBER);
    let read = entries.iter().filter_map(|(_, entry)| Member::read(&entry.value));
    let now: BTreeMap<String, NodeId> =
        read.filter_map(|member| Some((member.node_id, member.key?))).collect();
    for (former, key) in members.iter().filter(|(node, _)| !now.contains_key(*node)) {
        put_out(shared, former, *key).await?;
    }
    // A machine may have come and gone since the last look.
    for (node, key) in shared.links.keys() {
        let is_known = now.contains_key(&node) || members.contains_key(&node);
        if !is_known && is_taken_out(shared, &node).await {
            put_out(shared, &node, key).await?;
        }
    }
    for (_, key) in now.iter().filter(|(node, _)| !members.contains_key(*node)) {
        shared.barred.admit(&shared.facts, key).await?;
        // At the first look all members are new here.
        if !members.is_empty() {
            tokens::admit(shared, key).await?;
        }
    }
    *members = now;
    Ok(())
}

async fn put_out(shared: &Shared, node: &str, key: NodeId) -> Result<(), ClusterError> {
    shared.links.hang_up(node);
    shared.barred.bar(&shared.facts, key).await
}

/// Whether a member is known to have been taken out.
pub(crate) async fn is_taken_out(shared: &Shared, node: &str) -> bool {
    let key = Key::new(Kind::MEMBER, node);
    shared.driver.which_deleted(vec![key]).await.is_ok_and(|deleted| !deleted.is_empty())
}
