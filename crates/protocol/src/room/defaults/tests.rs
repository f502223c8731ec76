//! Defaults in the bodies of requests.

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::*;

fn all() -> RuntimeConfig {
    RuntimeConfig {
        generation: GenerationConfig {
            temperature: Some(1.5),
            top_p: Some(0.9),
            max_tokens: Some(64),
            stop: Some(vec!["END\n".to_owned()]),
            frequency_penalty: Some(-0.5),
            presence_penalty: Some(0.5),
            seed: Some(-7),
        },
        instructions: Some("Be \"brief\".".to_owned()),
    }
}

fn completed(body: &str, endpoint: Endpoint) -> String {
    let completed = complete(body.as_bytes(), endpoint, &all());
    completed.map_or("unchanged".to_owned(), |body| String::from_utf8(body.to_vec()).unwrap())
}

#[test]
fn a_chat_gets_what_it_lacks_and_instructions_first() {
    assert_eq!(
        completed(
            "{ \"model\":\"m\", \"messages\": [ {\"role\":\"user\",\"content\":\"hi\"}],\"seed\":null }\n",
            Endpoint::ChatCompletions
        ),
        "{ \"model\":\"m\", \"messages\": [{\"role\":\"system\",\"content\":\"Be \\\"brief\\\".\"}, {\"role\":\"user\",\"content\":\"hi\"}],\"seed\":null \
         ,\"temperature\":1.5,\"top_p\":0.9,\"frequency_penalty\":-0.5,\"presence_penalty\":0.5,\"max_tokens\":64,\"stop\":[\"END\\n\"]}\n"
    );
}

#[test]
fn a_requests_own_values_win() {
    let said = r#""temp\u0065rature":0,"top_p":1,"max_completion_tokens":5,"stop":null,"frequency_penalty":0,"presence_penalty":0,"seed":1"#;
    for role in ["system", "developer", "syst\\u0065m"] {
        let body = format!(
            r#"{{"messages":[{{"role":"user"}},{{"content":"x","role":"{role}"}}],{said}}}"#
        );
        assert_eq!(completed(&body, Endpoint::ChatCompletions), "unchanged", "{role}");
    }
    assert_eq!(completed(&format!("{{{said}}}"), Endpoint::Completions), "unchanged");
}

