//! Measures how long an event takes to reach the watchers of a room: `cargo run --release -p rooms
//! --example fanout`. It uses no sockets, so it measures the rooms alone.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a measurement fails by panicking, and tells its times"
)]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Waker},
    time::{Duration, Instant},
};

use protocol::room::{
    Protocol, RoomEvent, ServerMessage, event::LlmDone, message::LlmComplete, types::AnswerMetrics,
};
use rooms::{
    Form, Next, Subscription,
    events::{Announcement, Bounds, EncodedEvent, Log},
};
use tokio::task::JoinSet;

const NOW: u64 = 1_795_171_198_228;
/// Events of each scenario.
const EVENTS: usize = 100;
/// The pause between two events; all watchers must have received the event by then.
const PAUSE: Duration = Duration::from_millis(100);

/// The end of a job: one of the larger events, in all forms.
fn event() -> EncodedEvent {
    let (request_id, participant_id) = ("r-0123456789abcdef".to_owned(), "worker-1".to_owned());
    let metrics = AnswerMetrics::new(22, 1200, Some(300), Some(120));
    let message = LlmComplete {
        request_id: request_id.clone(),
        participant_id: participant_id.clone(),
        metrics: metrics.as_spec(),
    };
    let event = LlmDone {
        request_id,
        participant_id,
        model: "llama3.2:3b".to_owned(),
        protocol: Protocol::ChatCompletions,
        metrics,
    };
    Announcement::both(RoomEvent::LlmComplete(event), ServerMessage::LlmComplete(message))
        .encode(NOW, "NZZ6LS")
}

/// A room: its log, and when its last event was appended, in nanoseconds since the beginning.
#[derive(Clone)]
struct Room {
    log: Arc<Log>,
    told_at: Arc<AtomicU64>,
}

impl Room {
    fn new() -> Self {
        Self { log: Log::new(Bounds::ROOM, NOW), told_at: Arc::default() }
    }

    /// Appends an event. Returns how long that took.
    fn tell(&self, begun: Instant) -> Duration {
        let now = begun.elapsed();
        self.told_at.store(now.as_nanos() as u64, Ordering::SeqCst);
        self.log.append(&event());
        begun.elapsed() - now
    }
}

/// Reads until the room is closed. Returns when each event came, in nanoseconds since the
/// beginning.
async fn watch(mut watcher: Subscription, room: Room, begun: Instant) -> Vec<u64> {
    let mut waited = Vec::with_capacity(EVENTS);
    while let Next::Frames(frames) = watcher.next().await {
        let told_at = room.told_at.load(Ordering::SeqCst);
        waited.push((begun.elapsed().as_nanos() as u64).saturating_sub(told_at));
        assert!(!frames.is_empty());
    }
    waited
}

fn percentile(sorted: &[u64], percent: usize) -> f64 {
    let index = (sorted.len() * percent / 100).min(sorted.len() - 1);
    sorted[index] as f64 / 1e6
}

fn report(name: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let [p50, p99, max] = [50, 99, 100].map(|percent| percentile(&times, percent));
    let count = times.len();
    eprintln!("{name}: p50 {p50:.3} ms, p99 {p99:.3} ms, max {max:.3} ms ({count} times)");
}

/// `rooms` rooms with `watchers` each; `stuck` of these never read. One event at a time in each room.
async fn fan_out(rooms: usize, watchers: usize, stuck: usize) {
    let begun = Instant::now();
    let rooms = (0..rooms).map(|_| Room::new()).collect::<Vec<_>>();
    let mut reading = JoinSet::new();
    let mut kept = Vec::new();
    for room in &rooms {
        for number in 0..watchers {
            let form = [Form::Messages, Form::Named, Form::NamedWithIds][number % 3];
            let watcher = room.log.subscribe(form, None);
            reading.spawn(watch(watcher, room.clone(), begun));
        }
        kept.extend((0..stuck).map(|_| room.log.subscribe(Form::Named, None)));
    }
    tokio::time::sleep(PAUSE).await;
    let mut telling = Vec::new();
    for _ in 0..EVENTS {
        telling.extend(rooms.iter().map(|room| room.tell(begun).as_nanos() as u64));
        tokio::time::sleep(PAUSE).await;
    }
    rooms.iter().for_each(|room| room.log.close());
    let waited = reading.join_all().await.into_iter().flatten().collect();
    let name = format!("{} rooms × {watchers} watchers, {stuck} stuck", rooms.len());
    report(&format!("{name}: an event arrives"), waited);
    report(&format!("{name}: telling it takes"), telling);
}

/// Sends as many events as a room keeps at once to many watchers.
async fn burst(watchers: usize) {
    let begun = Instant::now();
    let room = Room::new();
    let mut reading = JoinSet::new();
    for _ in 0..watchers {
        let watcher = room.log.subscribe(Form::NamedWithIds, None);
        reading.spawn(watch(watcher, room.clone(), begun));
    }
    tokio::time::sleep(PAUSE).await;
    let from = begun.elapsed();
    (0..Bounds::ROOM.events).for_each(|_| room.log.append(&event()));
    room.log.close();
    let reads = reading.join_all().await.into_iter().map(|waited| waited.len()).sum::<usize>();
    let took = (begun.elapsed() - from).as_secs_f64() * 1e3;
    let events = Bounds::ROOM.events;
    eprintln!("{events} events at once to {watchers} watchers: {took:.1} ms, {reads} reads");
}

/// Memory in use, in KiB.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(f64::NAN)
}

/// Measures the memory of a waiting watcher, without its task, and of a room whose log is full.
fn memory() {
    let before = resident();
    let room = Room::new();
    let mut watchers =
        (0..100_000).map(|_| room.log.subscribe(Form::Named, None)).collect::<Vec<_>>();
    for watcher in &mut watchers {
        assert!(watcher.poll_next(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    eprintln!("a watcher: {:.0} bytes", (resident() - before) * 1024.0 / watchers.len() as f64);
    let before = resident();
    let rooms = (0..100).map(|_| Room::new()).collect::<Vec<_>>();
    let all = rooms.iter().flat_map(|room| std::iter::repeat_n(room, Bounds::ROOM.events));
    all.for_each(|room| room.log.append(&event()));
    eprintln!("a full log: {:.0} KiB", (resident() - before) / rooms.len() as f64);
}

fn main() {
    for threads in [1, 2] {
        eprintln!("{threads} threads:");
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(threads).enable_time().build().unwrap();
        // `block_on` runs on this thread, which is not one of the runtime's threads; a task is.
        let all = runtime.spawn(async {
            fan_out(1, 5000, 0).await;
            fan_out(1, 5000, 5000).await;
            fan_out(500, 10, 0).await;
            burst(5000).await;
        });
        runtime.block_on(all).unwrap();
    }
    memory();
}
