//! Messages between two Warrens, and invitations: nothing panics, errors stay short and fit for a
//! terminal, and what is read is written and read again the same. The first byte of the input says which
//! it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::workspace::peer::sealed::{Invitation, decode_sealed};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(body) else { return };
    match choice % 2 {
        0 => message(text),
        _ => invitation(text),
    }
});

fn message(text: &str) {
    match decode_sealed(text) {
        Ok(Some(read)) => assert_eq!(decode_sealed(&read.encode()), Ok(Some(read))),
        Ok(None) => {}
        Err(bad) => {
            let words = bad.to_string();
            assert!(words.len() < 2048 && !words.contains(char::is_control), "{words:?}");
        }
    }
}

fn invitation(text: &str) {
    match Invitation::decode(text) {
        Ok(read) => {
            let letters: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            assert_eq!(read.encode(), Ok(letters));
        }
        Err(bad) => assert!(bad.to_string().len() < 200),
    }
}
