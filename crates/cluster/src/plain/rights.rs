//! The rights of a plain peer: what follows from an object that it offers, given the known one. A
//! plain peer decides about the sessions that it owns. Other objects it may rename, and it may
//! delete projects and teams.

use std::sync::Arc;

use protocol::workspace::peer::{ObjectText, ProjectObject, SessionObject};
use replica::{Entry, Kind, Version};
use serde::Deserialize;

use super::offer::{Offer, Offered, Time};

/// This member, and the plain peer that speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parties<'a> {
    pub(crate) me: &'a str,
    pub(crate) peer: &'a str,
}

/// The consequence of an offer or a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The version is known, or the peer has no say.
    Ignore,
    /// The version is taken over.
    Adopt(Adoption),
    /// The peer may rename this member's session.
    Rename(String),
    /// The peer may delete it.
    Delete,
    /// The peer must get this member's state, in a newer version than it offered.
    Answer,
    /// The peer must get the newer version that is known already.
    Repeat,
    /// The peer must get the removal of the object: the peer names this member as its owner, and
    /// this member has no such object.
    Remove,
    /// It is another owner's, and is not known here. If it was deleted, the peer must get the
    /// removal.
    RemoveIfDeleted,
}

/// A version that is taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Adoption {
    pub(crate) owner: String,
    pub(crate) version: Version,
    pub(crate) value: Arc<str>,
    /// Whether the peer changed more than it may. Then it must get this member's state.
    pub(crate) answer: bool,
}

/// The verdict on an offer. `leads` is the owner of the session that leads an offered team, if
/// that is known.
pub(crate) fn offered(
    parties: Parties<'_>,
    known: Option<&Entry>,
    offer: &Offer,
    leads: Option<&str>,
) -> Verdict {
    let claimed = offer.owner.as_deref().or(leads).unwrap_or(parties.peer);
    match known {
        None if claimed == parties.peer => new(parties, offer),
        None if claimed == parties.me => Verdict::Remove,
        None => Verdict::RemoveIfDeleted,
        Some(known) if offer.key.kind == Kind::SESSION => session(parties, known, offer, claimed),
        Some(known) => stamped(parties, known, offer),
    }
}

/// The verdict on a removal.
pub(crate) fn removed(parties: Parties<'_>, kind: Kind, known: Option<&Entry>) -> Verdict {
    match known {
        None => Verdict::Ignore,
        Some(_) if kind != Kind::SESSION => Verdict::Delete,
        Some(known) if known.owner.as_str() == parties.peer => Verdict::Delete,
        Some(known) if known.owner.as_str() == parties.me => Verdict::Answer,
        Some(_) => Verdict::Ignore,
    }
}

/// The generation that the owner of an adopted session gives it.
pub(crate) fn owners_generation(entry: &Entry) -> u64 {
    let said: Said = serde_json::from_str(&entry.value).unwrap_or_default();
    said.offered_generation.unwrap_or_else(|| entry.generation())
}

/// The field of an adopted session that holds its owner's generation, if the version has another
/// one.
const OFFERED_GENERATION: &str = "offered_generation";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    offered_generation: Option<u64>,
}

fn new(parties: Parties<'_>, offer: &Offer) -> Verdict {
    let version = match offer.version {
        Offered::Generation(generation) => Version::Generation(generation),
        Offered::Time(time) => Version::Stamp(time.stamp(parties.peer)),
    };
    adopt(parties.peer, version, owned(offer, parties.peer))
}

fn session(parties: Parties<'_>, known: &Entry, offer: &Offer, claimed: &str) -> Verdict {
    let Offered::Generation(generation) = offer.version else { return Verdict::Ignore };
    match known.owner.as_str() {
        owner if owner == parties.me => own_session(known, offer, generation),
        owner if owner == parties.peer && claimed == parties.peer => {
            its_session(parties.peer, known, offer, generation)
        }
        _ => Verdict::Ignore,
    }
}

