//! Models between Warrens.

use super::*;
use crate::{testing::with_passcode, transfer::PullError};

const BIG: usize = 9 * MIB + 5;

fn offers(machine: &Machine) {
    machine.offer("org/m", "model.gguf", &content(1, BIG));
    machine.offer("org/m", "sub/part.bin", &content(2, 2 * MIB));
    machine.offer("org/m", "config.json", b"{}");
    machine.offer("org/m", "empty", b"");
}

fn has_all(machine: &Machine) {
    assert!(machine.arrived("org/m", "model.gguf") == Some(content(1, BIG)));
    assert!(machine.arrived("org/m", "sub/part.bin") == Some(content(2, 2 * MIB)));
    assert_eq!(machine.arrived("org/m", "config.json").unwrap(), b"{}");
    assert_eq!(machine.arrived("org/m", "empty").unwrap(), b"");
}

const ALL: u64 = (BIG + 2 * MIB + 2) as u64;

#[tokio::test]
async fn a_model_arrives_unchanged_and_both_sides_list_the_transfer() {
    for kind in [Kind::WarrenNear, Kind::WarrenFar] {
        let (_root, [a, b]) = dirs();
        let (a, b) = (Machine::new(1, &a), Machine::new(2, &b));
        offers(&b);
        connect(&a, &b, kind, straight());
        let transfer = end(a.pull("org/m")).await;
        assert_eq!(
            (transfer.state.as_str(), transfer.code.as_deref()),
            ("done", None),
            "{transfer:?}"
        );
        assert_eq!((transfer.bytes, transfer.total), (ALL, Some(ALL)));
        assert_eq!(transfer.detail.unwrap(), a.dir.join("models/org/m").display().to_string());
        has_all(&a);
        let counts = a.transfers.shared.counts.read();
        assert_eq!((counts.bytes_in, counts.unasked, counts.done), (ALL, 0, 1));
        assert_eq!(b.transfers.shared.counts.read().bytes_out, ALL);
        let out =
            async || b.transfers.list().iter().any(|it| it.state == "done" && it.bytes == ALL);
        testkit::eventually("the sender to know", Duration::from_secs(5), out).await;
        assert_eq!(a.transfers.list()[0].direction, "in");
        // The model can be passed on once it has arrived.
        let here = a.transfers.shared.shelf.all().await;
        assert_eq!(here.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["org/m"]);
        assert_eq!(end(a.pull("org/m")).await.state, "done", "what is there is not fetched again");
    }
}

/// Changes a byte of each piece of what has arrived so far.
fn damage(machine: &Machine) {
    let arriving = std::fs::read_dir(machine.dir.join("models/.arriving")).unwrap();
    let arrivals = arriving.map(|entry| entry.unwrap().path().join("files"));
    for files in arrivals.filter(|files| files.is_dir()) {
        for file in std::fs::read_dir(files).unwrap() {
            let path = file.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.iter_mut().skip(7).step_by(MIB).for_each(|byte| *byte ^= 1);
            std::fs::write(path, bytes).unwrap();
        }
    }
}

#[tokio::test]
async fn pieces_that_the_disk_damaged_are_fetched_again_whatever_the_journal_says() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::new(1, &a), Machine::new(2, &b));
    offers(&b);
    connect(&a, &b, Kind::WarrenNear, cut_after(40));
    let pull = a.pull("org/m");
    // It waits before its first piece, too.
    let is_cut = async || pull.now().state == "waiting" && pull.now().bytes > 0;
    testkit::eventually("the cut", Duration::from_secs(20), is_cut).await;
    damage(&a);
    connect(&a, &b, Kind::WarrenNear, straight());
    let transfer = end(pull).await;
    assert_eq!((transfer.state.as_str(), transfer.code.as_deref()), ("done", None), "{transfer:?}");
    has_all(&a);
}

#[tokio::test]
async fn a_pull_takes_from_several_and_goes_on_when_one_is_lost() {
    let (_root, [a, b, c]) = dirs();
    let (a, b, c) = (Machine::new(1, &a), Machine::new(2, &b), Machine::new(3, &c));
    offers(&b);
    offers(&c);
    connect(&a, &b, Kind::WarrenNear, cut_after(20));
    connect(&a, &c, Kind::WarrenNear, straight());
    let transfer = end(a.pull("org/m")).await;
    assert_eq!(transfer.state, "done", "{transfer:?}");
    has_all(&a);
    let out = [&b, &c].map(|it| it.transfers.shared.counts.read().bytes_out);
    assert!(out[0] > 0 && out[1] > 0, "{out:?}");
}

#[tokio::test]
async fn a_pull_waits_when_nobody_is_left_and_goes_on_when_somebody_comes() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::new(1, &a), Machine::new(2, &b));
    offers(&b);
    connect(&a, &b, Kind::WarrenNear, cut_after(30));
    let pull = a.pull("org/m");
    // Bytes from before the cut may still be written when it learns that no peer is left.
    let waits = async || pull.now().state == "waiting" && pull.now().bytes > 0;
    testkit::eventually("waiting", Duration::from_secs(20), waits).await;
    connect(&a, &b, Kind::WarrenNear, straight());
    assert_eq!(end(pull).await.state, "done");
    has_all(&a);
    assert_eq!(a.transfers.shared.counts.read().bytes_in, ALL, "nothing was fetched twice");
}

