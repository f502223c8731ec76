//! The code by which a machine joins a cluster: addresses of the inviting member, its key and a
//! secret, in letters that chats and terminals leave unchanged.
//!
//! Base64url without padding of: one byte 0xA0 plus the version; the length of all bytes (u16,
//! big-endian); the key (32); the secret (16); each address as one byte for its length, and its text;
//! CRC-32 of all that (u32, big-endian). The first byte, the length and the checksum have the same
//! places in every version, so that an older Warren can tell a newer code from a damaged one.

use std::fmt;

use base::NodeId;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// The most addresses of an invitation.
pub const INVITE_ADDRESSES_MAX: usize = 4;
/// The longest address of an invitation, in bytes.
pub const INVITE_ADDRESS_MAX: usize = 128;

const MARK: u8 = 0xa0;
const VERSION: u8 = 1;
/// The bytes before the addresses: mark, length, key and secret.
const HEAD: usize = 1 + 2 + 32 + 16;
const CHECKSUM: usize = 4;
/// The longest code that is read, in letters. No version has longer codes.
const LETTERS_MAX: usize = 4096;

/// An invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Where the inviting member is reached, [`INVITE_ADDRESSES_MAX`] at most.
    pub addresses: Vec<String>,
    /// Its public key.
    pub key: NodeId,
    /// The secret.
    pub secret: InviteSecret,
}

/// The secret of an invitation. It stays hidden when it is logged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InviteSecret(pub [u8; 16]);

impl fmt::Debug for InviteSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Why text is not an invitation, in words for the person who entered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadInvitation {
    /// It is something else.
    #[error("this is not an invitation")]
    NotOne,
    /// It has a character that no invitation has.
    #[error(
        "this is not an invitation: it holds {0:?}, and invitations hold only letters, digits, - and _"
    )]
    Letter(char),
    /// Its end is missing.
    #[error("the invitation is cut off: {} at the end", Missing(*.0))]
    CutOff(usize),
    /// There are letters after it.
    #[error("the invitation has {0} letters too many: copy it alone")]
    TooMany(usize),
    /// A letter was changed.
    #[error("the invitation was changed: a letter is wrong or two are swapped; copy it again")]
    Changed,
    /// It is of another version.
    #[error("the invitation was made by a newer Warren: update this one first")]
    Newer,
    /// The addresses are too many or too long for an invitation.
    #[error(
        "an invitation holds at most {INVITE_ADDRESSES_MAX} addresses of 1 to {INVITE_ADDRESS_MAX} bytes"
    )]
    Addresses,
}

/// A number of missing letters in words.
struct Missing(usize);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("a letter is missing"),
            more => write!(f, "{more} letters are missing"),
        }
    }
}

