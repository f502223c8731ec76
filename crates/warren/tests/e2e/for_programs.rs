//! The command line as programs and shells use it: errors as JSON, completions, manual pages, lists in a pipe.

use serde_json::{Value, json};

use crate::{
    cli::{make_key, warren, warren_within},
    common::serve,
};

/// The error in the last line of standard error, and the code of the process.
async fn failed(args: &[&str]) -> (Value, Option<i32>) {
    let ran = warren(args).await;
    let last = ran.err.lines().last().unwrap_or_default().to_owned();
    let error: Value = serde_json::from_str(&last).unwrap_or_else(|e| panic!("{e}: {ran:?}"));
    assert_eq!(ran.out, "", "{ran:?}");
    (error["error"].clone(), ran.code)
}

#[tokio::test]
async fn under_json_every_error_is_an_object_with_its_exit_code() {
    let daemon = serve().start().await;
    let (url, data) = (daemon.url(), daemon.data_dir().display().to_string());
    let at = ["--server", &url, "--data-dir", &data, "--json"];
    for (args, code, exit) in [
        (&[&["key", "show", "nobody"][..], &at].concat()[..], "not_found", 4),
        (
            &["status", "--json", "--server", "http://127.0.0.1:1", "--admin-token", "t"],
            "unreachable",
            3,
        ),
        (&["key", "create", "--json"], "usage", 2),
        (&["status", "--json", "--no-such-flag"], "usage", 2),
        (&["status", "--json", "--admin-token", "wrong", "--server", &url], "failed", 1),
    ] {
        let (error, status) = failed(args).await;
        assert_eq!((&error["code"], &error["exit"]), (&json!(code), &json!(exit)), "{args:?}");
        assert_eq!(status, Some(exit), "{args:?}");
        let words = error["message"].as_str().unwrap();
        assert!(!words.is_empty() && !words.starts_with("error:"), "{words}");
    }
    let plain = warren(&["key", "create"]).await;
    assert!(plain.err.starts_with("error: ") && plain.code == Some(2), "{plain:?}");
}

#[tokio::test]
async fn completions_and_manual_pages_are_printed_and_help_is_no_error() {
    let script = warren(&["completions", "bash"]).await;
    assert!(script.code == Some(0) && script.out.contains("_warren()"), "{:?}", script.err);
    let page = warren(&["man", "key", "remove"]).await;
    assert!(page.code == Some(0) && page.out.contains(".TH"), "{page:?}");
    let unknown = warren(&["man", "kye"]).await;
    assert!(unknown.code == Some(2) && unknown.err.contains("no command kye"), "{unknown:?}");
    for (args, code) in [(&["-h"][..], 0), (&["--help"], 0), (&["--version"], 0), (&[], 2)] {
        let help = warren(args).await;
        assert_eq!(help.code, Some(code), "{help:?}");
    }
    let brief = warren(&["-h"]).await.out;
    assert!(brief.contains("room, mesh, cluster") && !brief.contains("WARREN_CONFIG"), "{brief}");
}

#[tokio::test]
async fn a_list_in_a_pipe_fits_80_columns_and_its_ids_are_whole() {
    let daemon = serve().start().await;
    let key = json!({"name": "a-name-that-is-rather-long-for-a-key", "models": ["a-long-model-name-q4_k_m"]});
    let (id, _) = make_key(&daemon, key).await;
    let data = daemon.data_dir().display().to_string();
    let args = ["key", "list", "--server", &daemon.url(), "--data-dir", &data];
    for (columns, widest) in [(None, 80), (Some("60"), 60), (Some("nonsense"), 80)] {
        let list = warren_within(columns, &args).await;
        assert!(list.out.contains(&id) && list.out.contains("(no room for"), "{list:?}");
        let rows: Vec<&str> = list.out.lines().filter(|line| !line.starts_with('(')).collect();
        assert!(rows.len() >= 2, "{list:?}");
        assert!(rows.iter().all(|row| row.chars().count() <= widest), "{list:?}");
    }
    let whole = warren(&args).await.out;
    assert!(whole.contains("a-long-model-name-q4_k_m") && !whole.contains('…'), "{whole}");
}
