//! The plain form of stock peers, in both roles.

use protocol::mesh::{
    ClusterMessage as M, Dialect, WireId,
    cluster::{
        ModelQueryResponse, ModelTransferChunk, ModelTransferComplete, ModelTransferRequest,
    },
};

use super::*;

#[tokio::test]
async fn a_model_arrives_in_the_plain_form_too() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::new(1, &a), Machine::new(2, &b));
    b.offer("org/m", "a.gguf", &content(5, 3 * MIB + 7));
    b.offer("org/m", "b.json", b"{}");
    b.offer("org/m", "c", b"");
    connect(&a, &b, Kind::StockNear, straight());
    let transfer = end(a.pull("org/m")).await;
    assert_eq!(
        (transfer.state.as_str(), transfer.bytes),
        ("done", 3 * MIB as u64 + 9),
        "{transfer:?}"
    );
    assert!(a.arrived("org/m", "a.gguf") == Some(content(5, 3 * MIB + 7)));
    assert_eq!(a.arrived("org/m", "b.json").unwrap(), b"{}");
    assert_eq!(a.arrived("org/m", "c").unwrap(), b"");
    assert_eq!(b.transfers.shared.counts.read().bytes_out, 3 * MIB as u64 + 9);
}

#[tokio::test(start_paused = true)]
async fn no_model_passes_in_the_plain_form_through_a_relay() {
    let (_root, [a, b]) = dirs();
    let (a, b) = (Machine::new(1, &a), Machine::new(2, &b));
    b.offer("org/m", "a.gguf", b"x");
    connect(&a, &b, Kind::StockFar, straight());
    assert_eq!(end(a.pull("m")).await.code.as_deref(), Some("not_found"));
}