impl Invitation {
    /// The code.
    ///
    /// # Errors
    /// [`BadInvitation::Addresses`].
    pub fn encode(&self) -> Result<String, BadInvitation> {
        if !fit(&self.addresses) {
            return Err(BadInvitation::Addresses);
        }
        let addresses: usize = self.addresses.iter().map(|address| 1 + address.len()).sum();
        let length = (HEAD + addresses + CHECKSUM) as u16;
        let mut bytes = vec![MARK | VERSION];
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(self.key.as_bytes());
        bytes.extend_from_slice(&self.secret.0);
        for address in &self.addresses {
            bytes.push(address.len() as u8);
            bytes.extend_from_slice(address.as_bytes());
        }
        bytes.extend_from_slice(&checksum(&bytes).to_be_bytes());
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Reads a code as people copy it, with white space anywhere in it.
    ///
    /// # Errors
    /// [`BadInvitation`].
    pub fn decode(code: &str) -> Result<Self, BadInvitation> {
        let bytes = bytes_of(&letters(code)?)?;
        let (content, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(BadInvitation::NotOne)?;
        if checksum(content) != u32::from_be_bytes(*sum) {
            return Err(BadInvitation::Changed);
        }
        match content.first() {
            Some(first) if first ^ MARK == VERSION => read(content).ok_or(BadInvitation::NotOne),
            _ => Err(BadInvitation::Newer),
        }
    }
}

/// The code without white space.
fn letters(code: &str) -> Result<String, BadInvitation> {
    let letters: String =
        code.chars().filter(|c| !c.is_whitespace()).take(LETTERS_MAX + 1).collect();
    let is_letter = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match letters.chars().find(|c| !is_letter(c)) {
        Some(other) => Err(BadInvitation::Letter(other)),
        None if letters.len() > LETTERS_MAX => Err(BadInvitation::NotOne),
        None => Ok(letters),
    }
}

/// The bytes of an invitation of any version, whose number must be the length in it.
fn bytes_of(letters: &str) -> Result<Vec<u8>, BadInvitation> {
    // Four letters are three bytes: the mark and the length.
    let first = letters.get(..4).and_then(|first| URL_SAFE_NO_PAD.decode(first).ok());
    let Some(&[mark, high, low]) = first.as_deref() else { return Err(BadInvitation::NotOne) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if mark & 0xf0 != MARK || mark == MARK || length < HEAD + CHECKSUM {
        return Err(BadInvitation::NotOne);
    }
    let expected = (length * 8).div_ceil(6);
    match letters.len() {
        fewer if fewer < expected => Err(BadInvitation::CutOff(expected - fewer)),
        more if more > expected => Err(BadInvitation::TooMany(more - expected)),
        _ => URL_SAFE_NO_PAD.decode(letters).map_err(|_| BadInvitation::Changed),
    }
}

fn read(content: &[u8]) -> Option<Invitation> {
    let (key, rest) = content.get(3..)?.split_first_chunk()?;
    let (secret, mut rest) = rest.split_first_chunk()?;
    let mut addresses = Vec::new();
    while let Some((&length, after)) = rest.split_first() {
        let (address, after) = after.split_at_checked(length.into())?;
        addresses.push(String::from_utf8(address.to_vec()).ok()?);
        rest = after;
    }
    let invitation =
        Invitation { addresses, key: NodeId::new(*key), secret: InviteSecret(*secret) };
    fit(&invitation.addresses).then_some(invitation)
}

fn fit(addresses: &[String]) -> bool {
    let fits = |address: &String| {
        (1..=INVITE_ADDRESS_MAX).contains(&address.len()) && !base::plain::is_unsafe(address)
    };
    addresses.len() <= INVITE_ADDRESSES_MAX && addresses.iter().all(fits)
}

/// CRC-32 as in Ethernet and zip.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
    let byte = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), step);
    !bytes.iter().fold(u32::MAX, byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn invitation() -> Invitation {
        Invitation {
            addresses: vec!["192.168.178.20:9179".to_owned(), "burrow.example:9179".to_owned()],
            key: NodeId::new([7; 32]),
            secret: InviteSecret([9; 16]),
        }
    }

    fn error(code: &str) -> BadInvitation {
        Invitation::decode(code).unwrap_err()
    }

    #[test]
    fn a_code_is_about_110_letters_and_comes_back_however_it_is_wrapped() {
        let code = invitation().encode().unwrap();
        assert!((110..=130).contains(&code.len()), "{code}");
        assert_eq!(Invitation::decode(&code), Ok(invitation()));
        let (one, other) = code.split_at(40);
        assert_eq!(Invitation::decode(&format!("  {one}\r\n\t{other}\n")), Ok(invitation()));
        assert_eq!(format!("{:?}", invitation().secret), "[redacted]");
    }

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_person_hears_what_is_wrong() {
        let code = invitation().encode().unwrap();
        let said = |code: &str| error(code).to_string();
        assert_eq!(said("correct-horse"), "this is not an invitation");
        assert_eq!(said(""), "this is not an invitation");
        assert!(said("https://example.com").starts_with("this is not an invitation: it holds ':'"));
        let cut = |letters: usize| said(&code[..code.len() - letters]);
        assert_eq!(cut(1), "the invitation is cut off: a letter is missing at the end");
        assert_eq!(cut(7), "the invitation is cut off: 7 letters are missing at the end");
        assert_eq!(
            said(&format!("{code}xyz")),
            "the invitation has 3 letters too many: copy it alone"
        );
        let other = if code.as_bytes()[60] == b'A' { "B" } else { "A" };
        let changed = format!("{}{other}{}", &code[..60], &code[61..]);
        assert!(said(&changed).starts_with("the invitation was changed"));
    }

    #[test]
    fn a_newer_one_is_not_called_broken() {
        let mut bytes = URL_SAFE_NO_PAD.decode(invitation().encode().unwrap()).unwrap();
        bytes.truncate(bytes.len() - CHECKSUM);
        bytes[0] = MARK | 2;
        let sum = checksum(&bytes).to_be_bytes();
        let newer = URL_SAFE_NO_PAD.encode([&bytes[..], &sum].concat());
        assert_eq!(error(&newer), BadInvitation::Newer);
        bytes[20] ^= 1;
        let broken = URL_SAFE_NO_PAD.encode([&bytes[..], &sum].concat());
        assert_eq!(error(&broken), BadInvitation::Changed);
        assert_eq!(error(&newer[..newer.len() - 1]), BadInvitation::CutOff(1));
    }

    #[test]
    fn addresses_have_bounds() {
        let with = |addresses: Vec<String>| Invitation { addresses, ..invitation() };
        let most = with(vec!["x".repeat(INVITE_ADDRESS_MAX); INVITE_ADDRESSES_MAX]);
        assert_eq!(Invitation::decode(&most.encode().unwrap()), Ok(most));
        let bad = [
            vec!["x".to_owned(); 5],
            vec!["x".repeat(129)],
            vec![String::new()],
            vec!["\u{1b}".into()],
        ];
        for addresses in bad {
            assert_eq!(with(addresses).encode(), Err(BadInvitation::Addresses));
        }
        assert_eq!(error(&"o".repeat(100_000)), BadInvitation::NotOne);
    }

    proptest! {
        #[test]
        fn every_invitation_comes_back_and_no_changed_one_does(
            addresses in prop::collection::vec("[a-z0-9.:]{1,30}", 0..=4),
            key: [u8; 32],
            secret: [u8; 16],
            at: prop::sample::Index,
            letter in "[A-Za-z0-9_-]",
        ) {
            let key = NodeId::new(key);
            let invitation = Invitation { addresses, key, secret: InviteSecret(secret) };
            let code = invitation.encode().unwrap();
            prop_assert_eq!(Invitation::decode(&code), Ok(invitation));
            let at = at.index(code.len());
            let changed = format!("{}{letter}{}", &code[..at], &code[at + 1..]);
            prop_assert_eq!(Invitation::decode(&changed).is_ok(), changed == code);
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _read_or_refused = Invitation::decode(&text);
        }
    }
}
