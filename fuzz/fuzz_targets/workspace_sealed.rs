//! Messages, frames, openings and invitations between two Warrens: nothing panics, errors stay short
//! and fit for a terminal, and what is read is written and read again the same. The first byte of the
//! input says which it is.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::workspace::{
    limits::FRAGMENT_MAX,
    peer::sealed::{Invitation, Opening, SealedFrame, Whole, decode_sealed, fragments},
};

fuzz_target!(|data: &[u8]| {
    let Some((&choice, body)) = data.split_first() else { return };
    let wire = Bytes::copy_from_slice(body);
    match (choice % 5, std::str::from_utf8(body)) {
        (0, Ok(text)) => message(text),
        (1, _) => {
            if let Ok(frame) = SealedFrame::decode(wire) {
                assert_eq!(SealedFrame::decode(frame.clone().encode()), Ok(frame));
            }
        }
        (2, _) => {
            if let Ok(opening) = Opening::decode(wire.clone()) {
                assert_eq!(opening.encode(), wire);
            }
        }
        (3, Ok(text)) => match Invitation::decode(text) {
            Ok(read) => {
                let letters: String = text.chars().filter(|c| !c.is_whitespace()).collect();
                assert_eq!(read.encode(), Ok(letters));
            }
            Err(bad) => assert!(bad.to_string().len() < 200),
        },
        (4, text) => whole(wire, text.is_ok()),
        _ => {}
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

/// The input as content, as often as needed for several fragments.
fn whole(wire: Bytes, is_text: bool) {
    let content = Bytes::from(wire.repeat(FRAGMENT_MAX.div_ceil(wire.len().max(1)).min(100)));
    let mut whole = Whole::new(content.len());
    let mut read = Vec::new();
    for fragment in fragments(1, is_text, content.clone()) {
        assert!(fragment.bytes.len() <= FRAGMENT_MAX);
        read.extend(whole.push(fragment).expect("what was cut is put together"));
    }
    assert_eq!(read, [(is_text, content)]);
}
