//! Defaults in the bodies of requests: what comes out is JSON, keeps every member that was there, and
//! needs nothing more. The first byte of the input says the endpoint, the second which defaults.
#![no_main]

use base::Endpoint;
use libfuzzer_sys::fuzz_target;
use protocol::room::{GenerationConfig, RuntimeConfig, defaults::complete};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let [choice, which, body @ ..] = data else { return };
    let endpoint = Endpoint::ALL[usize::from(*choice) % Endpoint::ALL.len()];
    let defaults = defaults(*which);
    let Some(new) = complete(body, endpoint, &defaults) else { return };
    assert_eq!(complete(&new, endpoint, &defaults), None);
    let (had, has) = (members(body), members(&new));
    assert!(had.len() <= has.len());
    for ((old_name, old), (name, new)) in had.iter().zip(&has) {
        assert_eq!(old_name, name);
        let grown = name == "messages" && old.starts_with('[');
        assert!(if grown { new.ends_with(&old[1..]) } else { old == new });
    }
    for (name, _) in &has[had.len()..] {
        assert!(had.iter().all(|(old, _)| old != name));
    }
});

/// Each bit is one default.
fn defaults(which: u8) -> RuntimeConfig {
    let there = |bit: u8| which & 1 << bit != 0;
    RuntimeConfig {
        generation: GenerationConfig {
            temperature: there(0).then_some(0.2),
            top_p: there(1).then_some(1.0),
            max_tokens: there(2).then_some(64),
            stop: there(3).then(|| vec!["\"\n".to_owned()]),
            frequency_penalty: there(4).then_some(-2.0),
            presence_penalty: there(5).then_some(2.0),
            seed: there(6).then_some(-1),
        },
        instructions: there(7).then(|| "say \"hi\"".to_owned()),
    }
}

/// The members of an object, each as it stands.
fn members(body: &[u8]) -> Vec<(String, String)> {
    struct All;
    impl<'de> Visitor<'de> for All {
        type Value = Vec<(String, String)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                all.push((name, value.get().to_owned()));
            }
            Ok(all)
        }
    }
    serde_json::Deserializer::from_slice(body).deserialize_map(All).unwrap()
}
