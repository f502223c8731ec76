//! The state that must be left when all have stopped: nothing in flight, nothing queued, everybody listed as they
//! are, and no more memory than there was need for.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use testkit::{
    Daemon, FakeParticipant,
    lab::{http, not_zero, settles},
};

use crate::rooms::{account::Report, room::Room};

/// How long the last slots may take to be free after the last request, on a machine that is busy:
/// what is lost stays lost.
const SETTLE: Duration = Duration::from_secs(60);

/// The most memory of the server when all have left, in MiB.
const MOST_MIB: u64 = 200;

/// Checks at the end that nothing is held any more, and that the lists of participants are right; then removes
/// them all.
pub(crate) async fn settle(daemon: &Daemon, rooms: &[Arc<Room>], report: &Report) {
    settles(report, "slots are lost", SETTLE, async || idle(daemon).await).await;
    for room in rooms {
        settles(report, "who is there", SETTLE, async || listed(room).await).await;
    }
    let in_flight = |line: &str| line.starts_with("warren_") && line.contains("in_flight");
    for line in not_zero(&daemon.metrics().await, in_flight) {
        report.wrong(format!("in /metrics after the end: {line}"));
    }
    let kept = report.tally(|tally| std::mem::take(&mut tally.kept));
    for room in rooms {
        empty(room, report).await;
    }
    for participant in kept {
        removed(participant, report).await;
    }
    settles(report, "providers are left", SETTLE, async || gone(daemon).await).await;
}

pub(crate) fn memory(daemon: &Daemon, report: &Report) -> u64 {
    let resident = daemon.resident_bytes() >> 20;
    if resident > MOST_MIB {
        report.wrong(format!("the server occupies {resident} MiB when all have left"));
    }
    resident
}

async fn stats(daemon: &Daemon) -> Value {
    daemon.admin().get("/admin/stats").await.json()
}

async fn idle(daemon: &Daemon) -> Option<String> {
    let stats = stats(daemon).await;
    let queued = stats["queue_depth"].as_object();
    let queued = queued.is_none_or(|depths| depths.values().any(|depth| *depth != 0));
    let idle = stats["in_flight"] == 0 && stats["queues"] == json!([]) && !queued;
    (!idle).then(|| stats.to_string())
}

async fn gone(daemon: &Daemon) -> Option<String> {
    let stats = stats(daemon).await;
    (stats["active_workers"] != 0).then(|| stats.to_string())
}

/// Whether exactly the expected participants are listed, each with its status.
async fn listed(room: &Room) -> Option<String> {
    let expected = room
        .expected()
        .into_iter()
        .map(|(id, connected)| (id, if connected { "online" } else { "offline" }.to_owned()));
    let (expected, listed) = (expected.collect::<Vec<_>>(), room.listed().await);
    let listed: Vec<_> = listed.into_iter().collect();
    let differ = |one: &[(String, String)], other: &[(String, String)]| {
        one.iter().filter(|entry| !other.contains(entry)).cloned().collect::<Vec<_>>()
    };
    let (missing, wrong) = (differ(&expected, &listed), differ(&listed, &expected));
    let room = room.number;
    (expected != listed).then(|| format!("room {room} lists {wrong:?} and not {missing:?}"))
}

/// Removes every participant, as the host.
async fn empty(room: &Room, report: &Report) {
    for id in room.listed().await.into_keys() {
        let request = room.as_host(room.plane("DELETE", &format!("/participants/{id}")));
        let status = http::json(room.address, &request).await.map_or(0, |(status, _)| status);
        if status != 200 {
            report.wrong(format!("{id} could not be sent away: {status}"));
        }
    }
    let listed = room.listed().await;
    if !listed.is_empty() {
        report.wrong(format!("after all have left room {} lists {listed:?}", room.number));
    }
}

async fn removed(mut participant: FakeParticipant, report: &Report) {
    participant.fall_silent();
    let close = participant.expect_close().await;
    if close.as_ref().is_none_or(|(code, _)| *code != 1008) {
        report.wrong(format!("{participant:?} was removed and told {close:?}"));
    }
}
