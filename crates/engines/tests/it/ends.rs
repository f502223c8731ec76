//! Whatever dies first, nothing is left running.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use crate::support::{Bench, host, kill, processes, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_leaves_no_process() {
    let bench = Bench::new();
    let model = bench.model("m", "child deaf");
    let file = model.file.to_str().unwrap().to_owned();
    let mut worker = Command::new(host());
    let worker = worker.arg("worker").arg(bench.path("worker")).arg(&file);
    let mut worker = worker.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(worker.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "loaded\n");
    let all = processes(&file);
    assert_eq!(all.len(), 3, "the worker, its server, and what that has started: {all:?}");
    kill(worker.id());
    worker.wait().unwrap();
    until("nothing is left", || processes(&file).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_model_engines_end_their_servers() {
    let bench = Bench::new();
    bench.set(&[("a", "deaf child"), ("b", "load=60000")]);
    bench.pid("a").await.unwrap();
    let waiting = tokio::time::timeout(std::time::Duration::from_millis(200), bench.ask("b", 0));
    assert!(waiting.await.is_err());
    let dir = bench.dir.path().to_str().unwrap().to_owned();
    until("all have begun", || processes(&dir).len() == 3).await;
    drop(bench.engines);
    until("nothing is left", || processes(&dir).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_supervisor_takes_its_servers_along_and_another_is_started() {
    let bench = Bench::new();
    bench.set(&[("a", "")]);
    let pid = bench.pid("a").await.unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let parent: u32 =
        stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
    kill(parent);
    until("its server has gone", || !crate::support::lives(pid)).await;
    assert_ne!(bench.pid("a").await.unwrap(), pid);
}
