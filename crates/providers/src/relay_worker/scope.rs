//! The scope that a link's worker serves: the whole server, or one room.

use std::{future::pending, sync::Arc};

use access::Lender;
use base::{ClientAddress, ModelName, ProviderId, Scope, Secret};
use protocol::{
    json::clip,
    relay::{Normalised, Register, WorkerParticipant},
    room::{Capabilities, limits, tunnel::close},
};
use rooms::{JoinAnswer, JoinRequest, Kind, Room, RoomError};
use tokio::task::spawn_blocking;

use crate::{
    claims::Claim,
    link::{Close, Permit},
    member::{Member, Presence, now_ms},
};

/// Close code: the worker is not allowed, or no longer allowed, to be a worker.
const POLICY: u16 = 1008;

/// Closes a link whose worker has dialled again.
const REPLACED: Close = (1000, "a newer link of this worker takes its place");

/// The URL that a room shows for a worker's backend. It is never called.
const NOWHERE: &str = "http://worker.invalid/";

/// How many bytes of a dropped name are shown.
const MAX_SHOWN: usize = 40;

/// Why a worker is admitted.
pub(super) enum Admission {
    /// A credential for lending to the whole server.
    Lender(Lender),
    /// The code and the password of a room, sent from this address.
    Room(Arc<Room>, ClientAddress),
}

/// The scope that a registered worker serves.
pub(super) enum WorkerScope {
    /// The whole server.
    Server(Lender),
    /// One room, and nothing else.
    Room(Box<RoomWorker>),
}

pub(super) struct RoomWorker {
    pub(super) member: Member,
    presence: Presence,
    /// The token that a second link of the same participant must send.
    pub(super) session_token: Secret,
}

impl Admission {
    /// The models that may be offered, and warnings about the others.
    pub(super) fn offered(&self, registered: &Normalised) -> (Vec<String>, Vec<String>) {
        match self {
            Self::Lender(_) => (registered.models.clone(), registered.warnings.clone()),
            Self::Room(..) => {
                let (models, warnings) = room_models(registered.models.clone());
                let warnings = registered.warnings.iter().cloned().chain(warnings).collect();
                (models, warnings)
            }
        }
    }

    /// Joins the worker to the room with these models. Errors are sent to the worker.
    pub(super) async fn enter(
        self,
        id: ProviderId,
        register: &Register,
        name: &str,
        models: Vec<String>,
    ) -> Result<WorkerScope, RoomError> {
        let (room, from) = match self {
            Self::Lender(lender) => return Ok(WorkerScope::Server(lender)),
            Self::Room(room, from) => (room, from),
        };
        let joining = joining(id, register, name, models);
        let (joined, member) = join(room, joining, from).await?;
        let connection = member.room().connect(member.id(), id, now_ms())?;
        let presence = Presence::new(connection);
        Ok(WorkerScope::Room(Box::new(RoomWorker {
            member,
            presence,
            session_token: joined.session,
        })))
    }
}

/// The close code for a worker that cannot join its room. The code says whether it should try
/// again.
pub(super) fn close_code(why: &RoomError) -> u16 {
    match why {
        RoomError::Moved | RoomError::Store(_) => close::CLOSING.0,
        _ => POLICY,
    }
}

/// Joins on a blocking thread, because it writes to the disk.
async fn join(
    room: Arc<Room>,
    joining: JoinRequest,
    from: ClientAddress,
) -> Result<(JoinAnswer, Member), RoomError> {
    let joins = move || {
        let joined = room.join(joining, from, now_ms())?;
        let member = Member::new(room, joined.participant.id.clone());
        Ok((joined, member))
    };
    let stopped = |_| RoomError::Invalid("the server is stopping".to_owned());
    spawn_blocking(joins).await.map_err(stopped).flatten()
}

/// A worker as a participant: by its self-description, or else by its name.
fn joining(id: ProviderId, register: &Register, name: &str, models: Vec<String>) -> JoinRequest {
    let named = |name: &str| if name.is_empty() { id.to_string() } else { name.to_owned() };
    let made_up = || WorkerParticipant { id: id.to_string(), ..WorkerParticipant::default() };
    let wanted = register.participant.as_deref().cloned().unwrap_or_else(made_up);
    let nickname = if wanted.nickname.is_empty() { named(name) } else { wanted.nickname };
    JoinRequest {
        id: wanted.id,
        nickname,
        models,
        endpoint: NOWHERE.to_owned(),
        specs: wanted.specs,
        config: wanted.config,
        capabilities: Capabilities::default(),
        kind: Kind::Worker,
        max_concurrent: register.max_concurrent.clamp(1, limits::MAX_CONCURRENT),
        session: wanted.session_token,
    }
}

impl WorkerScope {
    pub(super) fn scope(&self) -> Scope {
        match self {
            Self::Server(_) => Scope::server(),
            Self::Room(worker) => worker.member.room().scope(),
        }
    }

    pub(super) fn member(&self) -> Option<&Member> {
        match self {
            Self::Server(_) => None,
            Self::Room(worker) => Some(&worker.member),
        }
    }

