//! Messages, as they are written on the wire: the specification's own examples, ours, and what is
//! wrong with others.

mod bounds;
mod examples;
mod refused;

use serde_json::Value;

/// The specification's examples of requests, with whole ids.
const REQUESTS: &str = include_str!("data/requests.jsonl");
/// Requests that are ours, and others with fields of ours.
const REQUESTS_OURS: &str = include_str!("data/requests_ours.jsonl");
/// The specification's examples of replies, with whole ids and what its dots leave out.
const REPLIES: &str = include_str!("data/replies.jsonl");
/// Replies that are ours, and others with fields of ours.
const REPLIES_OURS: &str = include_str!("data/replies_ours.jsonl");

/// The lines of both, each with its value.
fn examples(spec: &'static str, ours: &'static str) -> impl Iterator<Item = (&'static str, Value)> {
    spec.lines().chain(ours.lines()).map(|line| (line, serde_json::from_str(line).unwrap()))
}

fn requests() -> impl Iterator<Item = (&'static str, Value)> {
    examples(REQUESTS, REQUESTS_OURS)
}

fn replies() -> impl Iterator<Item = (&'static str, Value)> {
    examples(REPLIES, REPLIES_OURS)
}
