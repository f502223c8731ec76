//! Messages from a worker: what is read is written and read again the same, errors stay short,
//! and a cleaned registration is clean.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::relay::{Register, WorkerMessage, normalise_models};

fuzz_target!(|text: &str| {
    match WorkerMessage::decode(text) {
        Ok(message) => {
            assert_eq!(WorkerMessage::decode(&message.encode()), Ok(message.clone()));
            if let WorkerMessage::Register(register) = message {
                is_clean(&register);
            }
        }
        Err(error) => {
            assert!(error.kind.as_ref().is_none_or(|kind| kind.len() <= 64));
            assert!(error.request_id.as_ref().is_none_or(|id| id.len() <= 256));
            assert!(error.to_string().len() < 300);
        }
    }
});

fn is_clean(register: &Register) {
    let taken = register.normalised();
    assert!(taken.worker_name.chars().count() <= 128);
    assert!(taken.models.iter().all(|name| (1..=256).contains(&name.len())));
    assert_eq!(normalise_models(&taken.models), (taken.models, vec![]));
}
