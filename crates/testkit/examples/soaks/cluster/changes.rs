//! Sessions and projects that are made, renamed and deleted through any member.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use testkit::{Random, workspace::Mark};
use tokio::time::{Instant, sleep};

use crate::cluster::{
    account::Report,
    ledger::{Fate, Kind, Ledger, Object},
    members::Members,
};

/// How many of a kind there are about.
const ABOUT: usize = 12;
/// The script of a session that only has a name.
const ASLEEP: &str = "exec sleep 100000";

/// Makes changes for a while, one after the other.
pub(crate) async fn change(
    members: Arc<Members>,
    ledger: Arc<Ledger>,
    mut random: Random,
    report: Report,
    until: Instant,
) {
    while Instant::now() < until {
        sleep(Duration::from_millis(20 + random.below(300))).await;
        let kind = if random.chance(0.5) { Kind::Session } else { Kind::Project };
        let few = ledger.count(kind) < ABOUT;
        let changed = match random.below(10) {
            0..5 if few => make(&members, &ledger, kind, &mut random, &report).await,
            0..2 => delete(&members, &ledger, kind, &mut random, &report).await,
            _ => rename(&members, &ledger, kind, &mut random, &report).await,
        };
        if let Err(words) = changed {
            failed(&words, &report);
        }
    }
}

/// A request whose end is open. What a member may say then is known; all else is wrong.
pub(crate) fn failed(words: &str, report: &Report) {
    let known = [
        "cannot be reached",
        "was lost",
        "connection ended",
        "no connection",
        "session_unknown",
        "is not known",
        // A member that was cut off may not have heard of it.
        "there is no project",
    ];
    report.tally(|counts| counts.open += 1);
    if !known.iter().any(|known| words.contains(known)) {
        report.wrong(words);
    }
}

async fn make(
    members: &Members,
    ledger: &Ledger,
    kind: Kind,
    random: &mut Random,
    report: &Report,
) -> Result<(), String> {
    let (entry, name) = (members.any(random), ledger.name());
    let (id, object) = match kind {
        Kind::Project => create(members, entry, name).await?,
        Kind::Session => open(members, entry, members.any(random), name, ASLEEP).await?,
    };
    ledger.made(kind, &id, object);
    report.tally(|counts| counts.made += 1);
    Ok(())
}

/// A project of that member.
async fn create(members: &Members, entry: usize, name: String) -> Result<(String, Object), String> {
    let kills = members.kills(entry);
    let create = json!({"type": "create_project", "name": name, "working_dir": members.dir()});
    let is_it = |saved: &Value| saved["project"]["name"] == *name;
    let saved = members.ask_where(entry, create, "project_saved", is_it).await?;
    Ok((id_of(&saved["project"])?, Object::new(name, entry, kills)))
}

/// Runs a script in a terminal of `owner`, through `entry`.
pub(crate) async fn open(
    members: &Members,
    entry: usize,
    owner: usize,
    name: String,
    script: &str,
) -> Result<(String, Object), String> {
    let (kills, mark) = (members.kills(owner), Mark::new());
    let script = format!("sleep {} >/dev/null 2>&1 & {script}", mark.word());
    let open = json!({
        "type": "open_terminal", "working_dir": members.dir(), "command": "sh", "name": name,
        "args": ["-c", script], "node_id": members.all[owner].node_id,
    });
    let opened = members.ask(entry, open, "terminal_opened").await?;
    Ok((id_of(&opened["session"])?, Object::new(name, owner, kills).marked(mark)))
}

fn id_of(object: &Value) -> Result<String, String> {
    Ok(object["id"].as_str().ok_or_else(|| format!("no id: {object}"))?.to_owned())
}

async fn rename(
    members: &Members,
    ledger: &Ledger,
    kind: Kind,
    random: &mut Random,
    report: &Report,
) -> Result<(), String> {
    let Some((id, mut object)) = ledger.take(kind, random) else { return Ok(()) };
    let (entry, name) = (members.any(random), ledger.name());
    let (message, answer, field) = match kind {
        Kind::Session => (
            json!({"type": "rename_session", "session_id": id, "name": name}),
            "session_status_changed",
            "session",
        ),
        Kind::Project => (
            json!({"type": "update_project", "project_id": id, "name": name}),
            "project_saved",
            "project",
        ),
    };
    let is_it = |told: &Value| told[field]["id"] == *id && told[field]["name"] == *name;
    let done = members.ask_where(entry, message, answer, is_it).await;
    match &done {
        Ok(_) => {
            object.name = name;
            report.tally(|counts| counts.renamed += 1);
        }
        Err(_) => object.maybe.push(name),
    }
    let is_refused = is_lost(&object, members);
    ledger.give_back(kind, id, object);
    if is_refused { Ok(()) } else { done.map(drop) }
}

async fn delete(
    members: &Members,
    ledger: &Ledger,
    kind: Kind,
    random: &mut Random,
    report: &Report,
) -> Result<(), String> {
    let Some((id, mut object)) = ledger.take(kind, random) else { return Ok(()) };
    let (message, answer, field) = match kind {
        Kind::Session => {
            (json!({"type": "kill_session", "session_id": id}), "session_killed", "session_id")
        }
        Kind::Project => {
            (json!({"type": "delete_project", "project_id": id}), "project_removed", "project_id")
        }
    };
    let is_it = |told: &Value| told[field] == *id;
    let done = members.ask_where(members.any(random), message, answer, is_it).await;
    object.fate = match &done {
        Ok(_) => Fate::Deleted,
        Err(_) => Fate::Open,
    };
    report.tally(|counts| counts.deleted += u64::from(done.is_ok()));
    let is_refused = is_lost(&object, members);
    ledger.give_back(kind, id, object);
    if is_refused { Ok(()) } else { done.map(drop) }
}

/// Whether requests about it may be refused in any words: it may be gone, as far as is known here.
fn is_lost(object: &Object, members: &Members) -> bool {
    object.fate == Fate::Open || object.kills != members.kills(object.owner)
}
