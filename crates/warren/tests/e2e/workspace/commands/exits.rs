//! How commands fail: by what exit code, and in which words.

use testkit::RefusingPort;

use crate::{
    cli::warren,
    workspace::kit::{WorkspaceHost, serving},
};

#[tokio::test]
async fn a_server_that_is_not_there_is_3_and_what_is_not_there_is_4() {
    let refusing = RefusingPort::take();
    let url = format!("http://{}", refusing.address());
    for args in [
        &["session", "list"][..],
        &["project", "list"],
        &["files", "ls", "site"],
        &["git", "status", "site"],
        &["team", "list"],
        &["open", "--detached"],
    ] {
        let ran = warren(&[args, &["--server", &url, "--token", "t"]].concat()).await;
        assert_eq!(ran.code, Some(3), "{args:?}: {ran:?}");
    }
    let place = WorkspaceHost::start().await;
    for (words, args) in [
        (["session", "show"], &["nobody"][..]),
        (["session", "kill"], &["nobody"]),
        (["session", "rename"], &["nobody", "n"]),
        (["session", "send"], &["nobody", "text"]),
        (["session", "history"], &["nobody"]),
        (["session", "attach"], &["nobody"]),
        (["project", "show"], &["nobody"]),
        (["project", "rm"], &["nobody"]),
        (["files", "ls"], &["nobody"]),
        (["files", "cat"], &["nobody:a"]),
        (["git", "status"], &["nobody"]),
        (["team", "show"], &["nobody"]),
        (["team", "rm"], &["nobody"]),
    ] {
        let ran = place.cli(&words, args).await;
        assert_eq!(ran.code, Some(4), "{words:?}: {ran:?}");
        assert!(ran.err.contains("nobody"), "{words:?}: {ran:?}");
    }
}

#[tokio::test]
async fn a_wrong_token_is_1_and_told_how_to_get_one_and_wrong_usage_is_2() {
    let place = WorkspaceHost::start().await;
    let url = place.daemon.url();
    let ran = warren(&["session", "list", "--server", &url, "--token", "wrong"]).await;
    assert!(ran.code == Some(1) && ran.err.contains("warren key create"), "{ran:?}");
    for (words, args) in [
        (&["open"][..], &["--", "sh"][..]),
        (&["session", "new"], &["--wait"]),
        (&["session", "nonsense"], &[]),
        (&["session", "show"], &[]),
    ] {
        let ran = place.cli(words, args).await;
        assert_eq!(ran.code, Some(2), "{words:?}: {ran:?}");
    }
    let failed = place.cli(&["open"], &["--detached", "--", "no-such-program-at-all"]).await;
    assert!(failed.code == Some(1) && failed.err.contains("no-such-program-at-all"), "{failed:?}");
}

#[tokio::test]
async fn on_ones_own_machine_no_token_has_to_be_given() {
    let place = WorkspaceHost::of(serving().bare()).await;
    let (url, data) = (place.daemon.url(), place.daemon.data_dir().display().to_string());
    let ran = warren(&["session", "list", "--json", "--server", &url, "--data-dir", &data]).await;
    assert_eq!(ran.json(), serde_json::json!({"sessions": []}));
}
