//! Settings that a server refuses to start with, and those that it warns of.

use super::servers::node;
use crate::{cli::warren, common::serve};

#[tokio::test]
async fn a_stranger_s_hello_is_not_answered_unless_allowed() {
    let refused = warren(&["serve", "--mesh-listen", "0.0.0.0:0", "--mesh-share", "peers"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("--mesh-passcode"), "{refused:?}");
    let anyone = node("x").set("--mesh-share", "anyone").start().await;
    anyone.line_with("OPEN: every peer").await;
}

#[tokio::test]
async fn values_that_mean_nothing_are_told_with_their_setting() {
    let cases = [
        ("--mesh-peer", "http://10.0.0.1"),
        ("--mesh-relay", "relay.example.org"),
        ("--mesh-share", "friends"),
        ("--mesh-listen", "9180"),
        ("--mesh-passcode", " "),
    ];
    for (flag, value) in cases {
        let refused = warren(&["serve", flag, value]).await;
        assert_eq!(refused.code, Some(2), "{flag}: {refused:?}");
        assert!(refused.err.contains(flag.trim_start_matches('-')), "{flag}: {refused:?}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut process = serve().set("--mesh-listen", &address).spawn();
    assert_eq!(process.exit().await, Some(1));
    assert!(process.log().contains("--mesh-listen"), "{}", process.log());
}
