//! How a model server must be asked: where it looks for its key, whether its paths begin with
//! `/v1`, and the path and shape of its rankings. What the server's address does not tell is
//! learned from its answers.

use std::{
    path::PathBuf,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
};

use base::Secret;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use protocol::anthropic::{VERSION, VERSION_HEADER};

use crate::key_file;

/// The header in which Anthropic's servers look for a key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Anthropic's own server.
pub(crate) const ANTHROPIC: &str = "api.anthropic.com";

/// The path and query for a whole list of models: without the query, Anthropic's servers list only
/// 20.
const WHOLE_LIST: &str = "/v1/models?limit=1000";

/// Where a server looks for its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum KeyPlace {
    /// Not known yet; `Authorization: Bearer` is tried first.
    Unknown,
    /// In `Authorization: Bearer`.
    Bearer,
    /// In `x-api-key`, as Anthropic's servers do.
    ApiKey,
}

impl KeyPlace {
    fn of(number: u8) -> Self {
        [Self::Bearer, Self::ApiKey]
            .into_iter()
            .find(|it| *it as u8 == number)
            .unwrap_or(Self::Unknown)
    }
}

/// Where a server ranks documents, and in which shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ranking {
    /// Below `/v1`, where all other paths are.
    BelowV1,
    /// At the root.
    AtRoot,
    /// At the root, of texts, as Text Embeddings Inference does.
    OfTexts,
}

/// The path of rankings at the root.
pub(crate) const RERANK: &str = "/rerank";

/// A key in the forms of both headers.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    bearer: HeaderValue,
    bare: HeaderValue,
}

/// How one model server is asked.
#[derive(Debug)]
pub(crate) struct Manner {
    key: RwLock<Option<Key>>,
    file: Option<PathBuf>,
    key_place: AtomicU8,
    without_v1: AtomicBool,
    ranking: AtomicU8,
    /// Whether the key was refused since it was taken, and not accepted after that.
    refused: AtomicBool,
    /// How often the key has changed.
    changes: AtomicU64,
}

impl Key {
    fn new(key: &Secret) -> Option<Self> {
        Some(Self {
            bearer: sensitive(&format!("Bearer {}", key.expose()))?,
            bare: sensitive(key.expose())?,
        })
    }
}

impl Manner {
    /// For the server at this host. `None` if the key has characters that a header must not have.
    pub(crate) fn new(key: Option<&Secret>, host: &str, without_v1: bool) -> Option<Self> {
        let key = match key {
            Some(key) => Some(Key::new(key)?),
            None => None,
        };
        let place = if host == ANTHROPIC { KeyPlace::ApiKey } else { KeyPlace::Unknown };
        let (key_place, without_v1) = (AtomicU8::new(place as u8), AtomicBool::new(without_v1));
        let (key, refused) = (RwLock::new(key), AtomicBool::new(false));
        let ranking = AtomicU8::new(Ranking::BelowV1 as u8);
        let changes = AtomicU64::new(0);
        Some(Self { key, file: None, key_place, without_v1, ranking, refused, changes })
    }

    /// The same, with a key that may change in this file.
    pub(crate) fn with_file(self, file: Option<PathBuf>) -> Self {
        Self { file, ..self }
    }

    /// The same, for a server that is known to look for its key where Anthropic's servers do.
    pub(crate) fn with_anthropic_place(self) -> Self {
        self.key_place.store(KeyPlace::ApiKey as u8, Ordering::Relaxed);
        self
    }

    /// Whether it has a key.
    pub(crate) fn has_key(&self) -> bool {
        self.key.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Reads the key's file again. Returns whether the key is another one than before. If the file
    /// cannot be used, the key stays. Blocks on the disk.
    pub(crate) fn read_key_again(&self) -> bool {
        let Some(file) = &self.file else { return false };
        let read = key_file::read(file).inspect_err(|error| tracing::debug!(%error));
        let Some(new) = read.ok().as_ref().and_then(Key::new) else { return false };
        let mut key = self.key.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = key.as_ref() != Some(&new);
        *key = Some(new);
        if is_other {
            self.refused.store(false, Ordering::Relaxed);
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        is_other
    }

    /// How often the key has changed so far.
    pub(crate) fn key_changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Notes a refusal of the key. Returns whether it is the first of this key.
    pub(crate) fn is_first_refusal(&self) -> bool {
        !self.refused.swap(true, Ordering::Relaxed)
    }

    /// Where to put the key.
    pub(crate) fn place(&self) -> KeyPlace {
        KeyPlace::of(self.key_place.load(Ordering::Relaxed))
    }

    /// The other place to try, if a key in the place `tried` was answered with this status. `None` if it
    /// was not refused, there is no key, or its place is known.
    pub(crate) fn other_place(&self, tried: KeyPlace, status: StatusCode) -> Option<KeyPlace> {
        let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let unknown = self.has_key() && tried == KeyPlace::Unknown;
        (refused && unknown).then_some(KeyPlace::ApiKey)
    }

    /// Notes the answer to a key in this place.
    pub(crate) fn answered(&self, place: KeyPlace, status: StatusCode) {
        if status.is_success() {
            self.refused.store(false, Ordering::Relaxed);
        }
        if status.is_success() && self.place() == KeyPlace::Unknown {
            let known = if place == KeyPlace::ApiKey { place } else { KeyPlace::Bearer };
            self.key_place.store(known as u8, Ordering::Relaxed);
        }
    }

    /// Adds the key, and the version header that goes with `x-api-key`.
    pub(crate) fn put_key(&self, headers: &mut HeaderMap, place: KeyPlace) {
        let key = self.key.read().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = &*key else { return };
        if place != KeyPlace::ApiKey {
            headers.insert(header::AUTHORIZATION, key.bearer.clone());
            return;
        }
        headers.insert(API_KEY, key.bare.clone());
        let version = || HeaderValue::from_static(VERSION);
        headers.entry(HeaderName::from_static(VERSION_HEADER)).or_insert_with(version);
    }

    /// The path to send, for a path of the API.
    pub(crate) fn path<'p>(&self, path: &'p str, place: KeyPlace) -> &'p str {
        let path = match place {
            KeyPlace::ApiKey if path == "/v1/models" => WHOLE_LIST,
            KeyPlace::ApiKey if path == "/models" => WHOLE_LIST.trim_start_matches("/v1"),
            _ => path,
        };
        let bare = path.strip_prefix("/v1").filter(|bare| bare.split('?').next() == Some(RERANK));
        if let Some(bare) = bare.filter(|_| self.ranking() != Ranking::BelowV1) {
            return bare;
        }
        let without_v1 = self.without_v1.load(Ordering::Relaxed);
        let bare = path.strip_prefix("/v1").filter(|rest| without_v1 && rest.starts_with('/'));
        bare.unwrap_or(path)
    }

