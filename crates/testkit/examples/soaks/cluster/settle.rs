//! The end: all members are equal, all that was acknowledged is there, nothing is left.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use testkit::workspace::Mark;
use tokio::time::{Instant, sleep};

use crate::cluster::{
    account::Report,
    ledger::{Fate, Kind, Ledger, Object},
    members::Members,
};

/// After the last fault the members are equal within this time.
const EQUAL: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

/// The objects as one member lists them: name, status and the member that has it.
type View = BTreeMap<(Kind, String), [String; 3]>;

pub(crate) async fn settle(members: &Members, ledger: &Ledger, report: &Report) {
    let begun = Instant::now();
    let view = loop {
        match equal(members).await {
            Ok(view) => break view,
            Err(wrong) if begun.elapsed() > EQUAL => return report.wrong(wrong),
            Err(_) => sleep(LOOK).await,
        }
    };
    report.tally(|counts| counts.equal_after = begun.elapsed().as_millis() as u64);
    for ((kind, id), object) in ledger.all() {
        if let Some(wrong) = wrong(members, &object, view.get(&(kind, id.clone())), kind) {
            report.wrong(format!("{kind:?} {id}: {wrong}; {object:?}"));
        }
    }
}

/// The fault of an object that is listed like this.
fn wrong(
    members: &Members,
    object: &Object,
    listed: Option<&[String; 3]>,
    kind: Kind,
) -> Option<String> {
    let was_killed = kind == Kind::Session && members.kills(object.owner) != object.kills;
    let Some([name, status, owner]) = listed else {
        let may_be_gone = object.fate != Fate::There || was_killed;
        return (!may_be_gone).then(|| "it is gone".to_owned());
    };
    if object.fate == Fate::Deleted {
        return Some(format!("it is there again: {listed:?}"));
    }
    if *owner != members.all[object.owner].node_id {
        return Some(format!("it is at {owner}"));
    }
    if was_killed && status != "exited" {
        return Some(format!("its machine was killed, and it is {status}"));
    }
    (!object.may_be_called(name)).then(|| format!("it is called {name:?}"))
}

/// The view of all members, if it is the same.
async fn equal(members: &Members) -> Result<View, String> {
    let first = view(members, 0).await?;
    for number in 1..members.all.len() {
        let other = view(members, number).await?;
        if let Some(difference) = difference(&first, &other) {
            return Err(format!("members 0 and {number} differ: {difference}"));
        }
    }
    Ok(first)
}

fn difference(one: &View, other: &View) -> Option<String> {
    let keys = one.keys().chain(other.keys());
    let mut differing = keys.filter(|key| one.get(key) != other.get(key));
    differing.next().map(|key| format!("{key:?}: {:?} and {:?}", one.get(key), other.get(key)))
}

async fn view(members: &Members, number: usize) -> Result<View, String> {
    let sessions = json!({"type": "list_sessions", "include_hidden": true});
    let sessions = members.ask(number, sessions, "session_list").await?;
    let projects = members.ask(number, json!({"type": "list_projects"}), "project_list").await?;
    let here = &members.all[number].node_id;
    let mut view = View::new();
    for (kind, list) in
        [(Kind::Session, &sessions["sessions"]), (Kind::Project, &projects["projects"])]
    {
        for object in list.as_array().ok_or("no list")? {
            let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
            let owner = object["node_id"].as_str().unwrap_or(here).to_owned();
            is_reachable(object, number)?;
            view.insert((kind, text("id")), [text("name"), text("status"), owner]);
        }
    }
    Ok(view)
}

fn is_reachable(object: &Value, number: usize) -> Result<(), String> {
    match object["reachable"] == false {
        true => Err(format!("it is out of reach at member {number}: {object}")),
        false => Ok(()),
    }
}

/// Ends all members, and checks that no process is left.
pub(crate) async fn end(members: &Members, ledger: &Ledger, report: &Report) {
    for (number, member) in members.all.iter().enumerate() {
        let mut daemon = member.daemon.lock().await;
        daemon.sigterm();
        let code = daemon.exit().await;
        if code != Some(0) {
            report.wrong(format!("member {number} ended with {code:?}"));
        }
    }
    for object in ledger.all().into_values() {
        if let Some(mark) = object.mark {
            mark.is_gone().await;
        }
    }
    Mark::of(&members.dir()).is_gone().await;
}