#[tokio::test]
async fn a_stock_peer_is_sent_chunks_as_it_knows_them() {
    let (_root, [b]) = dirs();
    let b = Machine::new(2, &b);
    b.offer("org/m", "a", &content(6, MIB + 1));
    b.offer("org/m", "b", b"xyz");
    let (link, mut far) = link(&id(1), Kind::StockNear);
    let query = br#"{"modelQuery":{"_0":{"modelID":"org/m"}}}"#;
    b.receives(&link, query);
    let (message, dialect) = far.hears().await;
    assert_eq!(dialect, Dialect::Wrapped);
    let M::ModelQueryResponse(response) = message else { panic!("{message:?}") };
    assert_eq!((response.available, response.total_size_bytes), (true, Some(MIB as u64 + 4)));
    let id = "550E8400-E29B-41D4-A716-446655440000";
    let request =
        format!(r#"{{"modelTransferRequest":{{"_0":{{"transferID":"{id}","modelID":"org/m"}}}}}}"#);
    b.receives(&link, request.as_bytes());
    let mut chunks = Vec::new();
    let complete = loop {
        match far.hears().await.0 {
            M::ModelTransferChunk(it) => {
                assert_eq!(it.transfer_id.as_str(), id);
                chunks.push((it.file_name, it.offset, it.data.len(), it.is_last_chunk));
            }
            other => break other,
        }
    };
    let whole = MIB.div_ceil(3) * 4;
    let expected = [("a", 0, whole, false), ("a", MIB as u64, 4, true), ("b", 0, 4, true)];
    let expected = expected.map(|(name, at, len, last)| (name.to_owned(), at, len, last));
    assert_eq!(chunks, expected);
    assert!(matches!(complete, M::ModelTransferComplete(it) if it.model_id == "org/m"));
    // A missing model is answered with the one error that stock peers know.
    let request =
        format!(r#"{{"modelTransferRequest":{{"_0":{{"transferID":"{id}","modelID":"n"}}}}}}"#);
    b.receives(&link, request.as_bytes());
    b.machine.tasks.close();
    testkit::within("the end", b.machine.tasks.wait()).await;
    let M::InferenceError(error) = far.hears().await.0 else { panic!("no error") };
    assert_eq!(error.request_id.as_str(), id);
    assert!(error.error_message.contains('n'), "{error:?}");
    far.expect_quiet();
}

/// A pull of `m`, of `total` bytes, from a stock peer that the test plays.
async fn pulling(a: &Machine, total: u64) -> (Pull, Arc<Link>, FarEnd, WireId) {
    let (link, mut far) = link(&id(9), Kind::StockNear);
    a.peers.link(&link, |_, _| true).unwrap();
    let pull = a.pull("m");
    assert!(matches!(far.hears().await.0, M::ModelQuery(_)));
    let (model_id, total_size_bytes) = ("m".to_owned(), Some(total));
    let has = ModelQueryResponse { model_id, available: true, total_size_bytes };
    a.transfers.message(&link, M::ModelQueryResponse(has));
    let (message, _) = far.hears().await;
    let M::ModelTransferRequest(ModelTransferRequest { transfer_id, .. }) = message else {
        panic!("{message:?}")
    };
    (pull, link, far, transfer_id)
}

fn chunk(id: &WireId, name: &str, offset: u64, data: &str) -> M {
    M::ModelTransferChunk(ModelTransferChunk {
        transfer_id: id.clone(),
        file_name: name.to_owned(),
        offset,
        data: data.to_owned(),
        is_last_chunk: false,
    })
}

fn complete(id: &WireId) -> M {
    let (transfer_id, model_id) = (id.clone(), "m".to_owned());
    M::ModelTransferComplete(ModelTransferComplete { transfer_id, model_id })
}

/// A chunk: of which file, where, and in base64.
type SentChunk<'a> = (&'a str, u64, &'a str);

#[tokio::test(start_paused = true)]
async fn files_of_a_stock_peer_stay_in_the_transfers_folder_and_bounds() {
    let long = "A".repeat(3 * MIB);
    let cases: [(&str, &[SentChunk<'_>]); 9] = [
        ("above", &[("../a", 0, "eA==")]),
        ("absolute", &[("/tmp/a", 0, "eA==")]),
        ("a hole", &[("a", 1, "eA==")]),
        ("past the end", &[("a", u64::MAX, "eA==")]),
        ("an overlap that changes", &[("a", 0, "eHk="), ("a", 0, "eA=="), ("a", 1, "eA==")]),
        ("too much", &[("a", 0, "eHl6eHl6"), ("b", 0, "eHl6eHl6")]),
        ("no base64", &[("a", 0, "?")]),
        ("too long", &[("a", 0, &long)]),
        ("too little", &[("a", 0, "eA==")]),
    ];
    for (what, chunks) in cases {
        let (_root, [a]) = dirs();
        let a = Machine::new(1, &a);
        let (pull, link, _far, id) = pulling(&a, 10).await;
        for (name, offset, data) in chunks {
            a.transfers.message(&link, chunk(&id, name, *offset, data));
        }
        a.transfers.message(&link, complete(&id));
        let transfer = end(pull).await;
        assert_eq!(transfer.code.as_deref(), Some("corrupt"), "{what}: {transfer:?}");
        let left: Vec<_> = std::fs::read_dir(a.dir.join("models")).unwrap().flatten().collect();
        assert!(left.iter().all(|it| it.file_name().as_encoded_bytes()[0] == b'.'), "{what}");
        assert!(!a.dir.join("a").exists());
    }
}

#[tokio::test]
async fn a_stock_peer_that_falls_silent_is_given_up_unless_all_was_sent() {
    for (data, state) in [("eA==", "waiting"), ("eHk=", "done")] {
        let (_root, [a]) = dirs();
        let a = Machine::new(1, &a);
        let (pull, link, _far, id) = pulling(&a, 2).await;
        a.transfers.message(&link, chunk(&id, "a", 0, data));
        reaches(&pull, "running").await;
        pass(32).await;
        reaches(&pull, state).await;
        link.close("test");
        a.stops().await;
    }
}

#[tokio::test]
async fn chunks_of_another_peer_are_not_taken() {
    let (_root, [a]) = dirs();
    let a = Machine::new(1, &a);
    let (pull, own, _far, id) = pulling(&a, 1).await;
    let (other, _other_far) = link(&super::id(8), Kind::StockNear);
    a.transfers.message(&other, chunk(&id, "a", 0, "eQ=="));
    a.transfers.message(&other, complete(&id));
    a.transfers.message(&own, chunk(&id, "a", 0, "eA=="));
    a.transfers.message(&own, complete(&id));
    assert_eq!(end(pull).await.state, "done");
    assert_eq!(a.arrived("m", "a").unwrap(), b"x");
    assert_eq!(a.transfers.shared.counts.read().unasked, 2);
}
