//! Texts that are repaired, that are cut, and that stay as they are.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(text: &str) -> Value {
    value(text).unwrap_or_else(|| panic!("{text}"))
}

fn cut(text: &str, total: usize) -> Value {
    let repaired = repaired(text.as_bytes(), Bounds { total, ..Bounds::WHOLE }).unwrap();
    assert!(repaired.is_cut && repaired.text.len() <= total + RESERVE * RESERVED);
    serde_json::from_str(&repaired.text).unwrap()
}

#[test]
fn half_a_surrogate_pair_becomes_a_replacement_character() {
    assert_eq!(read(r#""a \ud83d…""#), "a \u{fffd}…");
    assert_eq!(read(r#""\ud83d\ude00 \ude00\ud83d""#), "😀 \u{fffd}\u{fffd}");
    assert_eq!(read(r#""\ud83d\ud83d\ude00\n\ud83d\n""#), "\u{fffd}😀\n\u{fffd}\n");
    assert_eq!(read(r#"{"\udc00":"\ud83d\u0041"}"#), json!({"\u{fffd}": "\u{fffd}A"}));
}

#[test]
fn bytes_that_are_no_utf8_become_replacement_characters() {
    let repaired = repaired(b"{\"a\":\"caf\xe9\",\"b\":1}", Bounds::WHOLE).unwrap();
    assert_eq!(repaired.text, "{\"a\":\"caf\u{fffd}\",\"b\":1}");
}

#[test]
fn control_characters_and_unknown_escapes_stand_for_themselves() {
    assert_eq!(read("\"a\tb\u{1}\u{1b}[0m\""), "a\tb\u{1}\u{1b}[0m");
    assert_eq!(read(r#""\x\'\u00zz\u0022\u005c\u0000""#), "x'\u{fffd}zz\"\\\0");
}

#[test]
fn a_number_that_is_none_is_null_and_the_others_stay() {
    let odd = r#"[NaN,-Infinity,Infinity,1e999,-nan,.5,+1,01,1.50,12345678901234567890]"#;
    let right = "[null,null,null,null,null,0.5,1.0,1.0,1.50,12345678901234567890]";
    assert_eq!(repaired(odd.as_bytes(), Bounds::WHOLE).unwrap().text, right);
}

#[test]
fn what_is_nested_too_deep_is_null_and_what_follows_it_is_there() {
    let deep = |levels: usize| "[".repeat(levels) + "\"]\"" + &"]".repeat(levels);
    let text = format!(r#"{{"a":{},"b":[{{"c":{}}}],"d":2}}"#, deep(500), deep(100_000));
    let read = read(&text);
    assert_eq!(read["d"], 2);
    assert!(read["b"][0]["c"][0].is_array());
}

#[test]
fn the_last_of_repeated_keys_counts() {
    assert_eq!(read(r#"{"a":1,"a":"\ud83d"}"#), json!({"a": "\u{fffd}"}));
}

#[test]
fn prose_and_parts_of_a_text_are_no_json() {
    for text in ["", "{", "{}{}", "{a:1}", "{\"a\" 1}", "[1 2]", "nothing", "{\"a\":}", "[1}", "]"]
    {
        assert_eq!(value(text), None, "{text}");
    }
    assert_eq!(read("[1,]"), json!([1]));
}

#[test]
fn long_strings_are_cut_and_what_stands_around_them_stays() {
    let long = "é".repeat(200_000);
    let text = format!(
        r#"{{"type":"ask","big":{{"a":"{long}","b":["{long}"]}},"id":"i1","options":[{{"id":"yes"}}],"result":"{long}"}}"#
    );
    let read = cut(&text, 100_000);
    assert_eq!((&read["type"], &read["id"]), (&json!("ask"), &json!("i1")));
    assert_eq!(read["options"][0]["id"], "yes");
    let length = |value: &Value| value.as_str().unwrap().len();
    assert!((40_000..50_001).contains(&length(&read["big"]["a"])));
    assert!(read["big"]["a"].as_str().unwrap().ends_with("é…"));
    assert!(length(&read["result"]) > 40_000, "half is kept for what stands at the top");
}

#[test]
fn a_string_is_cut_before_a_character_that_comes_in_two_pieces() {
    let bounds = Bounds { total: 0, ..Bounds::WHOLE };
    for long in [
        format!("\"{}\"", "€".repeat(600)).into_bytes(),
        [b"\"a", &[0x86; 1_500][..], b"\""].concat(),
    ] {
        let whole = repaired(&long, bounds).unwrap();
        for at in 0..long.len() {
            let mut repair = Repair::new(bounds);
            repair.push(&long[..at]);
            repair.push(&long[at..]);
            assert_eq!(repair.finish().as_ref(), Some(&whole));
        }
        assert!(
            !whole.text.contains(char::REPLACEMENT_CHARACTER) && whole.is_cut,
            "{}",
            whole.text
        );
    }
}

#[test]
fn endless_lists_are_left_out_and_what_follows_them_stays() {
    let list = "0,".repeat(1_000_000) + "0";
    let text = format!(r#"{{"a":[{list}],"b":{{"c":[[{list}]],"d":1}},"id":7}}"#);
    let read = cut(&text, 64_000);
    assert_eq!(read["id"], 7);
    assert!(read["a"].as_array().unwrap().len() < 5_000);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((".{0,8}", inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn right_json_stays_as_it_is(value in any_value()) {
        let text = value.to_string();
        let same = Repaired { text: text.clone(), is_cut: false, has_bad_escapes: false, seams: Vec::new() };
        prop_assert_eq!(repaired(text.as_bytes(), Bounds::WHOLE), Some(same));
    }

    #[test]
    fn a_text_is_the_same_however_it_comes(
        text in r#"(\\u[dD][89c][0-9a-f]{2}|\\[a-z"]|é|"|\{|\}|\[|\]|,|:|1|x){0,40}"#,
        piece in 1_usize..8,
        total in 0_usize..200,
    ) {
        let bounds = Bounds { total, ..Bounds::WHOLE };
        let text = format!("[\"{text}");
        let mut repair = Repair::new(bounds);
        text.as_bytes().chunks(piece).for_each(|piece| repair.push(piece));
        prop_assert_eq!(repair.finish(), repaired(text.as_bytes(), bounds));
    }

    #[test]
    fn what_is_read_is_json(bytes in prop::collection::vec(any::<u8>(), 0..200), total in 0_usize..200) {
        let bytes = [b"[\"", &bytes[..], b"\"]"].concat();
        if let Some(repaired) = repaired(&bytes, Bounds { depth: 5, total }) {
            prop_assert!(serde_json::from_str::<Value>(&repaired.text).is_ok(), "{}", repaired.text);
        }
    }
}