    pub(super) fn in_room(&self) -> Option<&RoomWorker> {
        match self {
            Self::Server(_) => None,
            Self::Room(worker) => Some(worker),
        }
    }

    /// The lender as which it serves the whole server; `None` in a room.
    pub(super) fn lender(&self) -> Option<&Lender> {
        match self {
            Self::Server(lender) => Some(lender),
            Self::Room(_) => None,
        }
    }

    /// The names under which these models are offered.
    pub(super) fn names(&self, models: &[String]) -> Vec<ModelName> {
        match self {
            Self::Server(_) => models.iter().map(|model| ModelName::from(&**model)).collect(),
            Self::Room(worker) => worker.member.offered(models),
        }
    }

    /// Announces other models. Returns those that it may offer, and warnings about the rest.
    pub(super) fn change_models(&self, models: Vec<String>) -> (Vec<String>, Vec<String>) {
        let Self::Room(worker) = self else { return (models, Vec::new()) };
        let (models, warnings) = room_models(models);
        worker.presence.models(models.clone());
        (models, warnings)
    }
}

/// The permit of a link. It ends with the worker's own permit, or when a newer link takes its name.
pub(super) struct LinkPermit {
    pub(super) scope: Arc<WorkerScope>,
    pub(super) claim: Option<Claim<String>>,
}

impl Permit for LinkPermit {
    async fn ended(&self) -> Close {
        let replaced = async {
            match &self.claim {
                Some(claim) => claim.contested().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            close = self.scope.ended() => close,
            () = replaced => REPLACED,
        }
    }

    fn heard(&self) {
        if let WorkerScope::Room(worker) = &*self.scope {
            worker.presence.heard();
        }
    }
}

impl WorkerScope {
    async fn ended(&self) -> Close {
        match self {
            Self::Server(lender) => {
                lender.ended().await;
                (POLICY, "the key is no longer valid")
            }
            Self::Room(worker) => worker.presence.ended().await,
        }
    }
}

/// The models that a room's worker may offer, and warnings about the others.
fn room_models(models: Vec<String>) -> (Vec<String>, Vec<String>) {
    let may_be = |model: &String| model != "*" && limits::model(model).is_ok();
    let (mut valid, dropped): (Vec<_>, Vec<_>) = models.into_iter().partition(may_be);
    let mut warnings: Vec<String> = dropped.iter().map(|model| dropped_warning(model)).collect();
    warnings.truncate(limits::MAX_MODELS);
    if valid.len() > limits::MAX_MODELS {
        valid.truncate(limits::MAX_MODELS);
        warnings.push(format!("models beyond the first {} were dropped", limits::MAX_MODELS));
    }
    if valid.is_empty() {
        warnings.push("nothing is offered in the room: there is no model".to_owned());
    }
    (valid, warnings)
}

fn dropped_warning(model: &str) -> String {
    match model {
        "*" => "`*` cannot be offered in a room: name the models".to_owned(),
        other => format!("{:?} cannot be a model's name in a room", clip(other, MAX_SHOWN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn a_worker_is_sent_away_for_good_only_if_the_room_does_not_want_it() {
        let away = store::StoreError::Unavailable {
            database: "d".to_owned(),
            problem: "it is away".to_owned(),
        };
        assert_eq!(close_code(&RoomError::Moved), 1001);
        assert_eq!(close_code(&RoomError::Store(away)), 1001);
        assert_eq!(close_code(&RoomError::Conflict("p".to_owned())), 1008);
    }

    #[test]
    fn a_room_takes_no_wildcards_and_no_names_of_its_own() {
        let (valid, warnings) = room_models(texts(&["a", "*", "room:any", "b\n", "c"]));
        assert_eq!(valid, ["a", "c"]);
        assert_eq!(warnings.len(), 3);
        assert!(warnings[0].contains("name the models"));
    }

    #[test]
    fn a_room_takes_a_bounded_list_of_models_and_warns_about_an_empty_one() {
        let many: Vec<String> = (0..=limits::MAX_MODELS).map(|n| n.to_string()).collect();
        let (valid, warnings) = room_models(many);
        assert_eq!((valid.len(), warnings.len()), (limits::MAX_MODELS, 1));
        let (valid, warnings) = room_models(vec!["*".to_owned(); 1_000]);
        assert!(valid.is_empty());
        assert_eq!(warnings.len(), limits::MAX_MODELS + 1);
        assert_eq!(room_models(Vec::new()).1.len(), 1);
    }

    #[test]
    fn a_worker_without_a_description_gets_its_name_and_a_fresh_id() {
        let id = ProviderId::from_random(7);
        let register = Register { max_concurrent: 0, ..Register::default() };
        let who = joining(id, &register, "gpu", texts(&["m"]));
        assert_eq!((who.id.as_str(), who.nickname.as_str()), (&*id.to_string(), "gpu"));
        assert_eq!((who.max_concurrent, who.kind), (1, Kind::Worker));
        assert_eq!(joining(id, &register, "", Vec::new()).nickname, id.to_string());
    }
}
