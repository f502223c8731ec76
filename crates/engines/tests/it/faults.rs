//! Servers that fail: each failure is reported clearly, and nothing is left running.

use std::time::Duration;

use base::LoadState;
use tokio::{io::AsyncWriteExt, time::Instant};

use crate::support::{
    Bench, Signal, first, kill, lives, processes, rest, signal, stands_still, until, within,
};

fn quick(deadline: u64) -> Bench {
    Bench::with(|config| config.start_deadline = Duration::from_millis(deadline), |_| {})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_command_says_what_to_do() {
    let missing = |program: &mut engines::Program| program.command[0] = "no-such-server".to_owned();
    let bench = Bench::with(|_| {}, missing);
    bench.set(&[("a", "")]);
    let told = bench.refusal("a").await;
    assert!(told.contains("fake is not found") && told.contains("install it"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_while_it_loads_is_told_with_its_last_words() {
    let bench = Bench::new();
    bench.set(&[("a", "exit=3"), ("b", "memory")]);
    let told = bench.refusal("a").await;
    let all = "the model a: fake ended with code 3 while it loaded the model; its last words: loading the model | \
               it is broken";
    assert_eq!(told, all);
    let told = bench.refusal("b").await;
    assert!(told.contains("memory ran out: choose a smaller quantisation"), "{told}");
    assert_eq!(bench.engines.last_lines("a"), ["loading the model", "it is broken"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_model_or_is_not_there_is_told_without_its_folder() {
    let bench = Bench::new();
    let (a, b) = (bench.model("a", ""), bench.model("b", ""));
    std::fs::write(&a.file, "no such thing").unwrap();
    std::fs::remove_file(&b.file).unwrap();
    bench.engines.set_models(vec![a, b]);
    let told = bench.refusal("a").await;
    assert!(told.ends_with("error: invalid magic in a.gguf"), "{told}");
    let told = bench.refusal("b").await;
    assert!(told.contains("its file cannot be read: No such file"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_is_ended_at_its_deadline() {
    let bench = quick(400);
    bench.set(&[("a", "hang"), ("b", "sick")]);
    let told = bench.refusal("a").await;
    assert!(told.contains("never listened on its port") && told.contains("{port}"), "{told}");
    let told = bench.refusal("b").await;
    assert!(told.contains("listens, but its model was not ready"), "{told}");
    let dir = bench.dir.path().to_str().unwrap();
    assert_eq!(processes(&format!("{dir}/a.gguf")), Vec::<u32>::new());
    assert_eq!(processes(&format!("{dir}/b.gguf")), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_writes_for_ever_serves_and_fills_no_disk() {
    let bench = Bench::new();
    bench.set(&[("a", "flood")]);
    for _ in 0..20 {
        bench.pid("a").await.unwrap();
    }
    let log = std::fs::metadata(bench.path("data/logs/a.log")).unwrap();
    assert!(log.len() < 1 << 20, "{}", log.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ignores_sigterm_is_killed_after_its_grace() {
    let bench = Bench::new();
    bench.set(&[("a", "deaf")]);
    let pid = bench.pid("a").await.unwrap();
    let begun = Instant::now();
    within(bench.part.unload("a")).await.unwrap();
    assert!(!lives(pid));
    assert!(begun.elapsed() >= Duration::from_millis(450), "it was asked politely first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_ends_its_jobs_clearly_and_the_next_request_starts_another() {
    let bench = Bench::new();
    bench.set(&[("a", "")]);
    let mut answer = bench.ask("a", 60_000).await.unwrap();
    let pid = first(&mut answer).await;
    kill(pid);
    let told = rest(answer).await.unwrap_err().without_address();
    assert!(told.starts_with("the model a: fake was killed (SIGKILL) while it ran"), "{told}");
    let next = bench.pid("a").await.unwrap();
    assert_ne!(next, pid);
    // Nobody uses it when it dies, and nobody has noticed when the next request comes.
    kill(next);
    let third = bench.pid("a").await.unwrap();
    assert_ne!(third, next);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_replaced_after_a_request_has_waited_in_vain() {
    let short = |config: &mut engines::EnginesConfig| {
        config.timeouts.first_byte = Duration::from_millis(300);
    };
    let bench = Bench::with(short, |_| {});
    bench.set(&[("a", "")]);
    let pid = bench.pid("a").await.unwrap();
    signal(pid, Signal::SIGSTOP);
    until("it stands still", || stands_still(pid)).await;
    let timeout = bench.pid("a").await.unwrap_err();
    assert!(matches!(timeout, backend::BackendError::Timeout { .. }), "{timeout}");
    until("it was ended", || !lives(pid)).await;
    assert_ne!(bench.pid("a").await.unwrap(), pid);
}

/// The port that a model's server was told to listen on, as soon as there is one.
async fn port_of(bench: &Bench, model: &str) -> u16 {
    let file = bench.path(&format!("{model}.gguf"));
    let file = file.to_str().unwrap();
    until("its server has begun", || !processes(file).is_empty()).await;
    let line = std::fs::read(format!("/proc/{}/cmdline", processes(file)[0])).unwrap();
    let line = String::from_utf8(line).unwrap();
    line.trim_end_matches('\0').rsplit('\0').next().unwrap().parse().unwrap()
}

/// Takes the port before the server does, and says that all is well.
async fn impostor(port: u16) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_another_program_takes_is_left_to_it() {
    let bench = Bench::new();
    bench.set(&[("a", "late=1000")]);
    let taken = async { impostor(port_of(&bench, "a").await).await };
    let answered = tokio::select! {
        answered = bench.pid("a") => answered,
        () = taken => panic!("it answers for ever"),
    };
    assert_ne!(answered.unwrap(), 0);
    assert_eq!(bench.starts("a"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_keeps_failing_is_refused_for_a_while() {
    let bench = Bench::with(|config| config.failures.delay = Duration::from_millis(50), |_| {});
    bench.set(&[("a", "exit=1"), ("b", "")]);
    for _ in 0..3 {
        assert!(bench.refusal("a").await.contains("ended with code 1"));
    }
    let told = bench.refusal("a").await;
    assert!(told.contains("failed 3 times in a row") && told.contains("it is broken"), "{told}");
    assert_eq!(bench.starts("a"), 3);
    bench.pid("b").await.unwrap();
    // Another file is another model.
    let mut mended = bench.model("a", "");
    mended.facts.file_bytes = Some(9);
    bench.engines.set_models(vec![mended]);
    bench.pid("a").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_load_is_tried_again_at_the_next_request() {
    let bench = Bench::new();
    let once = format!("once={} exit=1", bench.path("once").display());
    bench.set(&[("a", &once)]);
    assert!(bench.refusal("a").await.contains("ended with code 1"));
    bench.pid("a").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_is_stopped_leaves_nothing() {
    let bench = Bench::new();
    bench.set(&[("a", "load=60000"), ("b", "")]);
    let waiting = tokio::time::timeout(Duration::from_millis(200), bench.ask("a", 0));
    assert!(waiting.await.is_err());
    assert_eq!(bench.load("a"), Some(LoadState::Loading));
    let file = bench.path("a.gguf");
    bench.set(&[("b", "")]);
    until("it has ended", || processes(file.to_str().unwrap()).is_empty()).await;
    bench.pid("b").await.unwrap();
}
