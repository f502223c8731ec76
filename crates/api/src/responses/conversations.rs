//! `/v1/conversations`: the items of a conversation, gathered under one id.

use std::collections::BTreeMap;

use access::Moment;
use protocol::json;
use serde_json::value::RawValue;
use store::{ConversationRecord, ItemRecord};

use super::{
    caller::{Answer, Caller, Reply},
    failure,
    items::{self, item_record, new_id},
    keeping::MOST_ITEMS,
    members::Members,
    page::{self, Page},
};
use crate::{blocking::blocking, error::ApiError};

/// The most items that one request may add.
const MOST_AT_ONCE: usize = 20;

/// The most entries of a conversation's `metadata`, and the longest name and text of an entry, in characters.
const METADATA: (usize, usize, usize) = (16, 64, 512);

/// Makes a conversation, with the items of the request if it has some.
pub(super) async fn create(caller: Caller, (): ()) -> Answer {
    if !caller.limits.keep_responses {
        return Err(failure::not_kept_here("conversation"));
    }
    let text = posted(&caller)?;
    let members = Members::read(text).ok_or_else(no_object)?;
    let items = new_items(&members, 0)?;
    let now = Moment::now().wall_ms;
    let conversation = ConversationRecord {
        id: new_id("conv"),
        owner: caller.owner.clone(),
        created: now,
        used: now,
        metadata: metadata(&members)?.unwrap_or_else(|| "{}".to_owned()),
    };
    let shown = shown(&conversation);
    caller.keeping.begin(conversation, items).await?;
    Ok(Reply::Json(shown))
}

/// Shows a conversation.
pub(super) async fn show(caller: Caller, id: String) -> Answer {
    find(&caller, &id).await.map(|found| Reply::Json(shown(&found)))
}

/// Replaces the `metadata` of a conversation.
pub(super) async fn change(caller: Caller, id: String) -> Answer {
    let members = Members::read(posted(&caller)?).ok_or_else(no_object)?;
    if let Some(metadata) = metadata(&members)? {
        let (owner, name) = (caller.owner.clone(), id.clone());
        let change = move |store: &dyn store::ResponseStore| {
            store.change_conversation(&owner, &name, &metadata)
        };
        caller.keeping.ask(change).await?;
    }
    find(&caller, &id).await.map(|found| Reply::Json(shown(&found)))
}

