//! A repaired text is JSON, however the text was split, and whatever is left out of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::json::repair::{Bounds, Repair, repaired};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some((&at, text)) = data.split_first() else { return };
    let (first, rest) = text.split_at(usize::from(at).min(text.len()));
    for bounds in [Bounds::WHOLE, Bounds { total: 256, ..Bounds::WHOLE }] {
        let mut repair = Repair::new(bounds);
        repair.push(first);
        repair.push(rest);
        let split = repair.finish();
        assert_eq!(split, repaired(text, bounds));
        let Some(split) = split else { continue };
        serde_json::from_str::<Value>(&split.text).expect("what is repaired is JSON");
    }
});
