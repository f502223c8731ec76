//! The messages of a handshake: garbage is refused, a message that was changed anywhere does not
//! open, and one that was not does. Also ids that are no keys, and signatures.
#![no_main]

use base::NodeId;
use libfuzzer_sys::fuzz_target;
use seal::{Identity, Initiator, Responder, SealError, verify_hex};

fuzz_target!(|data: &[u8]| {
    let (one, other) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    garbage(data, &one, &other);
    changed(data, &one, &other);
    if let Some((id, rest)) = data.split_first_chunk::<32>() {
        any_id(&NodeId::new(*id), rest, &one);
    }
});

fn garbage(data: &[u8], one: &Identity, other: &Identity) {
    let mut responder = Responder::new(other, None, b"").unwrap();
    assert!(responder.read(data, &one.node_id()).is_err());
    assert!(responder.finish(b"").is_err());
    let mut initiator = Initiator::new(one, &other.node_id(), None, b"").unwrap();
    initiator.write(b"").unwrap();
    assert!(initiator.finish(data).is_err());
}

/// The input is a payload whose first three bytes say where and how its message is changed.
fn changed(data: &[u8], one: &Identity, other: &Identity) {
    let [high, low, with, payload @ ..] = data else { return };
    let at = usize::from(u16::from_be_bytes([*high, *low]));
    let mut initiator = Initiator::new(one, &other.node_id(), None, b"").unwrap();
    let mut responder = Responder::new(other, None, b"").unwrap();
    let Ok(mut first) = initiator.write(payload) else { return };
    let at = at % first.len();
    first[at] ^= with;
    match responder.read(&first, &one.node_id()) {
        Ok(read) => assert!(*with == 0 && read == payload),
        Err(_) => assert!(*with != 0),
    }
}

/// An id is refused, or a handshake with it can begin; nobody is them who has another key.
fn any_id(id: &NodeId, rest: &[u8], one: &Identity) {
    let begun = Initiator::new(one, id, None, b"");
    assert!(matches!(begun, Ok(_) | Err(SealError::NotAKey(_))));
    let mut initiator = Initiator::new(one, &one.node_id(), None, b"").unwrap();
    let first = initiator.write(rest).unwrap_or_default();
    let mut responder = Responder::new(one, None, b"").unwrap();
    let is_them = !first.is_empty() && unsigned(id) == unsigned(&one.node_id());
    assert_eq!(responder.read(&first, id).is_ok(), is_them);
    let text = String::from_utf8_lossy(rest);
    assert!(!verify_hex(id, "nobody signed this", &text));
}

/// The two ids that share a key: without prologues that name them they are one.
fn unsigned(id: &NodeId) -> [u8; 32] {
    let mut bytes = *id.as_bytes();
    bytes[31] &= 0x7f;
    bytes
}
