//! Messages between nodes and a relay: nothing panics, errors are short and can be read
//! by the node, and what goes on to another node is read there as the same message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::mesh::relay::{Facts, Fault, Forward, FromRelay, RelayNodeId, ToRelay};

fuzz_target!(|text: &str| {
    match ToRelay::read(text) {
        Ok(ToRelay::Forward(forward)) => passed(text, &forward),
        Ok(ToRelay::Register(register)) => {
            let written = register.encode();
            let Ok(ToRelay::Register(again)) = ToRelay::read(&written) else {
                panic!("what is written is read: {written}");
            };
            assert_eq!(again.encode(), written);
        }
        Ok(ToRelay::Discover { .. }) => {}
        Err(fault) => told(&fault),
    }
    if let Ok(FromRelay::Forward(forward)) = FromRelay::read(text) {
        passed(text, &forward);
    }
    if let Ok(raw) = serde_json::from_str(text) {
        assert!(Facts::read(raw).tier <= 4);
    }
});

fn passed(text: &str, forward: &Forward<'_>) {
    let goes_on = if forward.is_verbatim() { text.to_owned() } else { forward.encode() };
    let Ok(FromRelay::Forward(again)) = FromRelay::read(&goes_on) else {
        panic!("what goes on is read: {goes_on}");
    };
    let is = |forward: &Forward<'_>| {
        let ends = [&forward.from, &forward.to, &forward.session].map(|text| text.to_string());
        (forward.kind, ends, forward.data())
    };
    assert_eq!(is(&again), is(forward));
    assert!(RelayNodeId::new(&forward.from).is_ok() && RelayNodeId::new(&forward.to).is_ok());
}

fn told(fault: &Fault) {
    let reply = fault.reply().encode();
    assert!(reply.len() < 1024);
    assert!(matches!(FromRelay::read(&reply), Ok(FromRelay::Error(_))), "{reply}");
}
