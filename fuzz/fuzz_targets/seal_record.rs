//! Records of a sealed link whose way is hostile: what arrives is what was sent, in order, or
//! nothing. The input says what is sent and what is done to it: each step is a byte that chooses and
//! a byte that says how.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seal::{Identity, Initiator, Opener, Responder, Sealer};

fuzz_target!(|data: &[u8]| {
    assert!(link().1.record(data).is_err());
    assert!(link().1.counted(data).is_err());
    ordered(data);
    counted(data);
});

fn ordered(steps: &[u8]) {
    let (mut sealer, mut opener) = link();
    let (mut sent, mut sound) = (Vec::new(), true);
    for (number, step) in (0_u8..).zip(steps.chunks_exact(2)) {
        let payload = payload(number, step[1]);
        let mut stream = Vec::new();
        sealer.payload(&payload, &mut stream).unwrap();
        sent.push(payload);
        while let Some((head, rest)) = stream.split_first_chunk() {
            let (record, rest) = rest.split_at(u32::from_be_bytes(*head) as usize);
            let (mut record, rest) = (record.to_vec(), rest.to_vec());
            stream = rest;
            let harmed = harm(step, &mut record);
            sound &= !harmed;
            match opener.record(&record) {
                Ok(Some(opened)) => {
                    assert!(sound && Some(&opened[..]) == sent.last().map(Vec::as_slice))
                }
                Ok(None) => assert!(sound),
                Err(_) => assert!(!sound),
            }
        }
    }
}

fn counted(steps: &[u8]) {
    let (mut sealer, mut opener) = link();
    let (mut sent, mut seen) = (Vec::new(), Vec::new());
    let mut next = 0;
    for (number, step) in (0_u8..).zip(steps.chunks_exact(2)) {
        let payload = payload(number, step[1]);
        let records = sealer.counted_pieces(&payload).unwrap();
        sent.push(payload);
        for record in records {
            let mut arrives = record.clone();
            match step[0] % 8 {
                5 => continue,
                6 if !seen.is_empty() => {
                    let old: &Vec<u8> = &seen[usize::from(step[1]) % seen.len()];
                    assert!(opener.counted(old).is_err());
                }
                _ if harm(step, &mut arrives) => assert!(opener.counted(&arrives).is_err()),
                _ => {}
            }
            if let Ok(Some(opened)) = opener.counted(&record) {
                let place = sent[next..].iter().position(|it| *it == opened[..]);
                next += place.expect("what arrives was sent, once, in this order") + 1;
            }
            seen.push(record);
        }
    }
    let last = sealer.counted(b"afterwards").unwrap();
    assert_eq!(opener.counted(&last).unwrap().unwrap(), "afterwards");
}

/// One of its kind, around the lengths at which payloads are cut.
fn payload(number: u8, length: u8) -> Vec<u8> {
    let length = match length {
        0..250 => usize::from(length),
        250..253 => 61_190 + usize::from(length),
        _ => 65_263 + usize::from(length),
    };
    let mut payload = vec![length as u8; length];
    payload.insert(0, number);
    payload
}

/// Whether the record was changed.
fn harm(step: &[u8], record: &mut Vec<u8>) -> bool {
    let at = usize::from(step[1]) % record.len();
    match step[0] % 8 {
        1 => record[at] ^= 1 << (step[0] >> 5),
        2 => record.truncate(at),
        3 => record.push(step[1]),
        4 => record.insert(at, step[0]),
        _ => return false,
    }
    true
}

fn link() -> (Sealer, Opener) {
    let (one, other) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let mut initiator = Initiator::new(&one, &other.node_id(), None, b"").unwrap();
    let mut responder = Responder::new(&other, None, b"").unwrap();
    responder.read(&initiator.write(b"").unwrap(), &one.node_id()).unwrap();
    let (answer, sealed) = responder.finish(b"").unwrap();
    (initiator.finish(&answer).unwrap().0.split().0, sealed.split().1)
}
