//! Puts the items that a request continues in front of the request's own input, so that any provider can answer it.
//! Pure.

use std::collections::HashSet;

use store::{ChainBounds, ResponseRecord};

use super::{failure, items, members::Members};
use crate::error::ApiError;

/// The most responses in a chain of responses that continue each other.
pub(crate) const MOST_LINKS: u64 = 1_000;

/// The items of the chain that ends with the response `id`, the oldest first. `links`: the responses of the chain, the
/// newest first, up to the first one that is missing or that `most` leaves out.
///
/// # Errors
/// 400 when a response of the chain is missing, the chain is too long, or its newest response has not ended well; 413
/// when the chain is too large.
pub(crate) fn items_of_chain(
    id: &str,
    links: &[ResponseRecord],
    most: ChainBounds,
) -> Result<Vec<String>, ApiError> {
    let (Some(newest), Some(oldest)) = (links.first(), links.last()) else {
        return Err(failure::no_previous(id));
    };
    check_finished(newest)?;
    let bytes: u64 = links.iter().map(ResponseRecord::size).sum();
    if bytes > most.bytes {
        let limit = usize::try_from(most.bytes).unwrap_or(usize::MAX);
        return Err(failure::too_large_together("previous_response_id", limit));
    }
    if let Some(missing) = &oldest.previous {
        return Err(match links.len() as u64 >= most.links {
            true => failure::chain_too_long(most.links),
            false => failure::broken_chain(id, missing),
        });
    }
    let of_link = |link: &ResponseRecord| {
        let (said, answered) = (items::of_list(&link.input), items::of_response(&link.response));
        said.into_iter().chain(answered).map(|raw| raw.get().to_owned()).collect::<Vec<_>>()
    };
    Ok(links.iter().rev().flat_map(of_link).collect())
}

fn check_finished(newest: &ResponseRecord) -> Result<(), ApiError> {
    let status = Members::read(&newest.response).and_then(|response| response.text("status"));
    match status.as_deref() {
        _ if newest.beat.is_some() => Err(failure::unfinished(&newest.id, "in_progress")),
        Some(status @ ("failed" | "cancelled")) => Err(failure::unfinished(&newest.id, status)),
        _ => Ok(()),
    }
}

/// A request's own items without the references to items in `before`, which come in front of them anyway.
///
/// # Errors
/// 404 for a reference to an item that is not in `before`.
pub(crate) fn without_references(
    before: &[String],
    own: Vec<String>,
) -> Result<Vec<String>, ApiError> {
    let mut known: Option<HashSet<String>> = None;
    let mut rest = Vec::with_capacity(own.len());
    for item in own {
        match items::reference(&item) {
            None => rest.push(item),
            Some(id) => {
                let known = known
                    .get_or_insert_with(|| before.iter().filter_map(|it| items::id(it)).collect());
                if !known.contains(&id) {
                    return Err(failure::no_such_reference(&id));
                }
            }
        }
    }
    Ok(rest)
}

/// The request with the items `before` in front of its own, and without the fields that refer to this server's state.
/// The provider is not asked to keep the response, which this server keeps or nobody does.
pub(crate) fn stateless(request: &Members<'_>, before: &[String], own: &[String]) -> String {
    let said = before.iter().filter(|item| items::is_for_others(item));
    let input = items::list(said.chain(own));
    let has_input = request.has("input") || !before.is_empty();
    let mut changes = vec![
        ("store", Some("false")),
        ("background", None),
        ("previous_response_id", None),
        ("conversation", None),
    ];
    if has_input {
        changes.push(("input", Some(input.as_str())));
    }
    request.with(&changes)
}

#[cfg(test)]
mod tests {
    use base::KeyId;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const ALL: ChainBounds = ChainBounds { links: MOST_LINKS, bytes: 1 << 20 };

    /// A response that continues the one before it, says one item and is answered by another.
    fn link(at: usize) -> ResponseRecord {
        ResponseRecord {
            id: format!("r{at}"),
            owner: KeyId::local(),
            previous: at.checked_sub(1).map(|before| format!("r{before}")),
            conversation: None,
            created: 0,
            beat: None,
            input: format!("[{{\"said\":{at}}}]"),
            response: format!("{{\"status\":\"completed\",\"output\":[{{\"id\":\"o{at}\"}}]}}"),
        }
    }

