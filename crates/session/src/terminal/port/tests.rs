//! Output of servers, and output that only looks like it.

use proptest::prelude::*;

use super::*;

fn found(text: &str) -> Vec<u16> {
    let mut detector = Detector::new();
    detector.push(text);
    detector.candidates().collect()
}

#[test]
fn ports_that_servers_print_are_found() {
    for (text, port) in [
        ("  ➜  Local:   http://localhost:5173/\n", 5173),
        (
            "  \x1b[32m➜\x1b[39m  \x1b[1mLocal\x1b[22m:   \x1b[36mhttp://localhost:\x1b[1m5174\x1b[22m/\x1b[39m\n",
            5174,
        ),
        ("   - Local:        http://localhost:3000\r\n", 3000),
        ("Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...\n", 8000),
        ("INFO:     Uvicorn running on http://127.0.0.1:8001 (Press CTRL+C to quit)\n", 8001),
        ("Starting development server at http://127.0.0.1:8002/\n", 8002),
        (" * Running on http://127.0.0.1:5000\n", 5000),
        ("listening on :8080\n", 8080),
        ("2026/11/22 10:21:19 Listening on :8081\n", 8081),
        ("Example app listening on port 3001\n", 3001),
        ("Server listening on 3002\n", 3002),
        ("Server is running on port: 4000.\n", 4000),
        ("Tomcat started on port(s): 8082 (http) with context path ''\n", 8082),
        ("* Listening on tcp://[::1]:3003\n", 3003),
        ("Listening on http://[::]:8083/\n", 8083),
        ("listening on 0.0.0.0:3004\n", 3004),
        ("Server started at *:3005\n", 3005),
        ("ready - started server on :::3006\n", 3006),
        ("PHP 8.2 Development Server (http://app.localhost:8084) started\n", 8084),
        ("http://mymachine:8888/lab?token=abc\n", 8888),
        ("tput \x1b(Blocalhost:\x1b(B\x1b[m3007\x1b(B\x1b[m \n", 3007),
        ("\x1b]0;a title\x07http://localhost:3008\n", 3008),
        ("\x1b[2K\x1b[1Ghttp://localhost:3009\x1b[K", 3009),
        ("Port 5173 is in use, using http://localhost:5175 instead\n", 5175),
    ] {
        assert_eq!(found(text), [port], "{text:?}");
    }
}

#[test]
fn numbers_that_are_no_servers_port_are_not_found() {
    for text in [
        "",
        "localhost:\n",
        "src/main.rs:10:5: error\n",
        "10:21:19 started\n",
        "Port 5173 is in use, trying another one...\n",
        "Error: listen EADDRINUSE: address already in use :::3000\n",
        "connect ECONNREFUSED 127.0.0.1:5432\n",
        "http://localhost:0/ http://localhost:65536/ http://localhost:80a/\n",
        "this supports 8080 and reports 3000, starting\n",
        "listening on 127.0.0.1\n",
        "running at 1.5:3\n",
        "std::fmt::3000 is ready\n",
        "the link is \x1b]8;;http://localhost:3000\x1b\\here\x1b]8;;\x1b\\\n",
    ] {
        assert!(found(text).is_empty(), "{text:?}");
    }
}

#[test]
fn a_port_counts_when_something_follows_it() {
    let mut detector = Detector::new();
    assert_eq!(detector.push("http://localhost:51"), None);
    assert_eq!(detector.push("73"), None);
    assert_eq!(detector.push("/"), Some(5173));
    assert_eq!(detector.push("again http://localhost:5173/\n"), None);
}

#[test]
fn several_are_kept_in_order_and_the_first_new_one_is_told() {
    let mut detector = Detector::new();
    detector.push("http://localhost:1/\n");
    assert_eq!(detector.push("127.0.0.1:1 [::1]:2 http://a:3/\nlocalhost:4\n"), Some(2));
    assert!(detector.candidates().eq([1, 2, 3, 4]));
}

#[test]
fn of_too_many_candidates_the_oldest_are_dropped() {
    let mut detector = Detector::new();
    for port in 1..=100 {
        assert_eq!(detector.push(&format!("localhost:{port}\n")), Some(port));
    }
    assert!(detector.candidates().eq(85..=100));
}

#[test]
fn a_line_without_end_takes_no_more_memory_and_hides_nothing() {
    let mut detector = Detector::new();
    for _ in 0..10_000 {
        assert_eq!(detector.push("no port here, and no end "), None);
        assert!(detector.plain.line().len() < 1024);
    }
    assert_eq!(detector.push("http://localhost:5173/"), Some(5173));
}

#[test]
fn a_sequence_without_end_hides_no_more_than_its_line() {
    for begun in ["\x1b]0;title", "\x1b[12;", "\x1bP", "\x1b"] {
        let mut detector = Detector::new();
        detector.push(begun);
        detector.push(&"1".repeat(10_000));
        assert_eq!(detector.push("\nhttp://localhost:5173/"), Some(5173), "{begun:?}");
    }
}

fn line() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec!["localhost", "127.0.0.1", "0.0.0.0", "[::1]", "*"]);
    let url = (host, 1_u16..).prop_map(|(host, port)| format!("http://{host}:{port}/x "));
    let sgr = prop::sample::select(vec!["\x1b[1m", "\x1b[0;32m", "\x1b(B", "\x1b[K", "\n", "➜"]);
    let piece = prop_oneof![url, sgr.prop_map(str::to_owned), "[ -~]{0,12}", ":[0-9]{1,6}"];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat() + "\n")
}

proptest! {
    #[test]
    fn cut_anywhere_the_same_is_found(
        text in line(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let starts: Vec<_> = text.char_indices().map(|(at, _)| at).collect();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| starts[cut.index(starts.len())]).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut detector = Detector::new();
        for pair in cuts.windows(2) {
            detector.push(&text[pair[0]..pair[1]]);
        }
        let mut pieces: Vec<_> = detector.candidates().collect();
        let mut whole = found(&text);
        pieces.sort_unstable();
        whole.sort_unstable();
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn any_text_is_borne(text in "(\\PC|[\x1b\n\r\\[\\]:0-9]){0,300}") {
        let mut detector = Detector::new();
        detector.push(&text);
        prop_assert!(detector.candidates().count() <= MAX_CANDIDATES);
    }
}
