//! Turns a worker's first message into a registered worker (walkthrough 1).

use std::{sync::Arc, time::Duration};

use access::Lender;
use base::ProviderId;
use protocol::{
    json::clip,
    relay::{
        Register, RegisterAck, SPEC_VERSION, STOCK_MAX_REQUEST, STOCK_VERSION, ServerMessage,
        WorkerMessage,
    },
};
use rand::RngExt;
use scheduler::{Distance, Offer, Provider};
use tokio::time::timeout;
use tracing::Instrument;
use wire::{Frame, Link, Outbox};

use super::{
    RelayWorkers,
    codec::{MAX_WORDS, PROTOCOL_ERROR, RelayCodec},
    scope::{self, Admission, LinkPermit, WorkerScope},
    sender::{Form, Sender},
};
use crate::{link::drive, served::ServedEndpoints};

/// The time limit of a worker's registration.
const REGISTER_DEADLINE: Duration = Duration::from_secs(10);

/// The largest capacity that a worker may claim.
const MAX_CONCURRENT: u32 = 100_000;

/// How many bytes of a link's name count.
const MAX_LINK: usize = 64;

/// How many bytes of an unknown protocol version are logged.
const MAX_VERSION: usize = 64;

impl RelayWorkers {
    /// Serves a link from its registration to its end.
    pub(super) async fn serve_as(
        &self,
        admission: Admission,
        mut link: Link,
        outbox: Outbox,
        form: Form,
    ) {
        let register = match timeout(REGISTER_DEADLINE, first_message(&mut link)).await {
            Ok(Ok(register)) => register,
            Ok(Err(why)) => return refuse(link, &why).await,
            Err(_) => {
                let seconds = REGISTER_DEADLINE.as_secs();
                let why = format!("no register message within {seconds} s");
                return refuse(link, &why).await;
            }
        };
        let id = ProviderId::from_random(rand::rng().random());
        let normalised = register.normalised();
        let (models, warnings) = admission.offered(&normalised);
        let span = tracing::info_span!("worker", id = %id, worker_name = normalised.worker_name);
        let serving = async {
            let name = normalised.worker_name;
            match admission.enter(id, &register, &name, models.clone()).await {
                Ok(scope) => {
                    let scope = Arc::new(scope);
                    let worker = Worker { id, scope, register, name, models, warnings, form };
                    self.serve_worker(link, outbox, worker).await;
                }
                Err(why) => {
                    tracing::warn!(%why, "a worker cannot join its room");
                    link.close(scope::close_code(&why), &why.to_string()).await;
                }
            }
        };
        serving.instrument(span).await;
    }

    async fn serve_worker(&self, link: Link, outbox: Outbox, worker: Worker) {
        let served = ServedEndpoints::new(worker.form.carried(worker.register.endpoints));
        let offer = offer(&worker, &served);
        let member = worker.scope.member().cloned();
        let name = worker.name.clone();
        let loads = loads_models(&worker);
        let sender = Arc::new(Sender::new(name, worker.form, member, loads, outbox));
        // The acknowledgement comes before the join: a job may be sent as soon as the worker joins.
        sender.send(&ServerMessage::RegisterAck(ack(&worker)));
        log(&worker, offer.max_concurrent);
        let provider: Arc<dyn Provider> = Arc::<Sender>::clone(&sender);
        let membership = self.scheduler.join(worker.id, offer, provider);
        let scope = worker.scope;
        let codec = RelayCodec::new(
            membership,
            Arc::clone(&sender),
            served,
            Arc::clone(&scope),
            self.settings.heartbeat,
        );
        let name = worker.register.link.filter(|_| worker.form.is_binary());
        let claim = name.map(|name| self.names.take_over(clip(&name, MAX_LINK).to_owned()));
        drive(link, codec, &sender.notes, LinkPermit { scope, claim }).await;
    }
}

/// A registered worker. Its name and models are cleaned and bounded: only these are logged.
struct Worker {
    id: ProviderId,
    scope: Arc<WorkerScope>,
    register: Register,
    name: String,
    models: Vec<String>,
    warnings: Vec<String>,
    form: Form,
}

async fn first_message(link: &mut Link) -> Result<Register, String> {
    let frame = link.next().await.map_err(|error| error.to_string())?;
    let Some(Frame::Text(text)) = frame else {
        return Err("the first frame is no text message".to_owned());
    };
    let register = match WorkerMessage::decode(text.as_str()) {
        Ok(WorkerMessage::Register(register)) => register,
        Ok(_) => return Err("the first message is no register message".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    match register.protocol_version.as_deref() {
        None | Some(SPEC_VERSION | STOCK_VERSION) => Ok(register),
        Some(other) => {
            Err(format!("protocol version {:?} is not spoken here", clip(other, MAX_VERSION)))
        }
    }
}

async fn refuse(link: Link, why: &str) {
    tracing::warn!(why, "a worker was turned away: worker registration protocol error");
    link.close(PROTOCOL_ERROR, "worker registration protocol error").await;
}

fn ack(worker: &Worker) -> RegisterAck {
    let in_room = worker.scope.in_room();
    RegisterAck {
        worker_id: worker.id.to_string(),
        models: worker.models.clone(),
        warnings: worker.warnings.clone(),
        protocol_version: worker.register.protocol_version.clone(),
        room: in_room.map(|worker| worker.member.room().short_code().to_owned()),
        participant_id: in_room.map(|worker| worker.member.id().to_owned()),
        session_token: in_room.map(|worker| worker.session_token.expose().to_owned()),
        acknowledge: acknowledges(worker),
    }
}

/// Whether the worker acknowledges jobs.
fn acknowledges(worker: &Worker) -> bool {
    worker.register.acknowledges && worker.form.is_binary()
}

/// Whether the worker may be told to load and unload models. One that lends to a room may not: the
/// machine belongs to a guest.
fn loads_models(worker: &Worker) -> bool {
    let is_own = worker.scope.in_room().is_none();
    worker.register.loads_models && worker.form.is_binary() && is_own
}

fn log(worker: &Worker, max_concurrent: u32) {
    for warning in &worker.warnings {
        tracing::warn!(warning, "registration");
    }
    let (models, form) = (worker.models.join(", "), worker.form);
    let models = clip(&models, MAX_WORDS);
    let key = worker.scope.lender().and_then(Lender::key);
    let key = key.map(|key| tracing::field::display(key.id()));
    let room = worker.scope.member().map(|member| tracing::field::display(member.room().id()));
    tracing::info!(models, max_concurrent, ?form, key, room, "worker connected");
}

fn offer(worker: &Worker, served: &ServedEndpoints) -> Offer {
    Offer {
        scope: worker.scope.scope(),
        models: worker.scope.names(&worker.models),
        unloaded: Vec::new(),
        max_concurrent: worker.register.max_concurrent.clamp(1, MAX_CONCURRENT),
        load: worker.register.current_load,
        max_size: match worker.form {
            Form::Plain => STOCK_MAX_REQUEST,
            Form::Binary(_) => u64::MAX,
        },
        endpoints: served.endpoints(),
        distance: if worker.register.cloud { Distance::Cloud } else { Distance::Here },
        lingers: false,
        acknowledges: acknowledges(worker),
        borrowed: false,
    }
}