    /// The chain that ends with this response, the newest first.
    fn chain(end: usize) -> Vec<ResponseRecord> {
        (0..=end).rev().map(link).collect()
    }

    fn refusal(links: &[ResponseRecord], most: ChainBounds) -> (u16, Option<&'static str>, String) {
        let error = items_of_chain("r3", links, most).unwrap_err();
        (error.status.as_u16(), error.code, error.message.into_owned())
    }

    #[test]
    fn a_chain_that_cannot_be_continued_says_why() {
        let not_found = Some("previous_response_not_found");
        let (status, code, words) = refusal(&[], ALL);
        assert_eq!((status, code), (400, not_found));
        assert!(words.contains("'r3' not found") && words.contains("store: true"), "{words}");
        let (status, code, words) = refusal(&chain(3)[..2], ALL);
        assert_eq!((status, code), (400, not_found));
        assert!(words.contains("'r1'") && words.contains("expired"), "{words}");
        let (status, code, _) = refusal(&chain(3)[..2], ChainBounds { links: 2, ..ALL });
        assert_eq!((status, code), (400, Some("chain_too_long")));
        let (status, code, _) = refusal(&chain(3), ChainBounds { bytes: 100, ..ALL });
        assert_eq!((status, code), (413, Some("request_too_large")));
        let running = ResponseRecord { beat: Some(1), ..link(0) };
        assert!(refusal(&[running], ALL).2.contains("in_progress"));
        for status in ["failed", "cancelled"] {
            let response = json!({"status": status, "output": []}).to_string();
            assert!(refusal(&[ResponseRecord { response, ..link(0) }], ALL).2.contains(status));
        }
        let response = json!({"status": "incomplete", "output": []}).to_string();
        assert!(items_of_chain("r0", &[ResponseRecord { response, ..link(0) }], ALL).is_ok());
    }

    #[test]
    fn a_reference_is_to_what_is_there() {
        let before = vec![r#"{"id":"o1"}"#.to_owned()];
        let own =
            |id: &str| vec![format!(r#"{{"type":"item_reference","id":"{id}"}}"#), "{}".to_owned()];
        assert_eq!(without_references(&before, own("o1")).unwrap(), ["{}"]);
        let error = without_references(&before, own("o2")).unwrap_err();
        assert_eq!((error.status.as_u16(), error.param.as_deref()), (404, Some("input")));
    }

    #[test]
    fn a_request_without_input_gets_what_it_continues() {
        let request = Members::read(r#"{"model":"m","previous_response_id":"r"}"#).unwrap();
        let made = stateless(&request, &["{}".to_owned()], &[]);
        assert_eq!(made, r#"{"model":"m","store":false,"input":[{}]}"#);
        let request = Members::read(r#"{"model":"m","background":true}"#).unwrap();
        assert_eq!(stateless(&request, &[], &[]), r#"{"model":"m","store":false}"#);
    }

    proptest! {
        #[test]
        fn a_chain_is_all_that_was_said_in_its_order(end in 0usize..40, own in 0usize..5) {
            let before = items_of_chain("r", &chain(end), ALL).unwrap();
            let own: Vec<String> = (0..own).map(|at| format!("{{\"own\":{at}}}")).collect();
            let text = r#"{"model":"m","previous_response_id":"r","input":"x","instructions":"i","store":true}"#;
            let made = stateless(&Members::read(text).unwrap(), &before, &own);
            let made: Value = serde_json::from_str(&made).unwrap();
            let turns = (0..=end).flat_map(|at| [json!({"said": at}), json!({"id": format!("o{at}")})]);
            let wanted: Vec<Value> = turns.chain((0..own.len()).map(|at| json!({"own": at}))).collect();
            prop_assert_eq!(&made["input"], &json!(wanted));
            prop_assert_eq!((&made["store"], &made["instructions"]), (&json!(false), &json!("i")));
            prop_assert!(made.get("previous_response_id").is_none());
        }
    }
}
