//! How fast records are sealed and opened, on one core: `cargo run --release -p seal --example speed`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement is shown, and may stop at the first surprise"
)]

use std::time::{Duration, Instant};

use seal::{Identity, Initiator, MAX_RECORD, Responder, Sealed};

/// A piece of a model with its head.
const PAYLOAD: usize = 1024 * 1024 + 64;

fn main() {
    ordered();
    counted();
}

fn link() -> (Sealed, Sealed) {
    let (one, other) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let mut initiator = Initiator::new(&one, &other.node_id(), None, b"").unwrap();
    let mut responder = Responder::new(&other, None, b"").unwrap();
    responder.read(&initiator.write(b"").unwrap(), &one.node_id()).unwrap();
    let (answer, sealed) = responder.finish(b"").unwrap();
    (initiator.finish(&answer).unwrap().0, sealed)
}

/// The best of many: other work on the machine only ever makes it slower.
fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let rate = |time: Duration| PAYLOAD as f64 / time.as_secs_f64() / 1e9;
    println!("{what}: {:.2} GB/s, median {:.2}", rate(times[0]), rate(times[times.len() / 2]));
}

fn ordered() {
    let (one, other) = link();
    let (mut sealer, mut opener) = (one.split().0, other.split().1);
    let (payload, mut stream) = (vec![7; PAYLOAD], Vec::new());
    let (mut sealing, mut opening) = (Vec::new(), Vec::new());
    for _ in 0..1000 {
        let start = Instant::now();
        stream.clear();
        sealer.payload(&payload, &mut stream).unwrap();
        sealing.push(start.elapsed());
        let start = Instant::now();
        let records = stream.chunks(4 + MAX_RECORD);
        let opened = records.filter_map(|record| opener.record(&record[4..]).unwrap()).next();
        opening.push(start.elapsed());
        assert_eq!(opened.unwrap().len(), PAYLOAD);
    }
    report("seal, ordered", sealing);
    report("open, ordered", opening);
}

fn counted() {
    let (one, other) = link();
    let (mut sealer, mut opener) = (one.split().0, other.split().1);
    let payload = vec![7; PAYLOAD];
    let (mut sealing, mut opening) = (Vec::new(), Vec::new());
    for _ in 0..1000 {
        let start = Instant::now();
        let records = sealer.counted_pieces(&payload).unwrap();
        sealing.push(start.elapsed());
        let start = Instant::now();
        let opened = records.iter().filter_map(|record| opener.counted(record).unwrap()).next();
        opening.push(start.elapsed());
        assert_eq!(opened.unwrap().len(), PAYLOAD);
    }
    report("seal, counted", sealing);
    report("open, counted", opening);
}
