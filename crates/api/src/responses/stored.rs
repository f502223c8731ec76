//! `/v1/responses/{id}` and below: stored responses.

use access::Moment;
use bytes::Bytes;
use store::{ChainBounds, ResponseRecord};

use super::{
    background,
    caller::{Answer, Caller, Reply},
    chain::MOST_LINKS,
    failure, items,
    members::Members,
    page::Page,
    response_state::on_one_line,
};
use crate::{blocking::blocking, error::ApiError};

/// Shows a response; with `stream=true` its events as a stream, beginning after the one numbered `starting_after`.
pub(super) async fn show(caller: Caller, id: String) -> Answer {
    let record = caller.keeping.find(&caller.owner, &id).await?;
    match caller.parameter("stream").as_deref() {
        Some("true") => stream(&caller, record).await,
        _ => Ok(Reply::Json(settled(&caller, record).await?.response)),
    }
}

/// Deletes a response. If it is still being made, its task ends.
pub(super) async fn delete(caller: Caller, id: String) -> Answer {
    let (owner, name) = (caller.owner.clone(), id.clone());
    if !caller.keeping.ask(move |store| store.forget_response(&owner, &name)).await? {
        return Err(failure::no_response(&id));
    }
    caller.keeping.background().end(&id);
    // A response has this id, so it needs no escapes.
    Ok(Reply::Json(format!(r#"{{"id":"{id}","object":"response","deleted":true}}"#)))
}

/// Cancels a response that is made in the background. A response that has ended stays as it is.
pub(super) async fn cancel(caller: Caller, id: String) -> Answer {
    let record = caller.keeping.find(&caller.owner, &id).await?;
    if !is_background(&record.response) {
        return Err(failure::not_in_background());
    }
    let record = settled(&caller, record).await?;
    if record.beat.is_none() {
        return Ok(Reply::Json(record.response));
    }
    let cancelled = background::with_status(&record.response, "cancelled");
    let ended = end(&caller, &record, cancelled.clone()).await?;
    caller.keeping.background().end(&id);
    match ended {
        true => Ok(Reply::Json(cancelled)),
        false => Ok(Reply::Json(caller.keeping.find(&caller.owner, &id).await?.response)),
    }
}

/// Lists the items that a response was made from: its own request's, and before them those of the responses that it
/// continues.
pub(super) async fn input_items(caller: Caller, id: String) -> Answer {
    let page = Page::of(caller.query.as_deref())?;
    let most = ChainBounds { links: MOST_LINKS, bytes: caller.limits.max_body as u64 };
    let links = caller.keeping.links(&caller.owner, &id, most).await?;
    if links.is_empty() {
        return Err(failure::no_response(&id));
    }
    let list = blocking(move || page.list(made_of(&links)));
    Ok(Reply::Json(list.await??))
}

/// The items that the first of these responses was made from, the oldest first, each with its id. `links`: that
/// response and those that it continues, the newest first.
fn made_of(links: &[ResponseRecord]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (at, link) in links.iter().enumerate().rev() {
        let said = items::of_list(&link.input);
        let answered = if at == 0 { Vec::new() } else { items::of_response(&link.response) };
        let digits = link.id.trim_start_matches("resp_");
        for (number, item) in said.into_iter().chain(answered).enumerate() {
            let item = item.get();
            let own = items::id(item);
            let id = own.unwrap_or_else(|| format!("{}_{digits}{number:04x}", items::prefix(item)));
            all.push((id.clone(), items::shown(item, &id)));
        }
    }
    all
}

async fn stream(caller: &Caller, record: ResponseRecord) -> Result<Reply, ApiError> {
    let after = caller.number("starting_after")?;
    if !is_background(&record.response) {
        return Err(failure::no_stream());
    }
    if let Some(log) = caller.keeping.background().log(&record.id) {
        return Ok(Reply::Events(log.reader(after, caller.limits.keepalive)));
    }
    let record = settled(caller, record).await?;
    if record.beat.is_some() {
        return Err(failure::no_stream());
    }
    Ok(Reply::Events(
        last_event(&record.response, after.map_or(0, |after| after.saturating_add(1))).into(),
    ))
}

/// The event that ends the stream of a response that has ended already.
fn last_event(response: &str, number: u64) -> Bytes {
    let status = Members::read(response).and_then(|members| members.text("status"));
    let kind = match status.as_deref() {
        Some("incomplete") => "response.incomplete",
        Some("failed" | "cancelled") => "response.failed",
        _ => "response.completed",
    };
    let response = on_one_line(response);
    let data = format!(r#"{{"type":"{kind}","sequence_number":{number},"response":{response}}}"#);
    format!("event: {kind}\ndata: {data}\n\n").into()
}

fn is_background(response: &str) -> bool {
    let members = Members::read(response);
    members.and_then(|members| members.get("background")).is_some_and(|raw| raw.get() == "true")
}

/// The response as it is; or ended as failed, if the server that made it has died.
async fn settled(caller: &Caller, record: ResponseRecord) -> Result<ResponseRecord, ApiError> {
    let Some(beat) = record.beat else { return Ok(record) };
    let Some(lost) = background::lost(&record.response, beat, Moment::now().wall_ms) else {
        return Ok(record);
    };
    match end(caller, &record, lost.clone()).await? {
        true => Ok(ResponseRecord { response: lost, beat: None, ..record }),
        false => caller.keeping.find(&caller.owner, &record.id).await,
    }
}

/// Ends a response; `text` is its final text. Returns whether it had not ended before.
async fn end(caller: &Caller, record: &ResponseRecord, text: String) -> Result<bool, ApiError> {
    let (owner, id) = (caller.owner.clone(), record.id.clone());
    caller.keeping.ask(move |store| store.change_running(&owner, &id, Some(&text), None)).await
}

#[cfg(test)]
mod tests {
    use base::KeyId;

    use super::*;

    fn link(id: &str, input: &str, output: &str) -> ResponseRecord {
        ResponseRecord {
            id: id.to_owned(),
            owner: KeyId::local(),
            previous: None,
            conversation: None,
            created: 0,
            beat: None,
            input: input.to_owned(),
            response: format!(r#"{{"output":{output}}}"#),
        }
    }

    #[test]
    fn a_response_is_made_of_what_was_said_before_and_not_of_itself() {
        let links = [
            link("resp_b", r#"[{"role":"user","content":"more"}]"#, r#"[{"id":"not"}]"#),
            link("resp_a", r#"[{"role":"user","content":"hi"}]"#, r#"[{"id":"msg_1"}]"#),
        ];
        let ids: Vec<String> = made_of(&links).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["msg_a0000", "msg_1", "msg_b0000"]);
        assert_eq!(made_of(&links), made_of(&links), "the ids stay");
    }

    #[test]
    fn the_last_event_says_how_a_response_ended() {
        let of = |status: &str| last_event(&format!(r#"{{"status":"{status}"}}"#), 7);
        assert!(of("completed").starts_with(b"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":7,"));
        assert!(of("incomplete").starts_with(b"event: response.incomplete\n"));
        assert!(of("cancelled").starts_with(b"event: response.failed\n"));
    }

    #[test]
    fn a_response_of_several_lines_is_one_line_of_the_last_event() {
        let event = last_event("{\n  \"status\": \"completed\",\r\n  \"output\": []\r\n}", 7);
        let text = std::str::from_utf8(&event).unwrap().strip_suffix("\n\n").unwrap();
        let (_, data) = text.split_once("\ndata: ").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert!(!text.contains("data: \n") && text.lines().count() == 2, "{text}");
        assert_eq!(data["response"]["status"], "completed");
    }
}
