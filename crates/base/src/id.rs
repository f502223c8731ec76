//! Identifiers as types of their own, so that no two kinds can be mixed up.

use std::{
    fmt,
    str::FromStr,
    sync::{Arc, LazyLock},
};

use serde::{Deserialize, Serialize};

/// One job: an inference request from its acceptance to its single ending.
///
/// 128 random bits, so that nobody can guess another's. Shown as `r-` and 32 hex digits, which is
/// also its form on the wire (`request_id`) and in `x-request-id`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(u128);

impl JobId {
    /// An id made of the caller's random bits.
    pub const fn from_random(bits: u128) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Its 32 hex digits alone: ids in the form of an API are made of them.
    pub fn digits(self) -> String {
        // It is ASCII.
        str::from_utf8(&self.text()[2..]).unwrap_or_default().to_owned()
    }

    /// Its text, all ASCII, without an allocation.
    pub fn text(self) -> [u8; 34] {
        let mut text = *b"r-00000000000000000000000000000000";
        write_hex(self.0, &mut text[2..]);
        text
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It is ASCII. In one piece, so that a string that it goes into grows once.
        f.write_str(str::from_utf8(&self.text()).unwrap_or_default())
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One connected provider. A worker that reconnects is a new provider.
///
/// 64 random bits, shown as `w-` and 16 hex digits, which is its `worker_id` on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderId(u64);

impl ProviderId {
    /// An id made of the caller's random bits.
    pub const fn from_random(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = *b"w-0000000000000000";
        write_hex(self.0.into(), &mut text[2..]);
        f.write_str(str::from_utf8(&text).unwrap_or_default())
    }
}

/// Writes the last hex digits of a number, as many as there is room for.
fn write_hex(mut number: u128, room: &mut [u8]) {
    for digit in room.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 0xf) as usize];
        number >>= 4;
    }
}

impl fmt::Debug for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnId {
    prefix: &'static str,
    digits: usize,
}

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} and {} hex digits", self.prefix, self.digits)
    }
}

impl std::error::Error for NotAnId {}

fn parse_hex(text: &str, prefix: &'static str, digits: usize) -> Result<u128, NotAnId> {
    let error = NotAnId { prefix, digits };
    let hex = text.strip_prefix(prefix).ok_or_else(|| error.clone())?;
    let plain = hex.len() == digits && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !plain {
        return Err(error);
    }
    u128::from_str_radix(hex, 16).map_err(|_| error)
}

impl FromStr for JobId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        parse_hex(text, "r-", 32).map(Self)
    }
}

impl FromStr for ProviderId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        parse_hex(text, "w-", 16).map(|bits| Self(bits as u64))
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )+};
}

names! {
    /// A set of providers and of the consumers who may use them: the whole server, or one room.
    Scope,
    /// A model as consumers ask for it. `*`, offered by a provider, stands for every model.
    ModelName,
    /// The consumer that a request is counted for: a key's id, or `local` for requests that need none.
    KeyId,
    /// A browser's session at the web page. It is no credential.
    PageSessionId,
    /// A room, by the id that no person types.
    RoomId,
    /// A participant of a room, by the id that it chose.
    ParticipantId,
}

/// The beginning of the scope of a room.
const ROOM: &str = "room:";

impl Scope {
    /// The scope of everything that is in no room.
    pub fn server() -> Self {
        static SERVER: LazyLock<Scope> = LazyLock::new(|| Scope::from("server"));
        SERVER.clone()
    }

    /// The scope of a room.
    pub fn room(id: &RoomId) -> Self {
        Self::from(format!("{ROOM}{id}"))
    }

    /// The id of the room whose scope this is.
    pub fn room_id(&self) -> Option<&str> {
        self.as_str().strip_prefix(ROOM)
    }
}

impl ModelName {
    /// Whether this is the `*` by which a provider offers every model.
    pub fn is_wildcard(&self) -> bool {
        self.as_str() == "*"
    }

