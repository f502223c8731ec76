//! Small details of the programs' output, and their meanings.

use proptest::prelude::*;
use serde_json::json;

use crate::agent::{
    Usage,
    dialect::{
        json::{number, readable},
        words::{Answer, cut, is_id, notice, says_unknown_conversation},
    },
};

#[test]
fn a_tools_result_is_readable() {
    assert_eq!(readable(&json!(null)), "");
    assert_eq!(readable(&json!("a")), "a");
    assert_eq!(readable(&json!([{"type":"text","text":"a"},{"type":"text","text":"b"}])), "a\nb");
    assert_eq!(readable(&json!([{"type":"content","content":{"type":"text","text":"a"}}])), "a");
    assert_eq!(readable(&json!({"a":1})), r#"{"a":1}"#);
}

#[test]
fn numbers_that_are_none_count_nothing() {
    let value = json!({"whole": 3, "part": 2.9, "less": -1, "huge": 1e300, "text": "7"});
    let numbers = ["/whole", "/part", "/less", "/huge", "/text", "/none"];
    assert_eq!(numbers.map(|at| number(&value, at)), [3, 2, 0, u64::MAX, 0, 0]);
}

#[test]
fn of_an_error_that_is_passed_on_as_json_people_are_told_the_message() {
    for (said, shown) in [
        (r#"{"error":{"message":"no room","type":"x","code":null}}"#, "no room"),
        (r#"[API Error: {"error":{"code":400,"message":"bad key"}}]"#, "[API Error: bad key]"),
        (r#"{"message":"no room"}"#, r#"{"message":"no room"}"#),
        ("} of { ä", "} of { ä"),
        ("plain {words}", "plain {words}"),
    ] {
        assert_eq!(notice(said), shown);
    }
}

#[test]
fn unknown_conversations_are_told_in_many_words() {
    for said in [
        "No conversation found with session ID: 1",
        "no rollout found for thread id 1",
        "Error resuming session: Invalid session identifier \"1\"",
        "Session not found: ses_1",
        "NotFoundError: session",
        "No saved session found",
    ] {
        assert!(says_unknown_conversation(said), "{said}");
    }
    for said in ["", "model not found", "invalid api key", "the session began"] {
        assert!(!says_unknown_conversation(said), "{said}");
    }
}

#[test]
fn an_id_is_short_and_no_flag() {
    for id in ["ses_4d1bc9", "01890a5d-ac96-774b-bcce-b302099a8057", "a"] {
        assert!(is_id(id), "{id}");
    }
    for no_id in ["", "-x", "--yolo", "a b", "é", "a\n", &"x".repeat(201)] {
        assert!(!is_id(no_id), "{no_id}");
    }
}

#[test]
fn a_total_is_made_into_what_came_since() {
    let of = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, cost_usd: None };
    assert_eq!(of(10, 2).until(of(15, 3)), of(5, 1));
    assert_eq!(of(10, 2).until(of(4, 1)), of(4, 1), "the count began anew");
}

proptest! {
    #[test]
    fn an_answer_is_cut_at_a_character(text in ".{0,40}", most in 0_usize..50) {
        let beginning = cut(&text, most);
        prop_assert!(text.starts_with(beginning) && beginning.len() <= most);
        prop_assert!(beginning.len() + 4 > most.min(text.len()));
    }

    #[test]
    fn an_answer_is_all_that_was_said_since_the_last_beginning(
        before in ".{0,20}",
        pieces in prop::collection::vec(".{0,20}", 0..10),
    ) {
        let mut answer = Answer::default();
        answer.push(&before);
        answer.set("");
        pieces.iter().for_each(|piece| answer.push(piece));
        prop_assert_eq!(answer.take().unwrap_or_default(), pieces.concat());
    }
}
