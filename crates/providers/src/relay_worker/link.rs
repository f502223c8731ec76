//! The life of one link: registration, heartbeat, end (walkthroughs 1, 5 and 8).

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use access::Lender;
use base::{ModelName, ProviderId, Scope};
use protocol::{
    json::clip,
    relay::{
        Normalised, Ping, Register, RegisterAck, SPEC_VERSION, STOCK_MAX_REQUEST, STOCK_VERSION,
        ServerMessage, WorkerMessage,
    },
};
use rand::RngExt;
use scheduler::{Gone, Offer, Provider, Scheduler};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::Instrument;
use wire::{Frame, Link, Outbox};

use super::{
    Settings,
    sender::{Form, Sender},
    served::Served,
    session::{MAX_WORDS, Next, Session},
};

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
/// Closed because the worker may no longer lend.
const POLICY: u16 = 1008;
/// Closed because the worker broke the protocol.
const PROTOCOL_ERROR: u16 = 1002;

/// Runs a link from its registration to its end.
pub(super) async fn run(
    settings: &Settings,
    scheduler: &Scheduler,
    lender: Lender,
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
    let span = tracing::info_span!("worker", id = %id, name = normalised.worker_name);
    let worker = Worker { id, lender, register, normalised, form };
    serve(settings, scheduler, link, outbox, worker).instrument(span).await;
}

/// Who has registered.
struct Worker {
    id: ProviderId,
    lender: Lender,
    register: Register,
    /// The same, cleaned and bounded: only this is kept and logged.
    normalised: Normalised,
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
    let Worker { id, lender, register, normalised, form } = worker;
    let served = Served::new(register.endpoints);
    let offer = offer(&register, &normalised.models, form, served);
    let max_concurrent = offer.max_concurrent;
    let sender = Arc::new(Sender::new(normalised.worker_name.clone(), form, outbox));
    sender.say(&ServerMessage::RegisterAck(RegisterAck {
        worker_id: id.to_string(),
        models: normalised.models.clone(),
        warnings: normalised.warnings.clone(),
        protocol_version: register.protocol_version.clone(),
        ..RegisterAck::default()
    }));
    for warning in &normalised.warnings {
        tracing::warn!(warning, "registration");
    }
    let models = normalised.models.join(", ");
    let models = clip(&models, MAX_WORDS);
    let key = lender.key().map(|key| tracing::field::display(key.id()));
    tracing::info!(models, max_concurrent, ?form, key, "worker connected");
    let provider: Arc<dyn Provider> = Arc::<Sender>::clone(&sender);
    let membership = scheduler.join(id, offer, provider);
    let session = Session::new(membership, Arc::clone(&sender), served);
    heartbeat(settings, &lender, link, session, &sender).await;
}

fn offer(register: &Register, models: &[String], form: Form, served: Served) -> Offer {
    Offer {
        scope: Scope::server(),
        models: models.iter().map(|model| ModelName::from(&**model)).collect(),
        max_concurrent: register.max_concurrent.clamp(1, MAX_CONCURRENT),
        load: register.current_load,
        max_size: match form {
            Form::Plain => STOCK_MAX_REQUEST,
            Form::Binary => u64::MAX,
        },
        endpoints: served.endpoints(),
    }
}

async fn heartbeat(
    settings: &Settings,
    lender: &Lender,
    mut link: Link,
    mut session: Session,
    sender: &Sender,
) {
    let mut ended = pin!(lender.ended());
    let mut ticks = interval(settings.heartbeat);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    let (why, code, reason) = loop {
        tokio::select! {
            biased;
            () = &mut ended => break (Gone::Closed, POLICY, "the key is no longer valid"),
            frame = link.next() => {
                if let Next::Retire(clean) = session.catch_up() {
                    break retired(clean);
                }
                match frame {
                    Ok(Some(frame)) => session.frame(frame),
                    Ok(None) => break (Gone::Closed, NORMAL, "goodbye"),
                    Err(error) => {
                        tracing::warn!(%error, "the worker's link broke");
                        break (Gone::Closed, PROTOCOL_ERROR, "link error");
                    }
                }
            }
            () = sender.wake.notified() => {
                if let Next::Retire(clean) = session.catch_up() {
                    break retired(clean);
                }
            }
            _ = ticks.tick() => {
                if link.heard().elapsed() >= settings.heartbeat * SILENT_INTERVALS {
                    break (Gone::HeartbeatLost, NORMAL, "worker heartbeat timed out");
                }
                sender.say(&ServerMessage::Ping(Ping { timestamp_unix_ms: Some(unix_ms()) }));
            }
        }
    };
    tracing::info!(reason, close = ?link.close_reason(), "worker disconnected");
    // Its jobs first: they should not wait for a goodbye.
    session.leave(why);
    link.close(code, reason).await;
}

fn retired(clean: bool) -> (Gone, u16, &'static str) {
    let reason = if clean { "graceful shutdown complete" } else { "graceful shutdown timed out" };
    (Gone::Drained, NORMAL, reason)
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
