//! The extra field in which a worker lists the endpoints of its backend.
//!
//! It is a list of paths. Stock peers neither send nor read it. Unknown entries are ignored, so
//! that the list may grow; a field that is not a list counts as absent. The result is a set of
//! known paths, so its size is bounded for any input.

use std::fmt;

use base::{Endpoint, Endpoints};
use serde::{
    Deserialize, Deserializer, Serializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

pub(super) fn serialize<S: Serializer>(
    endpoints: &Option<Endpoints>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let known = endpoints.iter().flat_map(|endpoints| endpoints.iter());
    serializer.collect_seq(known.filter(|endpoint| is_told(*endpoint)).map(Endpoint::path))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Endpoints>, D::Error> {
    deserializer.deserialize_any(ListVisitor)
}

/// Whether the endpoint is listed: a provider may serve it untranslated.
fn is_told(endpoint: Endpoint) -> bool {
    Endpoints::NATIVE.contains(endpoint)
}

struct Entry(Option<Endpoint>);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

/// Ignores every kind of JSON value except those that a visitor handles itself.
macro_rules! nothing_else {
    ($nothing:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($nothing)
        }
    };
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = Option<Endpoints>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of paths")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut endpoints = Endpoints::NONE;
        while let Some(Entry(entry)) = seq.next_element()? {
            endpoints = entry.map_or(endpoints, |endpoint| endpoints.with(endpoint));
        }
        Ok(Some(endpoints))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    nothing_else!(None);
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path")
    }

    fn visit_str<E>(self, path: &str) -> Result<Entry, E> {
        Ok(Entry(Endpoint::of_path(path).filter(|endpoint| is_told(*endpoint))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entry, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Entry(None))
    }

    nothing_else!(Entry(None));
}

#[cfg(test)]
mod tests {
    use crate::relay::{ModelsUpdate, Register};

    use super::*;

    fn told(endpoints: &str) -> Option<Endpoints> {
        let text = format!(r#"{{"models":[],"current_load":0,"endpoints":{endpoints}}}"#);
        serde_json::from_str::<ModelsUpdate>(&text).unwrap().endpoints
    }

    #[test]
    fn a_worker_tells_paths() {
        let chat = Endpoints::only(Endpoint::ChatCompletions);
        assert_eq!(told(r#"["/v1/chat/completions"]"#), Some(chat));
        let both = chat.with(Endpoint::Messages).with(Endpoint::Speech);
        let register = Register { endpoints: Some(both), ..Register::default() };
        let text = serde_json::to_string(&register).unwrap();
        let paths = r#""endpoints":["/v1/chat/completions","/v1/messages","/v1/audio/speech"]"#;
        assert!(text.contains(paths), "{text}");
        assert_eq!(serde_json::from_str::<Register>(&text).unwrap(), register);
    }

    #[test]
    fn a_stock_worker_tells_nothing_and_is_told_nothing() {
        let text = r#"{"models":[],"current_load":0}"#;
        let update: ModelsUpdate = serde_json::from_str(text).unwrap();
        assert_eq!(update.endpoints, None);
        assert_eq!(serde_json::to_string(&update).unwrap(), text);
    }

    #[test]
    fn unknown_paths_are_ignored() {
        let chat = Endpoints::only(Endpoint::ChatCompletions);
        let odd = r#"["/v1/videos",1,null,[["/v1/messages"]],{"a":[1]},-1,0.5,true,"/v1/chat/completions","/api/chat"]"#;
        assert_eq!(told(odd), Some(chat));
        assert_eq!(told("[]"), Some(Endpoints::NONE));
        for none in ["null", "true", "7", "-7", "0.5", r#""/v1/messages""#, r#"{"a":{"b":[]}}"#] {
            assert_eq!(told(none), None, "{none}");
        }
    }

    #[test]
    fn a_long_list_is_no_more_than_a_set() {
        let path = r#""/v1/messages","#.repeat(100_000);
        assert_eq!(told(&format!("[{path}1]")), Some(Endpoints::only(Endpoint::Messages)));
    }
}
