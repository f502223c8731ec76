//! Codes, read and refused; proofs.

use proptest::prelude::*;

use super::*;

fn place(addresses: &[&str]) -> Place {
    let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
    let fingerprint = Some(Fingerprint::new([9; Fingerprint::BYTES]));
    Place { port: 9178, addresses, fingerprint, url: None }
}

fn worker(place: Place) -> Invitation {
    let purpose = Purpose::Worker(InvitationSecret::new([0xa5; InvitationSecret::BYTES]));
    Invitation { server: ServerId::new([3; ServerId::BYTES]), place, purpose }
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)]
}

fn any_purpose() -> impl Strategy<Value = Purpose> {
    let secret = any::<[u8; 16]>().prop_map(|bytes| Purpose::Worker(InvitationSecret::new(bytes)));
    let room = ("[a-z0-9-]{1,40}", prop::option::of("[a-zA-Z0-9äß!]{1,20}"))
        .prop_map(|(code, password)| Purpose::Room { code, password: password.map(Secret::from) });
    prop_oneof![secret, room]
}

prop_compose! {
    fn any_invitation()(
        port: u16,
        addresses in prop::collection::vec(any_address(), 0..=MAX_ADDRESSES),
        fingerprint in prop::option::of(any::<[u8; 16]>()),
        url in prop::option::of("https://[a-z]{1,20}\\.example"),
        server: [u8; 8],
        purpose in any_purpose(),
    ) -> Invitation {
        let fingerprint = fingerprint.map(Fingerprint::new);
        let place = Place { port, addresses, fingerprint, url };
        Invitation { server: ServerId::new(server), place, purpose }
    }
}

proptest! {
    #[test]
    fn a_code_says_what_went_into_it_whatever_a_chat_program_does_to_it(
        invitation in any_invitation(),
        at in 0_usize..60,
    ) {
        let code = invitation.encode();
        prop_assert_eq!(&Invitation::decode(code.expose()).unwrap(), &invitation);
        let (start, rest) = code.expose().split_at(at.min(code.expose().len()).max(PREFIX.len()));
        let wrapped = format!(" {}\n  {rest}\r\n", start.to_lowercase());
        prop_assert_eq!(Invitation::decode(&wrapped).unwrap(), invitation);
    }

    #[test]
    fn one_wrong_character_is_noticed(
        invitation in any_invitation(),
        at: prop::sample::Index,
        by in 1_usize..32,
    ) {
        let code = invitation.encode();
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let mut bytes = code.expose().as_bytes().to_vec();
        let at = PREFIX.len() + at.index(bytes.len() - PREFIX.len());
        let digit = alphabet.iter().position(|digit| *digit == bytes[at]).unwrap();
        bytes[at] = alphabet[(digit + by) % 32];
        let wrong = String::from_utf8(bytes).unwrap();
        prop_assert_eq!(Invitation::decode(&wrong), Err(BadCode::Damaged));
    }

    #[test]
    fn no_text_can_make_decoding_fail_otherwise_than_in_words(text in "\\PC{0,300}") {
        let _ = Invitation::decode(&text);
        let _ = Invitation::decode(&format!("{PREFIX}{text}"));
    }

    #[test]
    fn no_bytes_with_a_sound_checksum_can_either(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        version: bool,
    ) {
        if let Some(first) = bytes.first_mut().filter(|_| version) {
            *first = 1 << 4 | *first & 15;
        }
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        let text = format!("{PREFIX}{}", data_encoding::BASE32_NOPAD.encode(&bytes));
        if let Ok(invitation) = Invitation::decode(&text) {
            prop_assert_eq!(Invitation::decode(invitation.encode().expose()).unwrap(), invitation);
        }
    }
}

#[test]
fn a_usual_code_is_short_enough_for_a_small_qr_code() {
    // A QR code of version 4 has 41 modules with its margin, 21 rows of a terminal, and 114 such characters.
    let code = worker(place(&["192.168.100.100", "10.0.0.7"])).encode();
    assert!(code.expose().len() <= 114, "{}", code.expose().len());
    assert!(code.expose().bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()));
    assert!(!format!("{:?}", worker(place(&[]))).contains("a5"));
}

#[test]
fn a_password_of_white_space_alone_is_none() {
    // What the code holds: version and marks, port, server, no address, an empty URL, an empty room, one space.
    let mut bytes = [&[0x1e, 0xf8, 0x21][..], &[0; 8], &[0, 0, 0, 1], b" "].concat();
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    let text = format!("{PREFIX}{}", data_encoding::BASE32_NOPAD.encode(&bytes));
    let invitation = Invitation::decode(&text).unwrap();
    assert!(matches!(invitation.purpose, Purpose::Room { password: None, .. }));
    assert_eq!(Invitation::decode(invitation.encode().expose()), Ok(invitation));
}

#[test]
fn codes_are_refused_in_words_of_their_own() {
    let code = worker(place(&["192.0.2.7"])).encode();
    let short = &code.expose()[..40];
    assert_eq!(Invitation::decode("wj_abc"), Err(BadCode::NoCode));
    assert_eq!(Invitation::decode(short), Err(BadCode::Damaged));
    assert_eq!(
        Invitation::decode(&format!("{PREFIX}{}", "A".repeat(4_000))),
        Err(BadCode::Damaged)
    );
    let mut bytes = vec![2 << 4];
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    let newer = format!("{PREFIX}{}", data_encoding::BASE32_NOPAD.encode(&bytes));
    assert_eq!(Invitation::decode(&newer), Err(BadCode::TooNew));
}

#[test]
fn a_place_is_reached_by_its_url_first_and_by_tls_if_its_certificate_is_known() {
    let mut place = place(&["192.0.2.7", "2001:db8::7"]);
    assert_eq!(place.urls(), ["https://192.0.2.7:9178", "https://[2001:db8::7]:9178"]);
    place.url = Some("https://box.example".to_owned());
    place.fingerprint = None;
    assert_eq!(place.urls()[..2], ["https://box.example", "http://192.0.2.7:9178"]);
}

#[test]
fn only_who_knows_the_secret_proves_an_address_and_only_that_one() {
    let secret = Secret::from("wk_1");
    let digest: [u8; 32] = Sha256::digest(b"wk_1").into();
    let (nonce, other) = ([1; proof::NONCE], [2; proof::NONCE]);
    let made = proof::make(&digest, &nonce, "192.0.2.7:1");
    assert!(proof::is_valid(&secret, &nonce, "192.0.2.7:1", &made));
    assert!(!proof::is_valid(&secret, &other, "192.0.2.7:1", &made));
    assert!(!proof::is_valid(&secret, &nonce, "192.0.2.8:1", &made));
    assert!(!proof::is_valid(&"wk_2".into(), &nonce, "192.0.2.7:1", &made));
    assert!(!proof::is_valid(&secret, &nonce, "192.0.2.7:1", &made[..16]));
}