#[tokio::test]
async fn a_pull_goes_on_after_any_interruption_of_the_program() {
    let (_root, [a, b]) = dirs();
    let b = Machine::new(2, &b);
    offers(&b);
    let mut fetched = 0;
    for count in [1, 4, 11, 29, 47, 60, usize::MAX] {
        let own = Machine::new(1, &a);
        connect(&own, &b, Kind::WarrenNear, cut_after(count));
        let pull = own.pull("org/m");
        let stops = async || {
            matches!(pull.now().state.as_str(), "waiting" | "done" | "failed")
                || (count < 8
                    && own.transfers.serving.list().is_empty()
                    && own.peers.all().iter().all(|it| it.link().is_none()))
        };
        testkit::eventually("the cut", Duration::from_secs(20), stops).await;
        if count == usize::MAX {
            assert_eq!(end(pull).await.state, "done");
            has_all(&own);
        }
        let transfers = Arc::clone(&own.transfers);
        own.stops().await;
        fetched += transfers.shared.counts.read().bytes_in;
    }
    assert_eq!(fetched, ALL, "nothing was fetched twice");
}

#[tokio::test]
async fn a_second_caller_joins_a_pull_and_pulls_at_once_are_bounded() {
    let (_root, [a]) = dirs();
    let a = Machine::new(1, &a);
    let first = a.pull("m");
    assert_eq!(first.now().id, a.pull("m").now().id);
    for model in ["n", "o", "p"] {
        a.pull(model);
    }
    let over = a.transfers.pull("q", None);
    assert_eq!(over.unwrap_err(), PullError::TooMany(4));
    let bad = a.transfers.pull("../m", None);
    assert!(matches!(bad, Err(PullError::Name(_))));
    assert!(a.transfers.cancel(&first.now().id));
    let transfer = end(first).await;
    assert_eq!((transfer.state.as_str(), transfer.code), ("cancelled", None));
    assert!(!a.transfers.cancel(&transfer.id));
    a.stops().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_nobody_has_is_not_found() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::new(1, &a), Machine::new(2, &b));
    connect(&a, &b, Kind::WarrenNear, straight());
    let transfer = end(a.pull("m")).await;
    assert_eq!((transfer.state.as_str(), transfer.code.as_deref()), ("failed", Some("not_found")));
    assert_eq!(transfer.detail.unwrap(), "no peer that is linked passes on m");
}

#[tokio::test(start_paused = true)]
async fn an_unshared_model_looks_missing() {
    let (_root, [a, b]) = dirs();
    let share = Share { with: Sharing::Anyone, ..Share::default() };
    let (a, b) = (Machine::new(1, &a), Machine::sharing(2, &b, share));
    offers(&b);
    connect(&a, &b, Kind::WarrenNear, straight());
    assert_eq!(end(a.pull("org/m")).await.code.as_deref(), Some("not_found"));
    assert!(b.transfers.shared.counts.read().refused > 0);
}

#[tokio::test]
async fn peers_are_asked_for_the_models_that_they_pass_on() {
    let (_root, [a, b, c]) = dirs();
    let (a, b, c) = (Machine::new(1, &a), Machine::new(2, &b), Machine::new(3, &c));
    offers(&b);
    connect(&a, &b, Kind::WarrenNear, straight());
    connect(&a, &c, Kind::WarrenNear, straight());
    let offers = a.transfers.offered_by_peers(&["org/m".into(), "n".into()]).await;
    assert_eq!(offers.len(), 1);
    assert_eq!((&offers[0].peer, offers[0].model.as_str(), offers[0].bytes), (&b.id, "org/m", ALL));
}

#[tokio::test]
async fn a_model_with_other_content_is_not_overwritten() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::new(1, &a), Machine::new(2, &b));
    offers(&b);
    let there = a.dir.join("models/org/m");
    std::fs::create_dir_all(&there).unwrap();
    std::fs::write(there.join("mine"), b"mine").unwrap();
    connect(&a, &b, Kind::WarrenNear, straight());
    assert_eq!(end(a.pull("org/m")).await.code.as_deref(), Some("exists"));
    assert_eq!(a.arrived("org/m", "mine").unwrap(), b"mine");
}

/// A link over which nothing was proved.
fn unproved(number: u8) -> (Arc<Link>, FarEnd) {
    let (mut link, far) = link(&id(number), Kind::WarrenNear);
    Arc::get_mut(&mut link).unwrap().proved = false;
    (link, far)
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_may_not_be_asked_is_not_asked_for_models_either() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::of(1, &a, with_passcode("swift")), Machine::new(2, &b));
    let (linked, mut linked_end) = unproved(3);
    a.peers.link(&linked, |_, _| true).unwrap();
    let (reached, mut reached_end) = unproved(4);
    a.wan.is_given("relay.test", Arc::clone(&reached));
    let listed = a.peers.meet(&id(4)).unwrap();
    listed.set_listed(&"relay.test".into(), true);
    listed.learn(|facts| facts.warren = Some("1".to_owned()));
    let from = a.transfers.pull("n", Some(id(3))).unwrap();
    assert!(end(from).await.detail.unwrap().contains("has not proved the passcode"));
    offers(&b);
    connect(&a, &b, Kind::WarrenNear, straight());
    assert_eq!(end(a.pull("n")).await.code.as_deref(), Some("not_found"));
    assert_eq!(Arc::strong_count(&reached), 1, "the other was reached, and let go");
    assert!(a.transfers.offered_by_peers(&["n".into()]).await.is_empty());
    linked_end.expect_quiet();
    reached_end.expect_quiet();
    // Files are read and written on other threads, which know no paused time.
    tokio::time::resume();
    let transfer = end(a.pull("org/m")).await;
    assert_eq!(transfer.state, "done", "{transfer:?}");
}
