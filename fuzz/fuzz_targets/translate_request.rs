//! Requests of every shape for providers of every other: carried or refused, and what is carried is
//! JSON with the model of the client. The first byte of the input says which pair.
#![no_main]

use base::Endpoint;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, value::RawValue};
use translate::{Context, request, served_as};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    // The peek, which comes first, lets nothing else pass.
    let Ok(text) = str::from_utf8(body) else { return };
    let pairs: Vec<_> = pairs().collect();
    let (from, to) = pairs[usize::from(choice) % pairs.len()];
    let context =
        Context { id: "0".repeat(32), created: 1, model: "m".to_owned(), streaming: choice > 127 };
    match request(from, to, body, &context) {
        Ok(written) => {
            let written = str::from_utf8(&written).unwrap();
            assert_eq!(model(written), model(text));
        }
        Err(refused) => assert!(!refused.message.is_empty()),
    }
});

/// The model of a body. What is passed on as it stands need not be read: numbers may be endless and
/// lists deep.
fn model(body: &str) -> Value {
    let fields: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(body).unwrap();
    serde_json::from_str(fields["model"].get()).unwrap()
}

fn pairs() -> impl Iterator<Item = (Endpoint, Endpoint)> {
    let to = |from| served_as(from).iter().map(move |to| (from, to));
    Endpoint::ALL.into_iter().flat_map(to).filter(|(from, to)| from != to)
}
