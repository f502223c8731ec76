//! Peers that lie, are silent, or ask for too much.

use protocol::mesh::{
    ClusterMessage as M, Dialect, WireId,
    cluster::{
        ModelManifestRequest, ModelPieceRequest, ModelTransferError, ModelTreeRequest, PieceKind,
        encode,
    },
};

use super::*;

const SIZE: usize = 6 * MIB + 1;

/// The most wrong pieces that a peer is counted for: all seven may be on their way when it is let go for the
/// third, and so may the first two, which were asked of it again.
const MOST_WRONG: u64 = 7 + 2;

fn offering(number: u8, dir: &Path) -> Machine {
    let machine = Machine::new(number, dir);
    machine.offer("org/m", "a.gguf", &content(3, SIZE));
    machine
}

/// Spoils payloads of one kind.
fn spoil(kind: u8) -> Meddle {
    Box::new(move |payload| {
        if payload[0] == kind {
            *payload.last_mut().unwrap() ^= 1;
        }
        true
    })
}

/// Changes what a peer tells that a model is made of.
fn lie(change: impl Fn(&mut protocol::mesh::cluster::ModelManifest) + Send + 'static) -> Meddle {
    Box::new(move |payload| {
        if payload[0] == b'{'
            && let M::ModelManifest(mut manifest) = decode(payload).unwrap().message
        {
            change(&mut manifest);
            *payload = encode(&M::ModelManifest(manifest), Dialect::Flat);
        }
        true
    })
}

#[tokio::test]
async fn wrong_pieces_and_trees_are_not_taken_and_others_send_them() {
    for kind in [1, 2] {
        let (_root, [a, b, c]) = dirs();
        let (a, b, c) = (Machine::new(1, &a), offering(2, &b), offering(3, &c));
        connect(&a, &b, Kind::WarrenNear, spoil(kind));
        let pull = a.pull("org/m");
        let met = async || a.transfers.shared.counts.read().corrupt > 0;
        testkit::eventually("the first wrong one", Duration::from_secs(20), met).await;
        connect(&a, &c, Kind::WarrenNear, straight());
        assert_eq!(end(pull).await.state, "done");
        assert!(a.arrived("org/m", "a.gguf") == Some(content(3, SIZE)));
        let corrupt = a.transfers.shared.counts.read().corrupt;
        assert!((1..=MOST_WRONG).contains(&corrupt), "{corrupt}");
    }
}

#[tokio::test]
async fn a_pull_from_liars_alone_fails_and_says_so() {
    for kind in [1, 2] {
        let (_root, [a, b]) = dirs();
        let (a, b) = (Machine::new(1, &a), offering(2, &b));
        connect(&a, &b, Kind::WarrenNear, spoil(kind));
        let pull = a.pull("org/m");
        reaches(&pull, "waiting").await;
        let corrupt = a.transfers.shared.counts.read().corrupt;
        assert!(corrupt <= MOST_WRONG, "{corrupt}");
        while pull.now().state != "failed" {
            pass(5).await;
        }
        let transfer = end(pull).await;
        assert_eq!(
            (transfer.state.as_str(), transfer.code.as_deref()),
            ("failed", Some("corrupt"))
        );
        assert_eq!(a.arrived("org/m", "a.gguf"), None);
    }
}

#[tokio::test]
async fn a_manifest_that_breaks_a_rule_is_ignored() {
    let lies: [fn(&mut protocol::mesh::cluster::ModelManifest); 6] = [
        |it| it.files[0].name = "../a".to_owned(),
        |it| it.files[0].name = "/etc/passwd".to_owned(),
        |it| it.files[0].root = "x".repeat(64),
        |it| it.files[0].size = u64::MAX,
        |it| it.files.push(it.files[0].clone()),
        |it| it.model_id = "n".to_owned(),
    ];
    for change in lies {
        let (_root, [a, b]) = dirs();
        let (a, b) = (Machine::new(1, &a), offering(2, &b));
        connect(&a, &b, Kind::WarrenNear, lie(change));
        let pull = a.pull("org/m");
        let has_manifest = async || !b.transfers.serving.list().is_empty();
        testkit::eventually("the manifest", Duration::from_secs(20), has_manifest).await;
        pass(12).await;
        assert_eq!(end(pull).await.code.as_deref(), Some("not_found"));
        assert!(!a.dir.join("models/org/m").exists() && !a.dir.join("models/a").exists());
    }
}

#[tokio::test]
async fn a_model_that_does_not_fit_is_not_begun() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::new(1, &a), offering(2, &b));
    connect(&a, &b, Kind::WarrenNear, lie(|it| it.files[0].size = 7 << 40));
    let transfer = end(a.pull("org/m")).await;
    assert_eq!(transfer.code.as_deref(), Some("no_space"), "{transfer:?}");
}