    /// Where and in which shape it ranks.
    pub(crate) fn ranking(&self) -> Ranking {
        match self.ranking.load(Ordering::Relaxed) {
            ranking if ranking == Ranking::AtRoot as u8 => Ranking::AtRoot,
            ranking if ranking == Ranking::OfTexts as u8 => Ranking::OfTexts,
            _ => Ranking::BelowV1,
        }
    }

    /// Sets where and in which shape it ranks.
    pub(crate) fn set_ranking(&self, ranking: Ranking) {
        self.ranking.store(ranking as u8, Ordering::Relaxed);
    }

    /// Whether the server's paths are assumed to begin without `/v1`.
    pub(crate) fn is_without_v1(&self) -> bool {
        self.without_v1.load(Ordering::Relaxed)
    }

    /// Sets whether the server's paths begin without `/v1`.
    pub(crate) fn set_without_v1(&self, without: bool) {
        self.without_v1.store(without, Ordering::Relaxed);
    }
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(host: &str) -> Manner {
        Manner::new(Some(&"k".into()), host, false).unwrap()
    }

    #[test]
    fn the_place_of_a_key_is_learned_once() {
        let manner = keyed("host");
        let first = manner.place();
        assert_eq!(manner.other_place(first, StatusCode::OK), None);
        let other = manner.other_place(first, StatusCode::UNAUTHORIZED).unwrap();
        manner.answered(other, StatusCode::UNAUTHORIZED);
        assert_eq!(manner.place(), KeyPlace::Unknown, "the key is wrong");
        manner.answered(other, StatusCode::OK);
        assert_eq!(manner.place(), KeyPlace::ApiKey);
        manner.answered(KeyPlace::Bearer, StatusCode::OK);
        assert_eq!(manner.place(), KeyPlace::ApiKey);
        assert_eq!(manner.other_place(manner.place(), StatusCode::UNAUTHORIZED), None);
        assert_eq!(keyed("api.anthropic.com").place(), KeyPlace::ApiKey);
        let keyless = Manner::new(None, "host", false).unwrap();
        assert_eq!(keyless.other_place(KeyPlace::Unknown, StatusCode::UNAUTHORIZED), None);
    }

    #[test]
    fn a_key_stands_in_one_place_with_the_version_of_that_api() {
        let manner = keyed("host");
        let mut headers = HeaderMap::new();
        manner.put_key(&mut headers, KeyPlace::Unknown);
        assert_eq!(
            (headers.len(), &headers["authorization"]),
            (1, &HeaderValue::from_static("Bearer k"))
        );
        let own = HeaderValue::from_static("2099-01-01");
        let mut headers =
            HeaderMap::from_iter([(HeaderName::from_static(VERSION_HEADER), own.clone())]);
        manner.put_key(&mut headers, KeyPlace::ApiKey);
        assert_eq!((headers.len(), &headers["x-api-key"]), (2, &HeaderValue::from_static("k")));
        assert_eq!(headers[VERSION_HEADER], own, "a client's own version stays");
        assert!(Manner::new(Some(&"a\nb".into()), "host", false).is_none());
    }

    #[test]
    fn paths_are_with_or_without_v1() {
        let manner = keyed("host");
        let path = |path| manner.path(path, KeyPlace::Bearer);
        assert_eq!(path("/v1/models"), "/v1/models");
        manner.set_without_v1(true);
        let shorter = [path("/v1/chat/completions?a=1"), path("/v1x/a"), path("/api/tags")];
        assert_eq!(shorter, ["/chat/completions?a=1", "/v1x/a", "/api/tags"]);
        assert_eq!(manner.path("/v1/models", KeyPlace::ApiKey), "/models?limit=1000");
    }
}
