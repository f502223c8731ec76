//! An invitation as one token of capital letters and digits: chat programs leave it as it is, a double click
//! selects the whole, and QR codes have a short form for these characters.
//!
//! The bytes before their Base32: one byte with the version (high half) and marks (low half), the port, the
//! server's id, the fingerprint if there is one, the number of addresses and each with its length before it, the
//! URL if there is one, then the secret or the room with its password; at the end the CRC-32 of all before it,
//! which tells a damaged code from a wrong one.

use std::net::IpAddr;

use base::{Fingerprint, Secret};
use data_encoding::BASE32_NOPAD;

use super::{Invitation, InvitationSecret, MAX_ADDRESSES, MAX_TEXT, Place, Purpose, ServerId};

/// The beginning of every code.
pub const PREFIX: &str = "WARREN";

/// The longest text that is decoded, in bytes: longer than any code, with room for line breaks.
const LONGEST: usize = 2_048;

const VERSION: u8 = 1;

/// The marks: each says which optional parts the code has.
const TLS: u8 = 1;
const URL: u8 = 1 << 1;
const ROOM: u8 = 1 << 2;

/// Why a text is no invitation that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadCode {
    /// It does not begin as codes do.
    #[error("that is no code of an invitation: it begins with {PREFIX}; `warren invite` makes one")]
    NoCode,
    /// A part of the code is missing, or was altered.
    #[error("the code is damaged or not complete: copy all of it once more")]
    Damaged,
    /// A later version made it.
    #[error("a newer Warren made this code: bring this machine's up to date")]
    TooNew,
}

impl Invitation {
    /// Whether a text begins like the code of an invitation.
    pub fn is_code(text: &str) -> bool {
        let text = text.trim();
        text.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
    }

    /// The code. Addresses and text beyond the bounds are left out.
    pub fn encode(&self) -> Secret {
        let Place { port, addresses, fingerprint, url } = &self.place;
        let url = url.as_ref().filter(|url| url.len() <= MAX_TEXT);
        let marks =
            [(fingerprint.is_some(), TLS), (url.is_some(), URL), (self.is_for_room(), ROOM)];
        let marks = marks.into_iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| mark);
        let mut bytes = vec![VERSION << 4 | marks.sum::<u8>()];
        bytes.extend(port.to_be_bytes());
        bytes.extend(self.server.0);
        bytes.extend(fingerprint.iter().flat_map(Fingerprint::bytes));
        put_addresses(&mut bytes, &addresses[..addresses.len().min(MAX_ADDRESSES)]);
        url.iter().for_each(|url| put_text(&mut bytes, url));
        match &self.purpose {
            Purpose::Worker(secret) => bytes.extend(secret.0),
            Purpose::Room { code, password } => {
                put_text(&mut bytes, code);
                put_text(&mut bytes, password.as_ref().map_or("", |password| password.expose()));
            }
        }
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        Secret::from(format!("{PREFIX}{}", BASE32_NOPAD.encode(&bytes)))
    }

    /// The invitation with this code, in capitals or not, with white space anywhere in it.
    ///
    /// # Errors
    /// [`BadCode`] when it is not a code, or not one that this version knows.
    pub fn decode(text: &str) -> Result<Self, BadCode> {
        if !Self::is_code(text) {
            return Err(BadCode::NoCode);
        }
        if text.len() > LONGEST {
            return Err(BadCode::Damaged);
        }
        let plain: String = text.split_whitespace().collect::<String>().to_ascii_uppercase();
        let digits = plain.strip_prefix(PREFIX).ok_or(BadCode::Damaged)?;
        let bytes = BASE32_NOPAD.decode(digits.as_bytes()).map_err(|_| BadCode::Damaged)?;
        let (bytes, check) = bytes.split_last_chunk::<4>().ok_or(BadCode::Damaged)?;
        if crc32fast::hash(bytes).to_be_bytes() != *check {
            return Err(BadCode::Damaged);
        }
        Reader(bytes).invitation()
    }

    fn is_for_room(&self) -> bool {
        matches!(self.purpose, Purpose::Room { .. })
    }
}

fn put_addresses(bytes: &mut Vec<u8>, addresses: &[IpAddr]) {
    put_length(bytes, addresses.len());
    for address in addresses {
        match address {
            IpAddr::V4(v4) => put_bytes(bytes, &v4.octets()),
            IpAddr::V6(v6) => put_bytes(bytes, &v6.octets()),
        }
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_bytes(bytes, if text.len() <= MAX_TEXT { text.as_bytes() } else { &[] });
}

fn put_bytes(bytes: &mut Vec<u8>, part: &[u8]) {
    put_length(bytes, part.len());
    bytes.extend(part);
}

/// All lengths are below [`MAX_TEXT`].
fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.push(u8::try_from(length).unwrap_or(u8::MAX));
}

/// The rest of a code, to be read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn invitation(mut self) -> Result<Invitation, BadCode> {
        let [first] = self.array()?;
        if first >> 4 != VERSION {
            return Err(BadCode::TooNew);
        }
        let has = |mark: u8| first & mark != 0;
        let port = u16::from_be_bytes(self.array()?);
        let server = ServerId(self.array()?);
        let fingerprint = has(TLS).then(|| self.array().map(Fingerprint::new)).transpose()?;
        let addresses = self.addresses()?;
        let url = has(URL).then(|| self.text()).transpose()?;
        let purpose = if has(ROOM) {
            let (code, password) = (self.text()?, self.text()?);
            // White space alone is no password either: a secret has none around it.
            let password = Some(Secret::from(password)).filter(|it| !it.expose().is_empty());
            Purpose::Room { code, password }
        } else {
            Purpose::Worker(InvitationSecret(self.array()?))
        };
        let place = Place { port, addresses, fingerprint, url };
        if self.0.is_empty() {
            Ok(Invitation { server, place, purpose })
        } else {
            Err(BadCode::Damaged)
        }
    }

    fn addresses(&mut self) -> Result<Vec<IpAddr>, BadCode> {
        let [count] = self.array()?;
        if usize::from(count) > MAX_ADDRESSES {
            return Err(BadCode::Damaged);
        }
        let address = |_| {
            let bytes = self.bytes()?;
            let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
                .map_err(|_| BadCode::Damaged)
        };
        (0..count).map(address).collect()
    }

    fn text(&mut self) -> Result<String, BadCode> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| BadCode::Damaged)?;
        let is_plain = text.len() <= MAX_TEXT && !text.chars().any(char::is_control);
        if is_plain { Ok(text.to_owned()) } else { Err(BadCode::Damaged) }
    }

    fn bytes(&mut self) -> Result<&[u8], BadCode> {
        let [length] = self.array()?;
        let (bytes, rest) = self.0.split_at_checked(length.into()).ok_or(BadCode::Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadCode> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or(BadCode::Damaged)?;
        self.0 = rest;
        Ok(*bytes)
    }
}
