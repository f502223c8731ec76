//! Codes of invitations: no text makes decoding panic, and what was decoded says the same when it is encoded. The input
//! is tried as a text, and as the bytes of a code with a sound checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::invitation::{Invitation, PREFIX};

fuzz_target!(|data: &[u8]| {
    check(&String::from_utf8_lossy(data));
    let mut bytes = data.to_vec();
    bytes.extend(crc32fast::hash(data).to_be_bytes());
    check(&format!("{PREFIX}{}", data_encoding::BASE32_NOPAD.encode(&bytes)));
});

fn check(text: &str) {
    if let Ok(invitation) = Invitation::decode(text) {
        assert_eq!(Invitation::decode(invitation.encode().expose()), Ok(invitation));
    }
}