#[test]
fn each_endpoint_has_its_own_names() {
    let added = |endpoint| {
        let body = completed(r#"{"model":"m"}"#, endpoint);
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let (instructions, stop) = ("Be \"brief\".", ["END\n"]);
    assert_eq!(
        added(Endpoint::Responses),
        json!({"model": "m", "temperature": 1.5, "top_p": 0.9, "frequency_penalty": -0.5, "presence_penalty": 0.5,
            "seed": -7, "max_output_tokens": 64, "stop_sequences": stop, "instructions": instructions})
    );
    assert_eq!(
        added(Endpoint::Messages),
        json!({"model": "m", "temperature": 1.0, "top_p": 0.9, "max_tokens": 64, "stop_sequences": stop, "system": instructions})
    );
    assert_eq!(
        added(Endpoint::NodeChat),
        json!({"model": "m", "temperature": 1.5, "max_new_tokens": 64, "system": instructions})
    );
    assert_eq!(
        added(Endpoint::Completions),
        json!({"model": "m", "temperature": 1.5, "top_p": 0.9, "frequency_penalty": -0.5, "presence_penalty": 0.5,
            "seed": -7, "max_tokens": 64, "stop": stop})
    );
    for endpoint in [Endpoint::Embeddings, Endpoint::CountTokens] {
        assert_eq!(completed(r#"{"model":"m"}"#, endpoint), "unchanged");
    }
}

#[test]
fn an_empty_conversation_gets_the_instructions_alone() {
    let only = RuntimeConfig { instructions: Some("x".to_owned()), ..RuntimeConfig::default() };
    let chat = |body: &str| complete(body.as_bytes(), Endpoint::ChatCompletions, &only);
    assert_eq!(
        chat(r#"{"messages":[ ]}"#).unwrap(),
        r#"{"messages":[{"role":"system","content":"x"} ]}"#
    );
    for nonsense in [
        r#"{"messages":"hi"}"#,
        r#"{"messages":null}"#,
        r#"{"messages":[],"messages":[]}"#,
        r#"{"prompt":"x"}"#,
    ] {
        assert_eq!(chat(nonsense), None, "{nonsense}");
    }
    assert!(chat(r#"{"messages":["x",7,{"role":7}]}"#).is_some());
}

#[test]
fn a_body_that_is_no_object_or_needs_nothing_is_left_alone() {
    for body in ["", "{}", " { } ", "[]", "7", "{\"model\":", "{\"a\":1} x", "\u{feff}{\"a\":1}"] {
        assert_eq!(completed(body, Endpoint::ChatCompletions), "unchanged", "{body}");
    }
    assert_eq!(complete(b"{\"a\":\"\xff\"}", Endpoint::ChatCompletions, &all()), None);
    let nothing = RuntimeConfig::default();
    assert_eq!(complete(b"{\"a\":1}", Endpoint::ChatCompletions, &nothing), None);
}

#[test]
fn a_prompt_becomes_a_stream_that_tells_its_usage() {
    let request = LlmRequest {
        request_id: "q1".to_owned(),
        target_id: "model:llama3".to_owned(),
        prompt: "say \"hi\"".to_owned(),
        options: Some(GenerationConfig { max_tokens: Some(5), ..GenerationConfig::default() }),
        room_code: None,
    };
    assert_eq!(
        llm_request_body(&request),
        r#"{"model":"model:llama3","messages":[{"role":"user","content":"say \"hi\""}],"max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}"#
    );
    let plain = llm_request_body(&LlmRequest { options: None, ..request });
    assert!(crate::openai::peek(plain.as_bytes()).unwrap().stream);
}

fn any_defaults() -> impl Strategy<Value = RuntimeConfig> {
    let numbers = (
        option::of(0.0..2.0f64),
        option::of(0.0..1.0f64),
        option::of(1u64..),
        option::of(any::<i64>()),
    );
    (numbers, option::of(vec("\\PC{1,9}", 0..3)), option::of("\\PC{1,40}")).prop_map(
        |((temperature, top_p, max_tokens, seed), stop, instructions)| RuntimeConfig {
            generation: GenerationConfig {
                temperature,
                top_p,
                max_tokens,
                stop,
                seed,
                ..GenerationConfig::default()
            },
            instructions,
        },
    )
}

/// A body with some of the names that matter, each with any value.
fn any_body() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "model",
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "stop",
        "stop_sequences",
        "system",
        "instructions",
        "messages",
        "seed",
        "x\\\"y",
    ]);
    let value = prop::sample::select(vec![
        "null",
        "1.50",
        "\"a\\u0041\"",
        "[]",
        "[ {\"role\":\"user\"}]",
        "[{\"role\":\"system\"}]",
        "[1 ,[]]",
        "{}",
    ]);
    let space = prop::sample::select(vec!["", " ", "\n"]);
    vec((name, value, space), 0..6).prop_map(|members| {
        let written =
            members.iter().map(|(name, value, space)| format!("\"{name}\":{space}{value}"));
        format!("{{{}}}", written.collect::<Vec<_>>().join(","))
    })
}

/// The members of an object in order, each as it stands. Of a list, its entries: one may be added.
fn members(body: &str) -> Vec<(String, String)> {
    struct All;
    impl<'de> Visitor<'de> for All {
        type Value = Vec<(String, String)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    serde_json::Deserializer::from_str(body).deserialize_map(All).unwrap()
}

proptest! {
    #[test]
    fn a_completed_body_keeps_what_it_had_and_is_complete(
        body in any_body(),
        defaults in any_defaults(),
        endpoint in prop::sample::select(Endpoint::ALL.to_vec()),
    ) {
        let Some(new) = complete(body.as_bytes(), endpoint, &defaults) else { return Ok(()) };
        let new = str::from_utf8(&new).unwrap();
        prop_assert_eq!(complete(new.as_bytes(), endpoint, &defaults), None);
        let (had, has) = (members(&body), members(new));
        for (old, new) in had.iter().zip(&has) {
            prop_assert_eq!(&old.0, &new.0);
            if old.0 == "messages" && old.1.starts_with('[') {
                prop_assert!(new.1.ends_with(&old.1[1..]));
            } else {
                prop_assert_eq!(&old.1, &new.1);
            }
        }
        let names: Vec<_> = has[had.len()..].iter().map(|(name, _)| name).collect();
        prop_assert!(names.iter().all(|name| had.iter().all(|(old, _)| old != *name)));
    }

    #[test]
    fn any_bytes_are_no_panic(body: Vec<u8>) {
        for endpoint in Endpoint::ALL {
            complete(&body, endpoint, &all());
        }
    }
}
