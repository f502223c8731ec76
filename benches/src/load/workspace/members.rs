//! Objects of the members of a cluster, until their clients at all members have heard of them. The
//! objects are projects, whose names say which they are.

use std::{
    collections::HashSet,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Daemon, LIMIT,
    client::{Client, ServerMessage},
    pause,
};
use crate::{
    child,
    stats::{Times, now},
};

/// Between two changes that are timed.
const APART: Duration = Duration::from_millis(20);

/// Changes that are not counted at first.
const WARMUP: u32 = 5;

/// Requests that wait for their answers at a time.
const TOGETHER: u32 = 32;

/// Changes that clients have heard of and that nobody has looked at yet.
const SEEN: usize = 1024;

/// The message of a process that listens at all members.
pub(crate) const LISTENS: &str = "\"listens\"";

/// Makes this many objects at each member.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fill {
    pub(crate) daemons: Vec<Daemon>,
    /// The beginning of their names; the member's place follows.
    pub(crate) name: String,
    pub(crate) each: u32,
}

/// Makes one object after another at the first member, each until clients of all members have heard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sight {
    pub(crate) daemons: Vec<Daemon>,
    pub(crate) name: String,
    pub(crate) changes: u32,
}

/// Waits until clients of all members have heard of what [`Fill`] made elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Arrivals {
    /// Each member, and the members whose objects it lacks, by their places.
    pub(crate) daemons: Vec<(Daemon, Vec<usize>)>,
    pub(crate) name: String,
    pub(crate) each: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Of [`Sight`].
    pub(crate) times: Times,
    /// When the last one came, in microseconds since 1970.
    pub(crate) last: u64,
}

/// The beginning of the names of a member's objects.
fn of_member(name: &str, place: usize) -> String {
    format!("{name}/{place}/")
}

pub(super) fn fill(plan: &Fill) -> Result<Outcome> {
    let filling = plan.daemons.iter().cloned().enumerate().map(|(place, daemon)| {
        let (name, each) = (of_member(&plan.name, place), plan.each);
        thread::spawn(move || fill_one(&daemon, &name, each))
    });
    for filled in filling.collect::<Vec<_>>() {
        filled.join().map_err(|_| anyhow::anyhow!("a client is gone"))??;
    }
    Ok(Outcome { last: now(), ..Outcome::default() })
}

fn fill_one(daemon: &Daemon, name: &str, each: u32) -> Result<()> {
    let mut client = Client::open(daemon)?;
    let mut made = HashSet::new();
    for number in 0..each {
        create(&mut client, &format!("{name}{number}"))?;
        let waits_for =
            if number + 1 == each { each } else { (number + 1).saturating_sub(TOGETHER) };
        while made.len() < waits_for as usize {
            made.extend(next(&mut client)?.filter(|heard| heard.starts_with(name)));
        }
    }
    Ok(())
}

pub(super) fn sight(plan: &Sight) -> Result<Outcome> {
    let (tell, seen) = sync_channel(SEEN);
    for daemon in &plan.daemons {
        let (client, tell) = (Client::open(daemon)?, tell.clone());
        thread::spawn(move || watch(client, &tell));
    }
    let first = plan.daemons.first().context("a cluster without members")?;
    let (mut client, mut times) = (Client::open(first)?, Times::default());
    for number in 0..WARMUP + plan.changes {
        let name = format!("{}/{number}", plan.name);
        let begun = Instant::now();
        create(&mut client, &name)?;
        let last = last_of(&seen, &name, plan.daemons.len())?;
        if number >= WARMUP {
            times.add(last.saturating_duration_since(begun));
        }
        pause(APART);
    }
    Ok(Outcome { times, last: now() })
}

type Seen = Result<(String, Instant)>;

fn watch(mut client: Client, tell: &SyncSender<Seen>) {
    loop {
        let heard = match next(&mut client) {
            Ok(Some(name)) => Ok((name, Instant::now())),
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        let is_over = heard.is_err();
        if tell.send(heard).is_err() || is_over {
            return;
        }
    }
}

/// When the last of this many clients has heard of an object.
fn last_of(seen: &Receiver<Seen>, name: &str, clients: usize) -> Result<Instant> {
    let (mut heard, mut last) = (0, Instant::now());
    while heard < clients {
        let (of, at) = seen.recv_timeout(LIMIT).context("a change is not seen in time")??;
        if of == name {
            (heard, last) = (heard + 1, at);
        }
    }
    Ok(last)
}

pub(super) fn arrivals(plan: &Arrivals) -> Result<Outcome> {
    let mut waiting = Vec::new();
    for (daemon, lacks) in &plan.daemons {
        let names = lacks.iter().map(|place| of_member(&plan.name, *place));
        let (names, each) = (names.collect::<Vec<_>>(), plan.each);
        let client = Client::open(daemon)?;
        waiting.push(thread::spawn(move || arrivals_at(client, &names, each)));
    }
    child::say(LISTENS)?;
    let mut last = 0;
    for at in waiting {
        last = last.max(at.join().map_err(|_| anyhow::anyhow!("a client is gone"))??);
    }
    Ok(Outcome { last, ..Outcome::default() })
}

fn arrivals_at(mut client: Client, names: &[String], each: u32) -> Result<u64> {
    let (mut heard, begun) = (HashSet::new(), Instant::now());
    while heard.len() < names.len() * each as usize {
        let is_lacked = |name: &String| names.iter().any(|of| name.starts_with(of));
        heard.extend(next(&mut client)?.filter(is_lacked));
        ensure!(begun.elapsed() < LIMIT * 4, "{} of {each} came in time", heard.len());
    }
    Ok(now())
}

fn create(client: &mut Client, name: &str) -> Result<()> {
    client.say(&json!({"type": "create_project", "name": name, "working_dir": "/"}))
}

/// The name of the object that the next message is about, if it is about one.
fn next(client: &mut Client) -> Result<Option<String>> {
    let ServerMessage::Text(told) = client.next()? else { return Ok(None) };
    let name = told["project"]["name"].as_str().filter(|_| told["type"] == "project_saved");
    Ok(name.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_when_the_last_client_has_heard_of_it() {
        let (tell, seen) = sync_channel(SEEN);
        let (early, late) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        for (name, at) in [("a", early), ("other", late), ("a", late), ("b", early)] {
            tell.send(Ok((name.to_owned(), at))).unwrap();
        }
        assert_eq!(last_of(&seen, "a", 2).unwrap(), late);
        drop(tell);
        assert!(last_of(&seen, "b", 2).is_err(), "one client has not heard");
    }

    #[test]
    fn the_objects_of_a_member_are_known_by_their_names() {
        assert!("apart/1/7".starts_with(&of_member("apart", 1)));
        assert!(!"apart/11/7".starts_with(&of_member("apart", 1)));
    }
}
