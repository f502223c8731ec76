//! The life of one link: registration, heartbeat, end (walkthroughs 1, 5 and 8).

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use access::Lender;
use base::ProviderId;
use protocol::{
    json::clip,
    relay::{
        Ping, Register, RegisterAck, SPEC_VERSION, STOCK_MAX_REQUEST, STOCK_VERSION, ServerMessage,
        WorkerMessage,
    },
};
use rand::RngExt;
use scheduler::{Distance, Gone, Offer, Provider, Scheduler};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::Instrument;
use wire::{Frame, Link, Outbox};

use super::{
    Settings,
    place::{Admission, Place},
    sender::{Form, Sender},
    session::{MAX_WORDS, Next, Session},
};
use crate::served::Served;

/// How long a worker may take to register.
const REGISTER_DEADLINE: Duration = Duration::from_secs(10);

/// Silent heartbeat intervals after which a worker is lost.
const SILENT_INTERVALS: u32 = 3;

/// The largest capacity that a worker may claim.
const MAX_CONCURRENT: u32 = 100_000;

/// An unknown protocol version is logged up to so many bytes.
const MAX_VERSION: usize = 64;

/// Closed in order.
const NORMAL: u16 = 1000;
/// Closed because the worker may not join.
const POLICY: u16 = 1008;
/// Closed because the worker broke the protocol.
const PROTOCOL_ERROR: u16 = 1002;

/// Why a link ends, and what its close says.
type End = (Gone, u16, &'static str);

/// Runs a link from its registration to its end.
pub(super) async fn run(
    settings: &Settings,
    scheduler: &Scheduler,
    admission: Admission,
    mut link: Link,
    outbox: Outbox,
    form: Form,
) {
    let register = match timeout(REGISTER_DEADLINE, first_message(&mut link)).await {
        Ok(Ok(register)) => register,
        Ok(Err(why)) => return refuse(link, &why).await,
        Err(_) => return refuse(link, "no register message within 10 s").await,
    };
    let id = ProviderId::from_random(rand::rng().random());
    let normalised = register.normalised();
    let (models, warnings) = admission.offered(&normalised);
    let span = tracing::info_span!("worker", id = %id, worker_name = normalised.worker_name);
    let serving = async {
        let name = normalised.worker_name;
        match admission.place(id, &register, &name, models.clone()).await {
            Ok(place) => {
                let worker = Worker { id, place, register, name, models, warnings, form };
                serve(settings, scheduler, link, outbox, worker).await;
            }
            Err(why) => {
                tracing::warn!(%why, "a worker cannot join its room");
                link.close(POLICY, &why.to_string()).await;
            }
        }
    };
    serving.instrument(span).await;
}

/// Who has registered. Its name and models are cleaned and bounded: only these are kept and logged.
struct Worker {
    id: ProviderId,
    place: Place,
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

async fn serve(
    settings: &Settings,
    scheduler: &Scheduler,
    link: Link,
    outbox: Outbox,
    worker: Worker,
) {
    let served = Served::new(worker.register.endpoints);
    let offer = offer(&worker, served);
    let sender = Sender::new(worker.name.clone(), worker.form, outbox);
    let sender = Arc::new(sender.in_room(worker.place.member().cloned()));
    sender.say(&ServerMessage::RegisterAck(ack(&worker)));
    tell(&worker, offer.max_concurrent);
    let provider: Arc<dyn Provider> = Arc::<Sender>::clone(&sender);
    let membership = scheduler.join(worker.id, offer, provider);
    let place = Arc::new(worker.place);
    let mut session = Session::new(membership, Arc::clone(&sender), served, Arc::clone(&place));
    let mut link = link;
    let (why, code, reason) = heartbeat(settings, &place, &mut link, &mut session, &sender).await;
    tracing::info!(reason, close = ?link.close_reason(), "worker disconnected");
    // Its jobs and its room first: they should not wait for a goodbye.
    session.leave(why);
    drop(place);
    link.close(code, reason).await;
}

fn ack(worker: &Worker) -> RegisterAck {
    let here = worker.place.in_room();
    RegisterAck {
        worker_id: worker.id.to_string(),
        models: worker.models.clone(),
        warnings: worker.warnings.clone(),
        protocol_version: worker.register.protocol_version.clone(),
        room: here.map(|here| here.member.room().short_code().to_owned()),
        participant_id: here.map(|here| here.member.id().to_owned()),
        session_token: here.map(|here| here.session.expose().to_owned()),
    }
}

fn tell(worker: &Worker, max_concurrent: u32) {
    for warning in &worker.warnings {
        tracing::warn!(warning, "registration");
    }
    let (models, form) = (worker.models.join(", "), worker.form);
    let models = clip(&models, MAX_WORDS);
    let key = worker.place.lender().and_then(Lender::key);
    let key = key.map(|key| tracing::field::display(key.id()));
    let room = worker.place.member().map(|member| tracing::field::display(member.room().id()));
    tracing::info!(models, max_concurrent, ?form, key, room, "worker connected");
}

fn offer(worker: &Worker, served: Served) -> Offer {
    Offer {
        scope: worker.place.scope(),
        models: worker.place.names(&worker.models),
        max_concurrent: worker.register.max_concurrent.clamp(1, MAX_CONCURRENT),
        load: worker.register.current_load,
        max_size: match worker.form {
            Form::Plain => STOCK_MAX_REQUEST,
            Form::Binary => u64::MAX,
        },
        endpoints: served.endpoints(),
        distance: Distance::Here,
        lingers: false,
    }
}

async fn heartbeat(
    settings: &Settings,
    place: &Place,
    link: &mut Link,
    session: &mut Session,
    sender: &Sender,
) -> End {
    let mut ended = pin!(place.ended());
    let mut ticks = interval(settings.heartbeat);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    loop {
        tokio::select! {
            biased;
            (code, reason) = &mut ended => return (Gone::Closed, code, reason),
            frame = link.next() => {
                if let Next::Retire(clean) = session.catch_up() {
                    return retired(clean);
                }
                match frame {
                    Ok(Some(frame)) => {
                        place.heard();
                        session.frame(frame);
                    }
                    Ok(None) => return (Gone::Closed, NORMAL, "goodbye"),
                    Err(error) => {
                        tracing::warn!(%error, "the worker's link broke");
                        return (Gone::Closed, PROTOCOL_ERROR, "link error");
                    }
                }
            }
            () = sender.wake.notified() => {
                if let Next::Retire(clean) = session.catch_up() {
                    return retired(clean);
                }
            }
            _ = ticks.tick() => {
                if link.heard().elapsed() >= settings.heartbeat * SILENT_INTERVALS {
                    return (Gone::HeartbeatLost, NORMAL, "worker heartbeat timed out");
                }
                sender.say(&ServerMessage::Ping(Ping { timestamp_unix_ms: Some(unix_ms()) }));
            }
        }
    }
}

fn retired(clean: bool) -> End {
    let reason = if clean { "graceful shutdown complete" } else { "graceful shutdown timed out" };
    (Gone::Drained, NORMAL, reason)
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