/// A plain peer offers a session of this member.
fn own_session(known: &Entry, offer: &Offer, generation: u64) -> Verdict {
    let name = SessionObject::from_text(&known.value, 0).ok().and_then(|session| session.name);
    match &offer.name {
        _ if generation < known.generation() => Verdict::Repeat,
        _ if generation == known.generation() => Verdict::Ignore,
        Some(offered) if name.as_ref() != Some(offered) => Verdict::Rename(offered.clone()),
        _ => Verdict::Answer,
    }
}

/// A plain peer offers its own session. The link keeps the order, so this is the peer's newest
/// state, even if its generation has not grown: some peers count only lives.
fn its_session(peer: &str, known: &Entry, offer: &Offer, generation: u64) -> Verdict {
    let Some(text) = owned(offer, peer) else { return Verdict::Ignore };
    let marked = text.with(OFFERED_GENERATION, &generation).ok();
    let is_known = |text: &ObjectText| *known.value == *text.as_str();
    if is_known(&text) || marked.as_ref().is_some_and(is_known) {
        return Verdict::Ignore;
    }
    match generation > known.generation() {
        true => adopt(peer, Version::Generation(generation), Some(text)),
        false => adopt(peer, Version::Generation(known.generation() + 1), marked),
    }
}

/// A plain peer offers a known project or team. The later change wins.
fn stamped(parties: Parties<'_>, known: &Entry, offer: &Offer) -> Verdict {
    let (Offered::Time(offered), Version::Stamp(stamp)) = (offer.version, &known.rank.version)
    else {
        return Verdict::Ignore;
    };
    let owner = known.owner.as_str();
    match offered.cmp(&Time::of(stamp)) {
        std::cmp::Ordering::Less => Verdict::Repeat,
        std::cmp::Ordering::Equal => Verdict::Ignore,
        std::cmp::Ordering::Greater if owner == parties.peer => {
            let version = Version::Stamp(offered.stamp(parties.peer));
            adopt(owner, version, owned(offer, owner))
        }
        std::cmp::Ordering::Greater if offer.key.kind == Kind::PROJECT => {
            renamed_project(parties, known, offer, offered)
        }
        std::cmp::Ordering::Greater if owner == parties.me => Verdict::Answer,
        std::cmp::Ordering::Greater => Verdict::Ignore,
    }
}

/// Only the name is taken over for a project that others own: its directory, user and environment
/// decide what runs on its owner's machine.
fn renamed_project(parties: Parties<'_>, known: &Entry, offer: &Offer, time: Time) -> Verdict {
    let unchanged = match known.owner.as_str() == parties.me {
        true => Verdict::Answer,
        false => Verdict::Ignore,
    };
    let (Ok(project), Ok(offered)) =
        (ProjectObject::from_text(&known.value), ProjectObject::from_text(offer.text.as_str()))
    else {
        return Verdict::Ignore;
    };
    let Some(name) = offer.name.as_ref().filter(|name| project.name.as_ref() != Some(name)) else {
        return unchanged;
    };
    let (has, wants) = (project.project(), offered.project());
    let is_more = (&has.working_dir, &has.run_as_user, &has.env)
        != (&wants.working_dir, &wants.run_as_user, &wants.env);
    let answer = is_more && unchanged == Verdict::Answer;
    let version = Version::Stamp(time.stamp(parties.peer));
    let renamed = project.text.with("name", name);
    let renamed = renamed.and_then(|text| text.with("updated_at", &time.timestamp()));
    match adopt(known.owner.as_str(), version, renamed.ok()) {
        Verdict::Adopt(adoption) => Verdict::Adopt(Adoption { answer, ..adoption }),
        other => other,
    }
}

/// The offered text, with this owner.
fn owned(offer: &Offer, owner: &str) -> Option<ObjectText> {
    offer.text.with("node_id", &owner).ok()
}

fn adopt(owner: &str, version: Version, text: Option<ObjectText>) -> Verdict {
    let Some(text) = text else { return Verdict::Ignore };
    let (owner, value) = (owner.to_owned(), text.as_str().into());
    Verdict::Adopt(Adoption { owner, version, value, answer: false })
}

#[cfg(test)]
mod tests;
