//! Whatever is mended is JSON, and good JSON stays what it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::json::{JsonReader, mended};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let strict = serde_json::from_slice::<Value>(data).ok();
    let Some(text) = mended(data) else { return };
    let read: Value = serde_json::from_str(&text).expect("what is mended is JSON");
    // The last digit of a long fraction may change each time it is read and written.
    let again = strict.map(|value| serde_json::from_str::<Value>(&value.to_string()));
    assert!(again.is_none_or(|value| value.is_ok_and(|value| value == read)));
    let mut reader = JsonReader::default();
    for _ in 0..3 {
        reader.chunk::<Value>(data).expect("it can be read");
    }
});
