//! Requests of every shape for providers of every other: carried or refused, and what is carried is
//! JSON with the model of the client. The first byte of the input says which pair.
#![no_main]

use base::Endpoint;
use libfuzzer_sys::fuzz_target;
use protocol::translate::{Context, request, served_as};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    let pairs: Vec<_> = pairs().collect();
    let (from, to) = pairs[usize::from(choice) % pairs.len()];
    let context =
        Context { id: "0".repeat(32), created: 1, model: "m".to_owned(), streaming: choice > 127 };
    match request(from, to, body, &context) {
        Ok(written) => {
            let written: Value = serde_json::from_slice(&written).unwrap();
            let asked: Value = serde_json::from_slice(body).unwrap();
            assert_eq!(written["model"], asked["model"]);
        }
        Err(refused) => assert!(!refused.message.is_empty()),
    }
});

fn pairs() -> impl Iterator<Item = (Endpoint, Endpoint)> {
    let to = |from| served_as(from).iter().map(move |to| (from, to));
    Endpoint::ALL.into_iter().flat_map(to).filter(|(from, to)| from != to)
}
