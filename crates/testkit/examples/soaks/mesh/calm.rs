//! After all churn has stopped: every machine finds all that it can have links to, and is
//! answered by each of them. However slow the computer is, nothing is refused, broken or lost now.

use std::{collections::HashSet, sync::Arc, time::Duration};

use testkit::lab::settles;
use tokio::task::JoinSet;

use crate::mesh::{
    account::Report,
    judge::{RequestEnd, SentRequest},
    load,
    peers::Mesh,
    plan::{self, MACHINES, Model},
};

/// How long machines may take to find each other again: one that was away often is tried again after a
/// minute or so.
const FOUND: Duration = Duration::from_secs(180);

/// Waits until every machine lists all that it can have links to, as answering.
pub(crate) async fn linked(mesh: &Mesh, report: &Report) {
    for number in 0..MACHINES {
        let what = format!("machine {number} misses peers");
        settles(report, &what, FOUND, async || missing(mesh, number).await).await;
    }
}

async fn missing(mesh: &Mesh, number: usize) -> Option<String> {
    let peers = mesh.machines[number].get("/admin/mesh/peers").await.unwrap_or_default();
    let listed = peers["peers"].as_array().cloned().unwrap_or_default();
    let ids = plan::peers(number).map(|peer| (peer, &mesh.machines[peer]));
    let mut missing = HashSet::new();
    for (peer, machine) in ids {
        let own = Model::Only(peer).name();
        let well = listed.iter().any(|listed| {
            let serves =
                listed["models"].as_array().is_some_and(|all| all.contains(&own.as_str().into()));
            let answers = listed["status"] == "ok" || listed["status"] == "unlinked";
            listed["id"] == *machine.id && serves && answers
        });
        if !well {
            missing.insert(peer);
        }
    }
    (!missing.is_empty()).then(|| format!("{missing:?} of {peers}"))
}

/// Every machine asks for the model of every other, and for those of several.
pub(crate) async fn serve(mesh: &Arc<Mesh>, report: &Report) {
    let mut asking = JoinSet::new();
    for number in 0..MACHINES {
        asking.spawn(serve_one(Arc::clone(mesh), number));
    }
    while let Some(asked) = asking.join_next().await {
        match asked {
            Ok(Ok(())) => {}
            Ok(Err(wrong)) => report.wrong(format!("when all were there: {wrong}")),
            Err(error) => report.wrong(format!("when all were there: {error}")),
        }
    }
}

async fn serve_one(mesh: Arc<Mesh>, number: usize) -> Result<(), String> {
    let only = (0..MACHINES).map(Model::Only);
    for model in only.chain([Model::All, Model::Half]) {
        for stream in [true, false] {
            let nonce = mesh.sound(number);
            let ask = SentRequest { nonce, model, stream, route: Some("mesh") };
            let fate = load::send(&mesh.machines[number], ask, None).await;
            is_right(ask, &fate)?;
        }
    }
    Ok(())
}

fn is_right(ask: SentRequest, fate: &RequestEnd) -> Result<(), String> {
    let somewhere = (0..MACHINES).any(|machine| ask.may_reach(machine));
    match fate {
        // `judge` has checked already which machine may answer.
        RequestEnd::Answered(_) => Ok(()),
        RequestEnd::Refused(404, _) if !somewhere => Ok(()),
        fate => Err(format!("{ask:?}: {fate:?}")),
    }
}