/// Deletes a conversation with its items.
pub(super) async fn delete(caller: Caller, id: String) -> Answer {
    let (owner, name) = (caller.owner.clone(), id.clone());
    if !caller.keeping.ask(move |store| store.forget_conversation(&owner, &name)).await? {
        return Err(failure::no_conversation(&id));
    }
    // A conversation has this id, so it needs no escapes.
    Ok(Reply::Json(format!(r#"{{"id":"{id}","object":"conversation.deleted","deleted":true}}"#)))
}

/// Lists the items of a conversation.
pub(super) async fn list_items(caller: Caller, id: String) -> Answer {
    let page = Page::of(caller.query.as_deref())?;
    let items = caller.keeping.items(&caller.owner, &id).await?;
    page.list(items.iter().map(shown_item).collect()).map(Reply::Json)
}

/// Adds items to a conversation.
pub(super) async fn add_items(caller: Caller, id: String) -> Answer {
    let before = caller.keeping.said(&caller.owner, &id, caller.limits.max_body).await?;
    let members = Members::read(posted(&caller)?).ok_or_else(no_object)?;
    let items = new_items(&members, before.len())?;
    if items.is_empty() {
        return Err(failure::invalid("items", "must have an item at least"));
    }
    let shown: Vec<_> = items.iter().map(shown_item).collect();
    let (keeping, owner, name) = (caller.keeping.clone(), caller.owner.clone(), id.clone());
    let adding = blocking(move || keeping.add(&owner, &name, items));
    match adding.await?? {
        true => Ok(Reply::Json(page::list(&shown, false))),
        false => Err(failure::no_conversation(&id)),
    }
}

/// Shows one item of a conversation.
pub(super) async fn show_item(caller: Caller, (id, item): (String, String)) -> Answer {
    let items = caller.keeping.items(&caller.owner, &id).await?;
    let found = items.iter().find(|known| known.id == item);
    let (_, shown) = shown_item(found.ok_or_else(|| failure::no_item(&item))?);
    Ok(Reply::Json(shown))
}

/// Deletes one item of a conversation, and shows the conversation.
pub(super) async fn delete_item(caller: Caller, (id, item): (String, String)) -> Answer {
    let conversation = find(&caller, &id).await?;
    let (owner, name) = (caller.owner.clone(), item.clone());
    if !caller.keeping.ask(move |store| store.forget_item(&owner, &id, &name)).await? {
        return Err(failure::no_item(&item));
    }
    Ok(Reply::Json(shown(&conversation)))
}

async fn find(caller: &Caller, id: &str) -> Result<ConversationRecord, ApiError> {
    let (owner, name) = (caller.owner.clone(), id.to_owned());
    let found = caller.keeping.ask(move |store| store.find_conversation(&owner, &name)).await?;
    found.ok_or_else(|| failure::no_conversation(id))
}

/// The text that was posted; an empty body counts as an empty object.
fn posted(caller: &Caller) -> Result<&str, ApiError> {
    let text = std::str::from_utf8(&caller.body).map_err(|_| no_object())?;
    Ok(if text.trim().is_empty() { "{}" } else { text })
}

fn no_object() -> ApiError {
    let words = "the request body must be a JSON object";
    ApiError::new(http::StatusCode::BAD_REQUEST, crate::error::Kind::Invalid, words)
}

/// The items that a request adds to a conversation. `before`: how many the conversation has.
fn new_items(members: &Members<'_>, before: usize) -> Result<Vec<ItemRecord>, ApiError> {
    let Some(list) = members.get("items") else { return Ok(Vec::new()) };
    let list: Option<Vec<&RawValue>> = serde_json::from_str(list.get()).ok();
    let list = list.filter(|list| list.iter().all(|item| item.get().starts_with('{')));
    let list = list.ok_or_else(|| failure::invalid("items", "must be a list of items"))?;
    if list.len() > MOST_AT_ONCE {
        return Err(failure::invalid(
            "items",
            "must have 20 items at most; send the others after them",
        ));
    }
    if before + list.len() > MOST_ITEMS {
        return Err(failure::conversation_full(before));
    }
    Ok(list.iter().map(|item| item_record(item.get())).collect())
}

/// The `metadata` of a request, checked and written again as JSON.
fn metadata(members: &Members<'_>) -> Result<Option<String>, ApiError> {
    let Some(raw) = members.get("metadata") else { return Ok(None) };
    let notes: Option<BTreeMap<String, String>> = serde_json::from_str(raw.get()).ok();
    let (most, name, text) = METADATA;
    let fits = |notes: &BTreeMap<String, String>| {
        let is_short = |(known, note): (&String, &String)| {
            known.chars().count() <= name && note.chars().count() <= text
        };
        notes.len() <= most && notes.iter().all(is_short)
    };
    let why =
        "must be an object of at most 16 texts, with names up to 64 and texts up to 512 characters";
    let notes = notes.filter(fits).ok_or_else(|| failure::invalid("metadata", why))?;
    Ok(Some(json::write(&notes)))
}

fn shown(conversation: &ConversationRecord) -> String {
    let ConversationRecord { id, created, metadata, .. } = conversation;
    let created = created / 1000;
    format!(
        r#"{{"id":"{id}","object":"conversation","created_at":{created},"metadata":{metadata}}}"#
    )
}

fn shown_item(item: &ItemRecord) -> (String, String) {
    (item.id.clone(), items::shown(&item.json, &item.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str, before: usize) -> Result<usize, ApiError> {
        new_items(&Members::read(text).unwrap(), before).map(|items| items.len())
    }

    #[test]
    fn items_come_in_lists_of_twenty_until_the_conversation_is_full() {
        let list = |count: usize| format!("{{\"items\":{}}}", items::list(vec!["{}"; count]));
        use super::items;
        assert_eq!(self::items(&list(20), 0), Ok(20));
        assert_eq!(self::items("{}", 0), Ok(0));
        let refused = |text: &str, before| self::items(text, before).unwrap_err();
        assert_eq!(refused(&list(21), 0).param.as_deref(), Some("items"));
        assert_eq!(refused(r#"{"items":["a"]}"#, 0).param.as_deref(), Some("items"));
        assert_eq!(self::items(&list(1), MOST_ITEMS - 1), Ok(1));
        assert_eq!(refused(&list(2), MOST_ITEMS - 1).code, Some("conversation_full"));
    }

    #[test]
    fn notes_are_few_and_short() {
        let read =
            |json: String| metadata(&Members::read(&format!("{{\"metadata\":{json}}}")).unwrap());
        let note = |name: usize, text: usize| {
            format!(r#"{{"{}":"{}"}}"#, "é".repeat(name), "é".repeat(text))
        };
        assert_eq!(read(note(64, 512)).unwrap(), Some(note(64, 512)));
        assert_eq!(read("null".to_owned()), Ok(None));
        let many: BTreeMap<String, &str> = (0..17).map(|at| (at.to_string(), "x")).collect();
        for bad in [note(65, 1), note(1, 513), json::write(&many), r#"{"a":1}"#.into(), "[]".into()]
        {
            assert_eq!(read(bad.clone()).unwrap_err().param.as_deref(), Some("metadata"), "{bad}");
        }
    }
}