#[tokio::test]
async fn a_silent_peer_holds_up_nobody() {
    let (_root, [a, b, c]) = dirs();
    let (a, b, c) = (Machine::new(1, &a), offering(2, &b), offering(3, &c));
    let mute: Meddle = Box::new(|payload| {
        if payload[0] == 1 {
            payload.clear();
        }
        true
    });
    connect(&a, &b, Kind::WarrenNear, mute);
    connect(&a, &c, Kind::WarrenNear, straight());
    assert_eq!(end(a.pull("org/m")).await.state, "done");
}

#[tokio::test]
async fn a_source_that_stays_away_for_ten_minutes_is_lost_and_arrived_pieces_stay() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::new(1, &a), offering(2, &b));
    connect(&a, &b, Kind::WarrenNear, cut_after(25));
    let pull = a.pull("org/m");
    reaches(&pull, "waiting").await;
    pass(602).await;
    let transfer = end(pull).await;
    assert_eq!(transfer.code.as_deref(), Some("lost"));
    connect(&a, &b, Kind::WarrenNear, straight());
    assert_eq!(end(a.pull("org/m")).await.state, "done");
    assert!(transfer.bytes > 0);
    assert_eq!(a.transfers.shared.counts.read().bytes_in, SIZE as u64, "nothing was fetched twice");
}

#[tokio::test]
async fn files_that_change_while_they_are_sent_are_fetched_anew() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::new(1, &a), offering(2, &b));
    let path = b.dir.join("offered/org/m/a.gguf");
    let (mut changed, there) = (false, path.clone());
    let change: Meddle = Box::new(move |payload| {
        if payload[0] == 1 && !std::mem::replace(&mut changed, true) {
            std::fs::write(&there, content(4, SIZE + 2 * MIB)).unwrap();
        }
        true
    });
    connect(&a, &b, Kind::WarrenNear, change);
    let pull = a.pull("org/m");
    reaches(&pull, "waiting").await;
    pass(60).await;
    assert_eq!(end(pull).await.state, "done");
    assert!(a.arrived("org/m", "a.gguf") == Some(content(4, SIZE + 2 * MIB)));
    assert!(models::arrival::unfinished(&a.dir.join("models")).is_empty(), "nothing is left over");
}

