//! Bodies that clients of rooms post, and answers of servers: nothing panics, errors stay short, and what
//! is read is written and read again the same. The first byte of the input says which body it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::room::{
    ClientMessage, Invalid, ServerMessage,
    event::EventEnvelope,
    plane::{ChangeRoom, CreateRoom, PutParticipant},
};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    match choice % 6 {
        0 => match ClientMessage::decode(body) {
            Ok(read) => stable(&read, |body| ClientMessage::decode(body).ok()),
            Err(bad) => {
                assert!(bad.request_id.is_none_or(|id| id.len() <= 256));
                short(&bad.invalid);
            }
        },
        1 => check(body, CreateRoom::decode),
        2 => check(body, ChangeRoom::decode),
        3 => check(body, PutParticipant::decode),
        4 => check(body, ServerMessage::decode),
        _ => check(body, EventEnvelope::decode),
    }
});

fn check<T: serde::Serialize + PartialEq>(body: &[u8], decode: fn(&[u8]) -> Result<T, Invalid>) {
    match decode(body) {
        Ok(read) => stable(&read, |body| decode(body).ok()),
        Err(invalid) => short(&invalid),
    }
}

/// Once written, it is written the same for ever. The last digit of a number may change the first
/// time.
fn stable<T: serde::Serialize>(read: &T, decode: impl Fn(&[u8]) -> Option<T>) {
    let written = serde_json::to_vec(read).unwrap();
    let again = decode(&written).expect("what is written is read");
    let third = decode(&serde_json::to_vec(&again).unwrap()).expect("and again");
    let names = |value: &T| serde_json::to_value(value).unwrap().as_object().unwrap().len();
    assert_eq!(names(&again), names(read));
    assert_eq!(names(&third), names(read));
}

fn short(invalid: &Invalid) {
    assert!(!invalid.to_string().is_empty() && invalid.to_string().len() <= 1024);
    assert!(invalid.details().as_object().is_some_and(|details| !details.is_empty()));
    assert!(invalid.details().to_string().len() < 32 * 1024);
}
