//! Models are loaded when they are asked for, and go when others need their room.

use std::{sync::Arc, time::Duration};

use backend::{BackendError, BackendRequest};
use base::{Endpoint, LoadState};
use futures_util::future::join_all;
use http::Method;
use tokio::time::Instant;

use crate::support::{Bench, SIZE, first, lives, processes, rest, until, within};

#[tokio::test(flavor = "multi_thread")]
async fn the_first_request_loads_and_all_who_wait_get_the_same_server() {
    let bench = Bench::new();
    bench.set(&[("a", "load=200"), ("b", "")]);
    assert_eq!(bench.part.models(), ["a", "b"]);
    assert_eq!(bench.load("a"), Some(LoadState::Unloaded));
    let pids = join_all((0..20).map(|_| bench.pid("a"))).await;
    let pids: Vec<u32> = pids.into_iter().collect::<Result<_, _>>().unwrap();
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    assert_eq!((bench.starts("a"), bench.starts("b")), (1, 0));
    let facts = &bench.part.facts()["a"];
    assert_eq!((facts.load, facts.memory_bytes), (Some(LoadState::Loaded), Some(SIZE)));
    assert!(facts.load_ms.unwrap() >= 200 && facts.last_used_ms.is_some(), "{facts:?}");
    bench.engines.shut_down().await;
    assert!(!lives(pids[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_unused_goes_and_a_model_in_use_stays() {
    let bench = Bench::new();
    bench.set(&[("a", ""), ("b", ""), ("c", ""), ("d", "")]);
    let mut in_use = bench.ask("a", 1_500).await.unwrap();
    let a = first(&mut in_use).await;
    let mut pids = Vec::new();
    for name in ["b", "c", "d", "b"] {
        pids.push(bench.pid(name).await.unwrap());
    }
    assert!(!lives(pids[0]), "b was unused for the longest time when d came");
    assert_eq!(bench.load("c"), Some(LoadState::Unloaded));
    assert_ne!(pids[3], pids[0]);
    assert!(rest(in_use).await.unwrap().ends_with("[DONE]\n\n"));
    assert_eq!(bench.pid("a").await.unwrap(), a);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_costs_little_beside_the_load() {
    let bench = Bench::with(|config| config.budget.ram = SIZE, |_| {});
    bench.set(&[("a", "load=100"), ("b", "load=100")]);
    bench.pid("a").await.unwrap();
    let mut costs = Vec::new();
    for name in ["b", "a"].repeat(10) {
        let begun = Instant::now();
        bench.pid(name).await.unwrap();
        costs.push(begun.elapsed().saturating_sub(Duration::from_millis(100)));
    }
    costs.sort_unstable();
    println!("a swap beside the load: median {:?}, longest {:?}", costs[10], costs[19]);
    assert!(costs[10] < Duration::from_millis(250), "{costs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_waits_no_longer_and_what_was_granted_is_given_back() {
    let bench = Bench::with(|config| config.budget.ram = SIZE, |_| {});
    bench.set(&[("a", "load=300"), ("b", "")]);
    let left = tokio::time::timeout(Duration::from_millis(100), bench.ask("a", 0)).await;
    assert!(left.is_err());
    // An answer that nobody reads, either.
    drop(bench.ask("a", 60_000).await.unwrap());
    bench.pid("b").await.unwrap();
    assert_eq!((bench.load("a"), bench.starts("a")), (Some(LoadState::Unloaded), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_loaded_and_unloaded_by_hand_but_not_in_use() {
    let bench = Bench::new();
    bench.set(&[("a", "child")]);
    let mut changes = bench.part.changes();
    within(bench.part.load("a")).await.unwrap();
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    let answer = bench.ask("a", 60_000).await.unwrap();
    let refused = within(bench.part.unload("a")).await.unwrap_err().without_address();
    assert_eq!(refused, "the model a: it is in use by 1 requests");
    drop(answer);
    let pid = bench.pid("a").await.unwrap();
    within(bench.part.unload("a")).await.unwrap();
    assert_eq!(processes(bench.path("a.gguf").to_str().unwrap()), Vec::<u32>::new());
    assert!(!lives(pid) && changes.has_changed().unwrap());
    let unknown = within(bench.part.load("x")).await.unwrap_err().without_address();
    assert_eq!(unknown, "the model x: this machine has no such model");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_model_goes_after_its_time_and_a_kept_one_does_not() {
    let bench = Bench::new();
    let ttl = Some(Duration::from_millis(200));
    let mut a = bench.model("a", "");
    let mut b = bench.model("b", "");
    (a.ttl, b.ttl, b.keep) = (ttl, ttl, true);
    bench.engines.set_models(vec![a, b]);
    let (a, b) = (bench.pid("a").await.unwrap(), bench.pid("b").await.unwrap());
    until("a has gone", || !lives(a)).await;
    assert!(lives(b));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_file_is_gone_finishes_its_jobs() {
    let bench = Bench::new();
    bench.set(&[("a", ""), ("b", "")]);
    let mut answer = bench.ask("a", 500).await.unwrap();
    let pid = first(&mut answer).await;
    bench.set(&[("b", "")]);
    assert_eq!(bench.part.models(), ["b"]);
    assert_eq!(bench.refusal("a").await, "the model a: this machine has no such model");
    assert!(rest(answer).await.unwrap().ends_with("[DONE]\n\n"));
    until("its server has gone", || !lives(pid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_model_gets_the_list_or_is_told_what_is_missing() {
    let bench = Bench::new();
    bench.set(&[("a", "")]);
    let request = |path: &str| BackendRequest {
        path_and_query: path.to_owned(),
        ..BackendRequest::default()
    };
    let list = bench
        .backend
        .send(BackendRequest { method: Method::GET, ..request("/v1/models?x") })
        .await
        .unwrap();
    assert!(rest(list).await.unwrap().contains(r#""id":"a""#));
    let bad = bench.backend.send(request("/v1/chat/completions")).await.unwrap();
    assert_eq!(bad.status, 400);
    assert!(rest(bad).await.unwrap().contains("names no model"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoints_are_those_of_the_first_server_that_runs() {
    let bench = Bench::new();
    bench.set(&[("a", "")]);
    assert_eq!(bench.part.endpoints(), None);
    bench.pid("a").await.unwrap();
    until("they are known", || bench.part.endpoints().is_some()).await;
    let served = bench.part.endpoints().unwrap();
    assert!(served.contains(Endpoint::ChatCompletions) && !served.contains(Endpoint::Embeddings));
    let facts = bench.part.facts();
    assert_eq!(facts["a"].load, Some(LoadState::Loaded), "asking for them is no use of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_wait_for_a_model() {
    let bench = Arc::new(Bench::with(|config| config.most_waiting = 3, |_| {}));
    bench.set(&[("a", "load=500")]);
    let all = join_all((0..5).map(|_| bench.pid("a"))).await;
    let refused =
        all.iter().filter(|it| matches!(it, Err(BackendError::Engine { busy: true, .. })));
    assert_eq!((refused.count(), all.iter().filter(|it| it.is_ok()).count()), (2, 3));
}