#[tokio::test]
async fn unrequested_pieces_are_counted_and_refused() {
    let (_root, [a]) = dirs();
    let a = Machine::new(1, &a);
    let (link, mut far) = link(&id(2), Kind::WarrenNear);
    let slice = Bytes::from_static(b"x");
    let (kind, transfer) = (PieceKind::Data, [1; 16]);
    let piece = Piece { kind, transfer, file: 0, piece: 0, offset: 0, length: 1, slice };
    a.receives(&link, &[&piece.head()[..], b"x"].concat());
    let id = r#""transferID":"00000000-0000-0000-0000-000000000000""#;
    for message in [
        format!(r#"{{"modelTransferChunk":{{{id},"fileName":"a","offset":0,"data":"eA=="}}}}"#),
        format!(r#"{{"modelTransferComplete":{{{id},"modelID":"org/m"}}}}"#),
        format!(r#"{{"modelManifest":{{{id},"modelID":"org/m","files":[]}}}}"#),
        format!(r#"{{"modelTransferError":{{{id},"errorMessage":"no"}}}}"#),
        r#"{"modelQueryResponse":{"modelID":"org/m","available":true}}"#.to_owned(),
    ] {
        a.receives(&link, message.as_bytes());
    }
    assert_eq!(a.transfers.shared.counts.read().unasked, 6);
    far.expect_quiet();
    assert!(!a.dir.exists(), "nothing was written");
}

/// A machine that offers `m`, and a link to it in the hands of the test.
async fn with_request(dir: &Path) -> (Machine, Arc<Link>, FarEnd, WireId) {
    let b = offering(2, dir);
    let (link, mut far) = link(&id(1), Kind::WarrenNear);
    let transfer_id = WireId::from_random(7);
    let request =
        ModelManifestRequest { transfer_id: transfer_id.clone(), model_id: "org/m".to_owned() };
    b.transfers.message(&link, M::ModelManifestRequest(request));
    let (message, _) = far.hears().await;
    assert!(matches!(message, M::ModelManifest(manifest) if manifest.files.len() == 1));
    (b, link, far, transfer_id)
}

fn pieces(id: &WireId, file: u32, first: u32, count: u32) -> M {
    let (transfer_id, model_id) = (id.clone(), "org/m".to_owned());
    M::ModelPieceRequest(ModelPieceRequest { transfer_id, model_id, file, first, count })
}

async fn refused(far: &mut FarEnd) -> String {
    match far.hears().await.0 {
        M::ModelTransferError(ModelTransferError { error_message, .. }) => error_message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn pieces_outside_of_a_model_or_a_transfer_are_refused() {
    let (_root, [b]) = dirs();
    let (b, link, mut far, id) = with_request(&b).await;
    let end = SIZE.div_ceil(MIB) as u32;
    for (file, first, count) in
        [(1, 0, 1), (0, end, 1), (0, 0, end + 1), (0, u32::MAX, 64), (0, 0, 0), (0, 0, u32::MAX)]
    {
        b.transfers.message(&link, pieces(&id, file, first, count));
        assert_eq!(refused(&mut far).await, "the model has nothing there");
    }
    let (transfer_id, model_id) = (WireId::from_random(8), "org/m".to_owned());
    let tree = ModelTreeRequest { transfer_id, model_id, file: 0 };
    b.transfers.message(&link, M::ModelTreeRequest(tree));
    assert!(refused(&mut far).await.starts_with("there is no such transfer"));
    assert_eq!(b.transfers.shared.counts.read().refused, 7);
}

#[tokio::test]
async fn requests_and_transfers_of_a_link_are_bounded_and_end_with_it() {
    let (_root, [b]) = dirs();
    let (b, link, mut far, id) = with_request(&b).await;
    // Nothing is read, so what is asked for waits: some of it was taken already.
    for _ in 0..80 {
        b.transfers.message(&link, pieces(&id, 0, 0, 1));
    }
    assert_eq!(refused(&mut far).await, "too many requests wait on this link");
    for number in 0..16 {
        let (transfer_id, model_id) = (WireId::from_random(100 + number), "org/m".to_owned());
        let request = ModelManifestRequest { transfer_id, model_id };
        b.transfers.message(&link, M::ModelManifestRequest(request));
    }
    let mut last = String::new();
    while last != "too many transfers run over this link" {
        last = refused(&mut far).await;
    }
    link.close("gone");
    b.transfers.link_closed(&link);
    assert!(b.transfers.serving.list().is_empty());
    b.machine.tasks.close();
    testkit::within("the sender's end", b.machine.tasks.wait()).await;
}

#[tokio::test]
async fn a_transfer_that_is_not_wanted_any_more_stops() {
    let (_root, [b]) = dirs();
    let (b, link, mut far, id) = with_request(&b).await;
    b.transfers.message(&link, pieces(&id, 0, 0, 7));
    let error_message = "enough".to_owned();
    let error = ModelTransferError { transfer_id: id.clone(), error_message };
    b.transfers.message(&link, M::ModelTransferError(error));
    assert!(b.transfers.serving.list().is_empty());
    let mut payloads = 0;
    while let Ok(Some(_)) = tokio::time::timeout(Duration::from_millis(300), far.0.next()).await {
        payloads += 1;
    }
    assert!(payloads <= 16, "no more than was read ahead: {payloads}");
}

/// Has a piece of a transfer sent, once its manifest is known.
async fn sends(b: &Machine, link: &Arc<Link>, id: &WireId) {
    let sent = || {
        let all = b.transfers.serving.list().into_iter();
        all.filter(|it| it.id == id.to_string()).map(|it| it.bytes).collect::<Vec<_>>()
    };
    let soon = Duration::from_secs(30);
    testkit::eventually("its manifest", soon, async || sent() == [0]).await;
    b.transfers.message(link, pieces(id, 0, 0, 1));
    testkit::eventually("a piece", soon, async || sent() == [MIB as u64]).await;
}

#[tokio::test]
async fn transfers_that_the_peer_gave_up_end_and_are_listed_as_ended() {
    let (_root, [b]) = dirs();
    let (b, link, mut far, id) = with_request(&b).await;
    tokio::spawn(async move { while far.0.next().await.is_some() {} });
    let begin = |id: &WireId| {
        let (transfer_id, model_id) = (id.clone(), "org/m".to_owned());
        let request = ModelManifestRequest { transfer_id, model_id };
        b.transfers.message(&link, M::ModelManifestRequest(request));
    };
    let ended = || {
        let all = b.transfers.shared.all_ended().into_iter();
        all.map(|it| (it.id, it.state)).collect::<Vec<_>>()
    };
    sends(&b, &link, &id).await;
    begin(&id);
    let again = (id.to_string(), "cancelled".to_owned());
    assert_eq!(ended(), std::slice::from_ref(&again), "it was asked for again");
    sends(&b, &link, &id).await;
    pass(601).await;
    begin(&WireId::from_random(8));
    assert_eq!(ended(), [(id.to_string(), "failed".to_owned()), again], "it was idle");
    link.close("gone");
    b.transfers.link_closed(&link);
    b.machine.tasks.close();
    testkit::within("the sender's end", b.machine.tasks.wait()).await;
}
