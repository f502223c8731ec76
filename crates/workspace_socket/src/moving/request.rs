//! A client's request to move a session.

use std::{sync::Arc, time::Duration};

use cluster::Cluster;
use protocol::workspace::{
    ServerMessage, SessionId,
    client::{MoveSession, SessionMoved},
    peer::{
        object::ObjectText,
        sealed::{MoveAsk, SealedMessage},
    },
};
use replica::handover::Departure;
use tokio::sync::oneshot;
use workspace::{Refusal, moving::Portable};

use super::{departure::OutgoingMove, mover::Mover, talk::Talk};
use crate::{
    answers::asker::{Answer, Asker},
    membership::Server,
    policy::Target,
};

/// How long the other machine may take to check whether it could run the agent.
const ASK: Duration = Duration::from_secs(15);

/// Moves a session of this machine to another one.
pub(crate) async fn move_session(asker: &Asker, request: MoveSession) -> Answer {
    let id = request.session_id;
    let moved = try_move(asker, request).await;
    asker.note_outcome("session.move", &id.to_string(), &moved);
    moved.map(|moved| Some(ServerMessage::SessionMoved(moved)))
}

async fn try_move(asker: &Asker, request: MoveSession) -> Result<SessionMoved, Refusal> {
    let services = &asker.services;
    let alone = || Refusal::invalid("this machine is in no cluster: there is nowhere to move to");
    let cluster = services.membership.cluster().ok_or_else(alone)?;
    let to = machine(asker, &cluster, &request.node_id)?;
    let id = request.session_id;
    let portable = services.sessions.portable(id).await?;
    let move_id = rand::random::<u64>();
    let mut talk = Talk::open(&cluster, &to);
    let working_dir = ask(&mut talk, &request, &portable, move_id).await?;
    let node_name = cluster.name_of(&to);
    let moved = SessionMoved {
        session_id: id,
        node_id: to.clone(),
        node_name,
        working_dir,
        stays: portable.stays,
        dry_run: request.dry_run,
    };
    if request.dry_run {
        return Ok(moved);
    }
    if !moved.stays.is_empty() && !request.accept_losses {
        let stays = moved.stays.join("; ");
        return Err(Refusal::Invalid(format!(
            "{stays}. It moves all the same if the request says so (--yes)"
        )));
    }
    let outgoing = begin(asker, id, move_id)?;
    let (client, outcome) = oneshot::channel();
    let mut mover = Mover::new(services, &cluster, id, to, outgoing);
    (mover.interrupt, mover.accept_losses) = (request.interrupt, request.accept_losses);
    (mover.talk, mover.client) = (Some(talk), Some(client));
    // In a task of its own, so that the move goes on if the client leaves.
    tokio::spawn(mover.run());
    outcome.await.map_err(|_| Refusal::Failed("the server is stopping".to_owned()))??;
    Ok(moved)
}

/// Notes that the session is on its way out, if it is not already.
fn begin(asker: &Asker, id: SessionId, move_id: u64) -> Result<Arc<OutgoingMove>, Refusal> {
    // Locked over check and insertion, so that two requests do not both begin.
    let mut all = asker.services.moves.outgoing();
    if all.contains_key(&id) {
        return Err(Refusal::invalid("it moves to another machine already"));
    }
    if all.len() >= super::MOST {
        return Err(Refusal::TooMany { what: "sessions on their way", most: super::MOST });
    }
    let outgoing = Arc::new(OutgoingMove::new(move_id, Departure::begin()));
    all.insert(id, Arc::clone(&outgoing));
    Ok(outgoing)
}

fn machine(asker: &Asker, cluster: &Cluster, name: &str) -> Result<String, Refusal> {
    let target = Target::Node(name.to_owned());
    let to = match asker.services.membership.server_of(&target, &asker.services)? {
        Server::Member(to) => to,
        Server::Here | Server::Unknown => {
            return Err(Refusal::Invalid(format!("it runs on {name} already")));
        }
    };
    let name = cluster.name_of(&to);
    if !cluster.is_warren(&to) {
        return Err(Refusal::Invalid(format!("{name} is no Warren: agents cannot move there")));
    }
    if !cluster.is_reachable(&to) {
        return Err(Refusal::Failed(format!("{name} cannot be reached")));
    }
    Ok(to)
}

/// Asks the other machine whether it could run the agent, and where.
async fn ask(
    talk: &mut Talk,
    request: &MoveSession,
    portable: &Portable,
    move_id: u64,
) -> Result<String, Refusal> {
    let facts = ObjectText::new(portable.facts.clone());
    let question = SealedMessage::MoveAsk(MoveAsk {
        move_id,
        session_id: request.session_id,
        facts: facts.map_err(|error| Refusal::failed(&error))?,
        project: portable.project.clone(),
        below: portable.below.clone(),
        to_dir: request.working_dir.clone(),
        bytes: portable.bytes,
    });
    match talk.ask(&question, ASK).await? {
        SealedMessage::MoveAnswer(answer) if answer.problems.is_empty() => {
            Ok(answer.working_dir.unwrap_or_default())
        }
        SealedMessage::MoveAnswer(answer) => Err(Refusal::Invalid(answer.problems.join("; "))),
        _ => Err(Refusal::invalid("the other machine answered something else")),
    }
}
