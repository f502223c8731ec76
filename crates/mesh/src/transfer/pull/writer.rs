//! The thread that checks and writes what has come.

use std::sync::Arc;

use models::{Arrival, ArrivalError};
use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
};

use super::{
    inbox::{Event, Write},
    slices::Key,
};
use crate::transfer::commons::Commons;

/// Writes until nothing more can come, or nobody wants to know.
pub(super) fn start(
    commons: Arc<Commons>,
    arrival: Arc<Arrival>,
    mut writes: mpsc::Receiver<Write>,
    events: mpsc::Sender<Event>,
) -> JoinHandle<()> {
    spawn_blocking(move || {
        while let Some(Write { from, key, bytes }) = writes.blocking_recv() {
            let result = write(&arrival, key, &bytes);
            if matches!((key, &result), (Key::Data(_), Ok(true))) {
                commons.counts.bytes_in.add(bytes.len() as u64);
            }
            if events.blocking_send(Event::Written(from, key, result)).is_err() {
                return;
            }
        }
    })
}

fn write(arrival: &Arrival, key: Key, bytes: &[u8]) -> Result<bool, ArrivalError> {
    match key {
        Key::Tree(file) if arrival.tree(file).is_some() => Ok(false),
        Key::Tree(file) => arrival.set_tree(file, bytes).map(|()| true),
        Key::Data(piece) => arrival.write(piece, bytes),
    }
}
