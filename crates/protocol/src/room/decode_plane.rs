//! Reads the bodies of the HTTP API, and reports all faults of a body at once.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    config::RuntimeConfig,
    invalid::{Invalid, Present, object},
    limits::{self, MAX_CONCURRENT, MAX_EXPIRY_SECS, MAX_TOKEN, at_most},
    plane::{ChangeRoom, CreateRoom, PutParticipant},
    types::MachineSpecs,
};

impl CreateRoom {
    /// Reads the body of `POST /v1/rooms`. An empty password counts as none; white space around the
    /// name is removed.
    ///
    /// # Errors
    /// [`Invalid`], with all faults.
    pub fn decode(body: &[u8]) -> Result<Self, Invalid> {
        let raw: RawRoom<'_> = object(body)?;
        let mut invalid = Invalid::default();
        let room = raw.read(&mut invalid);
        invalid.or(room)
    }
}

impl ChangeRoom {
    /// Reads the body of `PATCH /v1/rooms/{code}`.
    ///
    /// # Errors
    /// [`Invalid`], with all faults. An unknown field is one, too.
    pub fn decode(body: &[u8]) -> Result<Self, Invalid> {
        let raw: RawChange<'_> = object(body)?;
        let mut invalid = Invalid::default();
        let name = invalid.text_if("name", raw.name, limits::room_name);
        let change = Self {
            name: name.map(|name| name.trim().to_owned()),
            password: password(raw.password, &mut invalid),
            defaults: config("defaults", raw.defaults, &mut invalid),
        };
        invalid.or(change)
    }
}

impl PutParticipant {
    /// Reads the body of `PUT /v1/rooms/{code}/participants/{id}`. An `id` in it is ignored: the
    /// path has it.
    ///
    /// # Errors
    /// [`Invalid`], with all faults.
    pub fn decode(body: &[u8]) -> Result<Self, Invalid> {
        let raw: RawParticipant<'_> = object(body)?;
        let mut invalid = Invalid::default();
        if raw.auth_headers.0 {
            invalid.forbidden.push("authHeaders");
        }
        let participant = Self {
            nickname: invalid.text("nickname", raw.nickname, limits::nickname),
            model: invalid.text("model", raw.model, limits::model),
            endpoint: invalid.text("endpoint", raw.endpoint, limits::endpoint),
            password: password(raw.password, &mut invalid).filter(|text| !text.is_empty()),
            specs: specs("specs", raw.specs, &mut invalid),
            config: config("config", raw.config, &mut invalid),
            capabilities: invalid.optional_object("capabilities", raw.capabilities),
            max_concurrent: max_concurrent("maxConcurrent", raw.max_concurrent, &mut invalid),
            session_token: invalid
                .text_if("sessionToken", raw.session_token, |text| at_most(text, MAX_TOKEN)),
        };
        invalid.or(participant)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub(super) struct RawRoom<'a> {
    pub(super) name: Option<&'a RawValue>,
    pub(super) password: Option<&'a RawValue>,
    pub(super) defaults: Option<&'a RawValue>,
    pub(super) public: Option<&'a RawValue>,
    pub(super) expires_secs: Option<&'a RawValue>,
}

impl RawRoom<'_> {
    pub(super) fn read(self, invalid: &mut Invalid) -> CreateRoom {
        CreateRoom {
            name: invalid.text("name", self.name, limits::room_name).trim().to_owned(),
            password: password(self.password, invalid).filter(|text| !text.is_empty()),
            defaults: config("defaults", self.defaults, invalid),
            public: invalid.optional("public", self.public).unwrap_or_default(),
            expires_secs: expires_secs(self.expires_secs, invalid),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
struct RawChange<'a> {
    name: Option<&'a RawValue>,
    password: Option<&'a RawValue>,
    defaults: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct RawParticipant<'a> {
    nickname: Option<&'a RawValue>,
    model: Option<&'a RawValue>,
    endpoint: Option<&'a RawValue>,
    password: Option<&'a RawValue>,
    specs: Option<&'a RawValue>,
    config: Option<&'a RawValue>,
    capabilities: Option<&'a RawValue>,
    max_concurrent: Option<&'a RawValue>,
    session_token: Option<&'a RawValue>,
    #[serde(default)]
    auth_headers: Present,
}

pub(super) fn password(raw: Option<&RawValue>, invalid: &mut Invalid) -> Option<String> {
    invalid.text_if("password", raw, limits::password)
}

pub(super) fn config(
    path: &str,
    raw: Option<&RawValue>,
    invalid: &mut Invalid,
) -> Option<RuntimeConfig> {
    let config: RuntimeConfig = invalid.optional_object(path, raw)?;
    config.check_at(&format!("{path}."), invalid);
    Some(config)
}

pub(super) fn specs(
    path: &str,
    raw: Option<&RawValue>,
    invalid: &mut Invalid,
) -> Option<MachineSpecs> {
    let specs: MachineSpecs = invalid.optional_object(path, raw)?;
    specs.check_at(&format!("{path}."), invalid);
    Some(specs)
}

pub(super) fn max_concurrent(
    path: &str,
    raw: Option<&RawValue>,
    invalid: &mut Invalid,
) -> Option<u32> {
    let most: u32 = invalid.optional(path, raw)?;
    if most > MAX_CONCURRENT {
        invalid.add(path, &format!("must be at most {MAX_CONCURRENT}"));
    }
    Some(most)
}

pub(super) fn expires_secs(raw: Option<&RawValue>, invalid: &mut Invalid) -> Option<u64> {
    let seconds: u64 = invalid.optional("expiresSecs", raw)?;
    if !(1..=MAX_EXPIRY_SECS).contains(&seconds) {
        invalid.add("expiresSecs", &format!("must be from 1 to {MAX_EXPIRY_SECS}"));
    }
    Some(seconds)
}
