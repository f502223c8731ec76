//! Whether every message has its test.

use std::collections::BTreeSet;

use testkit::workspace::client_messages;

/// The files with tests that are named after messages.
const FILES: [&str; 11] = [
    include_str!("agents.rs"),
    include_str!("auth.rs"),
    include_str!("cluster.rs"),
    include_str!("files.rs"),
    include_str!("git.rs"),
    include_str!("invitations.rs"),
    include_str!("moves.rs"),
    include_str!("projects.rs"),
    include_str!("sessions.rs"),
    include_str!("teams.rs"),
    include_str!("terminals.rs"),
];

/// `watch.rs` has the two messages of watches.
const WATCH: &str = include_str!("watch.rs");

#[test]
fn every_message_has_a_test_that_is_named_after_it_and_sends_it() {
    let tests = FILES.iter().chain([&WATCH]).flat_map(|file| tests(file));
    let covered: BTreeSet<&str> = tests.filter_map(|(name, body)| covers(name, body)).collect();
    let missing: Vec<_> =
        client_messages().iter().filter(|name| !covered.contains(*name)).collect();
    assert!(missing.is_empty(), "no test of {missing:?}");
}

/// The tests of a file: their names, and what is in them.
fn tests(file: &str) -> impl Iterator<Item = (&str, &str)> {
    file.split("#[tokio::test").skip(1).filter_map(|test| {
        let (_, from_name) = test.split_once("async fn ")?;
        from_name.split_once('(')
    })
}

/// The message that a test is named after, if it sends that.
fn covers(name: &str, body: &str) -> Option<&'static str> {
    let is_named = |message: &&&str| {
        name.strip_prefix(**message).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let message = client_messages().iter().filter(is_named).max_by_key(|message| message.len())?;
    body.contains(&format!("\"{message}\"")).then_some(*message)
}

#[test]
fn a_test_covers_the_message_of_the_longest_name_that_it_begins_with() {
    assert_eq!(
        covers("create_project_file_is_new", "\"create_project_file\""),
        Some("create_project_file")
    );
    assert_eq!(covers("create_project_is_saved", "\"create_project\""), Some("create_project"));
    assert_eq!(covers("create_project_is_saved", "another message"), None);
    assert_eq!(covers("a_server_that_stops", "\"auth\""), None);
    let file = "#[tokio::test]\nasync fn one() {}\n#[tokio::test(x)]\nasync fn two(a: b) { c }";
    assert_eq!(tests(file).map(|(name, _)| name).collect::<Vec<_>>(), ["one", "two"]);
}
