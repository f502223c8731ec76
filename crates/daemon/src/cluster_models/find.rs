//! Which member has a model. The members are asked when a model is needed. Models come and go with every
//! link of a worker: if the replica had them, each change would be written to the disk of every member.

use std::time::Duration;

use cluster::{Caller, Circuit, Cluster, MemberStatus, Service};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use protocol::workspace::Role;
use tokio::time::timeout;

use super::{
    Offers,
    messages::{Ask, Reply, frame, read},
};

/// How long members may take to say which models they have.
const WITHIN: Duration = Duration::from_secs(2);
/// The most members that are asked, and listed in an error.
const MOST_MEMBERS: usize = 64;
/// The most models of one member that an error lists.
const MOST_LISTED: usize = 16;

/// Where a model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// At this server; or this server handles the request because it knows no other member or has served the model
    /// before.
    Here,
    /// At the member with this node id.
    Member(String),
    /// At no member that has answered.
    Nowhere {
        /// Words for people, which list the models that there are.
        words: String,
        /// Whether a member could not be asked, so that it may have the model.
        may_be_away: bool,
    },
}

/// Finds a model: here, or else at the member that is the first to say that it has the model. If no member has it, but
/// this server has served it before, the request waits here for its return.
pub(super) async fn find(cluster: Option<&Cluster>, offers: &dyn Offers, model: &str) -> Place {
    if offers.serves(model) {
        return Place::Here;
    }
    let Some(cluster) = cluster else { return Place::Here };
    let others: Vec<MemberStatus> =
        cluster.members().into_iter().filter(|other| other.member.key.is_some()).collect();
    if others.is_empty() {
        return Place::Here;
    }
    let mut asking: FuturesUnordered<_> = others
        .into_iter()
        .take(MOST_MEMBERS)
        .map(|other| async move {
            let answer =
                if other.reachable { ask(cluster, &other, model).await } else { Answer::Away };
            (other, answer)
        })
        .collect();
    let mut answers = Vec::new();
    while let Some((other, answer)) = asking.next().await {
        match answer {
            Answer::Has => return Place::Member(other.member.node_id),
            answer => answers.push((cluster.name_of(&other.member.node_id), answer)),
        }
    }
    if offers.has_served(model) {
        return Place::Here;
    }
    let may_be_away =
        answers.iter().any(|(_, answer)| matches!(answer, Answer::Nothing | Answer::Away));
    answers.sort_by(|(one, _), (other, _)| one.cmp(other));
    answers.insert(0, ("this machine".to_owned(), Answer::HasOthers(offers.served())));
    Place::Nowhere { words: nowhere(model, &answers), may_be_away }
}

/// A member's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Has,
    HasOthers(Vec<String>),
    /// No answer in time, or none that can be read.
    Nothing,
    /// No link leads to it.
    Away,
}

async fn ask(cluster: &Cluster, other: &MemberStatus, model: &str) -> Answer {
    let find = Ask::Find { model: model.to_owned() };
    let asking = first_reply(cluster, &other.member.node_id, "models", &find);
    match timeout(WITHIN, asking).await {
        Ok(Ok((_, Reply::Models { has: true, .. }))) => Answer::Has,
        Ok(Ok((_, Reply::Models { models, .. }))) => Answer::HasOthers(models),
        _ => Answer::Nothing,
    }
}

/// Opens a circuit to the models of a member, in the name of `who`, and asks for something. Returns the circuit and
/// the first answer.
///
/// # Errors
/// Words for people, if the circuit ends, or the answer cannot be read.
pub(super) async fn first_reply(
    cluster: &Cluster,
    node: &str,
    who: &str,
    ask: &Ask,
) -> Result<(Circuit, Reply), String> {
    let caller = Caller { who: who.to_owned(), role: Role::Write, member: None };
    let mut circuit = cluster.open_service(node, Service::Models, caller);
    // If the circuit has ended, the read below fails.
    let _ended = circuit.send(frame(ask));
    let heard = circuit.next().await.map_err(|ended| ended.to_string())?;
    let reply = read(&heard).ok_or("its answer cannot be read; does it run an older Warren?")?;
    Ok((circuit, reply))
}

fn nowhere(model: &str, answers: &[(String, Answer)]) -> String {
    let members = answers.iter().map(|(name, answer)| match answer {
        Answer::Has => format!("{name} has it"),
        Answer::HasOthers(models) if models.is_empty() => format!("{name} has none"),
        Answer::HasOthers(models) => format!("{name} has {}", listed(models)),
        Answer::Nothing => format!("{name} did not say within {} s", WITHIN.as_secs()),
        Answer::Away => format!("{name} cannot be reached"),
    });
    let members = members.collect::<Vec<_>>().join("; ");
    format!("no machine of this cluster has the model {model}: {members}")
}

fn listed(models: &[String]) -> String {
    let shown = models.iter().take(MOST_LISTED).cloned().collect::<Vec<_>>().join(", ");
    match models.len().saturating_sub(MOST_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_lists_what_there_is_and_where() {
        let many = (0..20).map(|number| format!("m{number}")).collect();
        let answers = [
            ("this machine".to_owned(), Answer::HasOthers(Vec::new())),
            ("two".to_owned(), Answer::HasOthers(vec!["a".to_owned(), "b".to_owned()])),
            ("three".to_owned(), Answer::HasOthers(many)),
            ("four".to_owned(), Answer::Nothing),
            ("five".to_owned(), Answer::Away),
        ];
        let words = nowhere("tiny", &answers);
        let beginning = "no machine of this cluster has the model tiny: this machine has none; two \
                         has a, b; three has m0, ";
        assert!(words.starts_with(beginning), "{words}");
        let end = "m15 and 4 more; four did not say within 2 s; five cannot be reached";
        assert!(words.ends_with(end), "{words}");
    }
}
