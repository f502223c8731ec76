//! The lists that are asked for while they are shown.

use client::{ClientError, admin::KeyJson};
use serde_json::{Value, json};

use super::{at, drawn, health, poll, press, snapshots, started, text};
use crate::app::{
    App,
    event::{Event, PollAnswers},
    pages::PageNews,
};

/// A server's answer about the list that is shown.
fn page(app: &mut App, follow: u64, news: PageNews) {
    app.handle(at(20), Event::Page { follow, news: Box::new(news) });
}

fn peer(id: u8, name: &str, more: &Value) -> Value {
    let mut peer = json!({
        "id": format!("{id:02x}").repeat(32), "name": name, "link": "lan", "sealed": true, "status": "ok",
        "address": "10.0.0.7:9180", "models": ["qwen3-coder:30b-a3b-instruct-q4_K_M"], "capacity": 4,
        "queue_depth": 1, "generating": true, "throttle": 60, "thermal": "nominal",
        "tokens_per_second": 41.5, "chip": "Apple M3 Max", "ram_gb": 64.0, "warren": "0.1.0",
        "heard_secs": 2,
    });
    let (all, more) = (peer.as_object_mut().unwrap(), more.as_object().unwrap().clone());
    all.extend(more);
    peer
}

fn peers(app: &mut App) {
    press(app, "6");
    let stock = json!({"link": "none", "status": "unlinked", "warren": null, "heard_secs": null,
        "tokens_per_second": null, "throttle": 100});
    let all = json!({"peers": [
        peer(1, "mac-studio", &json!({})), peer(2, "", &stock),
    ]});
    page(app, 1, PageNews::Mesh(Ok(serde_json::from_value(all).unwrap())));
}

fn key(id: &str, name: &str) -> KeyJson {
    serde_json::from_value(json!({
        "id": id, "name": name, "prefix": "wk_01234567", "scopes": ["inference", "workspace:write"],
        "models": [], "limits": {"rpm": null, "tpm": null, "concurrent": null, "budget": null}, "room": null,
        "created_at": "2026-11-01T00:00:00Z", "expires_at": "2027-01-31T00:00:00Z",
        "revoked_at": null, "last_used_at": "2026-11-20T16:00:00Z",
    }))
    .unwrap()
}

fn keys(app: &mut App) {
    press(app, "8");
    let mut revoked = key("k-2", "gone");
    revoked.revoked_at = Some(at(0));
    page(app, 1, PageNews::Keys(Ok(vec![key("k-1", "laptop"), revoked, key("k-3", "ci")])));
}

#[test]
fn the_peers_of_the_mesh() {
    snapshots("mesh", peers);
    snapshots("mesh_whole", |app| {
        peers(app);
        press(app, "⏎");
    });
}

#[test]
fn a_server_without_a_mesh_says_so() {
    let mut app = started(80, 24, false);
    press(&mut app, "6");
    let words = "this server takes no part in the mesh".to_owned();
    page(&mut app, 1, PageNews::Mesh(Err(ClientError::NotFound { words })));
    assert!(text(&drawn(&app)).contains("takes no part in the mesh"));
}

#[test]
fn usage_by_key_names_the_keys() {
    snapshots("usage", |app| {
        let names = [("k-1".to_owned(), "laptop".to_owned())].into_iter().collect();
        let polled =
            PollAnswers { health: Ok(health()), stats: None, requests: None, rooms: None, names };
        poll(app, 1, polled);
        press(app, "7");
        let row = |key: &str, requests: u64| {
            json!({"key": key, "requests": requests, "prompt_tokens": 1_200_000, "completion_tokens": 34_000,
                "total_tokens": 1_234_000, "estimated": 0, "errors": 2})
        };
        let peer = format!("peer:{}", "d0".repeat(32));
        let rows = json!([row("k-1", 310), row(&peer, 12), row("local", 3)]);
        let totals = row("", 325);
        let report = json!({"rows": rows, "totals": totals});
        page(app, 1, PageNews::Usage(Ok(serde_json::from_value(report).unwrap())));
    });
}

#[test]
fn the_keys_that_are_not_revoked() {
    snapshots("keys", keys);
    snapshots("keys_revoke", |app| {
        keys(app);
        press(app, "↓r");
    });
    snapshots("keys_made", |app| {
        keys(app);
        let made = KeyJson {
            key: Some(format!("wk_{}", "0123456789abcdef".repeat(4))),
            ..key("k-4", "phone")
        };
        let news = Box::new(PageNews::KeyMade(Ok(made)));
        app.handle(at(21), Event::KeyChanged { server: 0, news });
    });
}

#[test]
fn long_names_are_shortened_in_the_middle() {
    let mut app = started(80, 24, false);
    let mut health = health();
    let workers = &mut health.details.as_mut().unwrap().workers;
    for (worker, quantisation) in workers.iter_mut().zip(["q4_K_M", "q8_0"]) {
        worker.models = vec![format!("qwen3-coder:30b-a3b-instruct-{quantisation}")];
    }
    let polled = PollAnswers {
        health: Ok(health),
        stats: None,
        requests: None,
        rooms: None,
        names: <_>::default(),
    };
    poll(&mut app, 1, polled);
    let shown = text(&drawn(&app));
    assert!(shown.contains("q4_K_M") && shown.contains("q8_0"), "{shown}");
}