    /// The other name of the same model, at model servers that take `latest` for a missing tag, as Ollama
    /// does: `m:latest` for `m`, and `m` for `m:latest`. `None` for a name with another tag.
    pub fn with_or_without_latest(&self) -> Option<Self> {
        let name = self.as_str();
        let last = name.rsplit('/').next().unwrap_or_default();
        match last.split_once(':') {
            None if last.is_empty() || self.is_wildcard() => None,
            None => Some(Self::from(format!("{name}{LATEST}"))),
            Some((before, "latest")) if !before.is_empty() => {
                name.strip_suffix(LATEST).map(Self::from)
            }
            Some(_) => None,
        }
    }

    /// The file name of a model that is named by a path, as model servers name what they were started with.
    /// `None` for a name that is no path.
    pub fn file_name(&self) -> Option<Self> {
        let name = self.as_str();
        let is_rooted = name.starts_with(['/', '\\', '~', '.']) || is_of_drive(name);
        let is_file = name.to_ascii_lowercase().ends_with(".gguf");
        let (_, last) = name.rsplit_once(['/', '\\']).filter(|_| is_rooted || is_file)?;
        (!last.is_empty()).then(|| Self::from(last))
    }
}

/// Whether a path begins with a drive, as `C:\models` does.
fn is_of_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic())
}

/// The tag that Ollama takes where none is given.
const LATEST: &str = ":latest";

impl KeyId {
    /// All local requests that carry no key, together.
    pub fn local() -> Self {
        static LOCAL: LazyLock<KeyId> = LazyLock::new(|| KeyId::from("local"));
        LOCAL.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_what_they_show() {
        let job = JobId::from_random(0x1f);
        assert_eq!(job.to_string(), "r-0000000000000000000000000000001f");
        assert_eq!(job.to_string(), format!("r-{}", job.digits()));
        assert_eq!(job.to_string().parse(), Ok(job));
        let provider = ProviderId::from_random(u64::MAX);
        assert_eq!(provider.to_string().parse(), Ok(provider));
        let (job, provider) = (JobId::from_random(u128::MAX / 7), ProviderId::from_random(10));
        assert_eq!(job.to_string(), format!("r-{:032x}", job.bits()));
        assert_eq!(provider.to_string(), "w-000000000000000a");
    }

    #[test]
    fn a_rooms_scope_names_its_room_and_is_not_the_servers() {
        let scope = Scope::room(&RoomId::from("abc"));
        assert_eq!(scope.room_id(), Some("abc"));
        assert_eq!(Scope::server().room_id(), None);
    }

    #[test]
    fn only_the_tag_latest_may_be_left_out() {
        for (name, other) in [
            ("llama3", Some("llama3:latest")),
            ("llama3:latest", Some("llama3")),
            ("host:5000/org/m", Some("host:5000/org/m:latest")),
            ("host:5000/org/m:latest", Some("host:5000/org/m")),
            ("llama3:8b", None),
            ("m:8b:latest", None),
            (":latest", None),
            ("org/", None),
            ("*", None),
        ] {
            let found = ModelName::from(name).with_or_without_latest();
            assert_eq!(found.as_ref().map(ModelName::as_str), other, "{name}");
        }
    }

    #[test]
    fn a_model_named_by_a_path_has_a_file_name() {
        for (name, file) in [
            ("/models/Llama-3.gguf", Some("Llama-3.gguf")),
            ("/srv/qwen3", Some("qwen3")),
            ("models/sub/a.GGUF", Some("a.GGUF")),
            ("./a.bin", Some("a.bin")),
            ("C:\\models\\a.gguf", Some("a.gguf")),
            ("c:/models/a", Some("a")),
            ("~/a", Some("a")),
            ("/models/", None),
            ("a.gguf", None),
            ("org/model", None),
            ("org/model:8b", None),
            ("m", None),
            ("", None),
        ] {
            let found = ModelName::from(name).file_name();
            assert_eq!(found.as_ref().map(ModelName::as_str), file, "{name}");
        }
    }

    #[test]
    fn ids_refuse_what_is_not_theirs() {
        let bad = ["", "r-", "w-1", "r-+000000000000000000000000000001f", "0000000000000000"];
        for text in bad {
            assert!(text.parse::<JobId>().is_err(), "{text}");
            assert!(text.parse::<ProviderId>().is_err(), "{text}");
        }
    }
}
