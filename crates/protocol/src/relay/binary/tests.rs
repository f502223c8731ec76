//! Frames byte for byte, bad ones, and any of them there and back.

use proptest::{prelude::*, sample::select};

use super::*;
use crate::relay::TokenCounts;

fn request(body: &'static [u8]) -> ServerFrame {
    let head = RequestHead {
        request_id: "r-1".into(),
        model: "m".into(),
        endpoint_path: "/v1/x?y=1".into(),
        is_streaming: true,
        headers: [("a", &b"1"[..]), ("a", b"\xe9")].into_iter().collect(),
        body_len: 9,
    };
    ServerFrame::Request { job: 0x0102_0304, head, body: Bytes::from_static(body) }
}

static BOTH: [Version; 2] = [Version::Two, Version::Three];

fn server(version: Version, wire: &[u8], frame: ServerFrame) {
    assert_eq!(frame.encode(version), wire);
    assert_eq!(ServerFrame::decode(Bytes::copy_from_slice(wire)), Ok(frame));
}

fn worker(version: Version, wire: &[u8], frame: WorkerFrame) {
    assert_eq!(frame.encode(version), wire);
    assert_eq!(WorkerFrame::decode(Bytes::copy_from_slice(wire)), Ok(frame));
}

#[test]
fn server_frames_byte_for_byte() {
    let meta = "{\"request_id\":\"r-1\",\"model\":\"m\",\"endpoint_path\":\"/v1/x?y=1\",\
         \"is_streaming\":true,\"headers\":[[\"a\",\"1\"],[\"a\",\"é\"]],\"body_len\":9}";
    assert_eq!(meta.len(), 126);
    let wire = [b"\x01\x01\x02\x03\x04\0\0\0\x7e", meta.as_bytes(), b"\xff{}"].concat();
    server(Version::Two, &wire, request(b"\xff{}"));
    let fields = b"\x01\0\0\0\0\0\0\0\x09\0\0\0\x03r-1\0\0\0\x01m\0\0\0\x09/v1/x?y=1\
        \0\0\0\x01a\0\0\0\x011\0\0\0\x01a\0\0\0\x01\xe9";
    assert_eq!(fields.len(), 0x36);
    let wire = [b"\x04\x01\x02\x03\x04\0\0\0\x36", &fields[..], b"\xff{}"].concat();
    server(Version::Three, &wire, request(b"\xff{}"));
    for version in BOTH {
        server(
            version,
            b"\x02\0\0\0\x07\xff\0",
            ServerFrame::Body { job: 7, piece: (&b"\xff\0"[..]).into() },
        );
        let credit = ServerFrame::Credit { job: 7, bytes: 256 * 1024 };
        server(version, b"\x03\0\0\0\x07\0\x04\0\0", credit);
    }
}

#[test]
fn heads_of_answers_byte_for_byte() {
    let headers = HeaderFields::from_iter([("set-cookie", "a"), ("set-cookie", "b")]);
    let head = ResponseHead { status_code: 429, headers };
    worker(
        Version::Two,
        b"\x11\0\0\0\x07{\"status_code\":429,\"headers\":[[\"set-cookie\",\"a\"],[\"set-cookie\",\"b\"]]}",
        WorkerFrame::Head { job: 7, head: head.clone() },
    );
    let fields = b"\x01\xad\0\0\0\x0aset-cookie\0\0\0\x01a\0\0\0\x0aset-cookie\0\0\0\x01b";
    let wire = [b"\x16\0\0\0\x07", &fields[..]].concat();
    worker(Version::Three, &wire, WorkerFrame::Head { job: 7, head: head.clone() });
    let wire = [b"\x17\0\0\0\x07\0\0\0\x28", &fields[..], b"data"].concat();
    worker(Version::Three, &wire, WorkerFrame::Whole { job: 7, head, body: "data".into() });
}

#[test]
fn worker_frames_byte_for_byte() {
    let worker = |wire: &[u8], frame: WorkerFrame| {
        BOTH.into_iter().for_each(|version| worker(version, wire, frame.clone()));
    };
    worker(b"\x12\xff\xff\xff\xffdata", WorkerFrame::Chunk { job: u32::MAX, bytes: "data".into() });
    worker(b"\x13\0\0\0\x07", WorkerFrame::End { job: 7, end: ResponseEnd::default() });
    let counts = TokenCounts { prompt_tokens: Some(0), ..TokenCounts::default() };
    worker(
        b"\x13\0\0\0\x07{\"token_counts\":{\"prompt_tokens\":0}}",
        WorkerFrame::End { job: 7, end: ResponseEnd { token_counts: Some(counts) } },
    );
    worker(b"\x15\0\0\0\x07", WorkerFrame::Accepted { job: 7 });
    let failure = JobFailure { code: FailureCode::Draining, message: "bye".into() };
    worker(
        b"\x14\0\0\0\x07{\"code\":\"draining\",\"message\":\"bye\"}",
        WorkerFrame::Fail { job: 7, failure },
    );
}

#[test]
fn payloads_are_slices_of_the_frame() {
    let frame = WorkerFrame::Chunk { job: 1, bytes: "data".into() }.encode(Version::Three);
    let Ok(WorkerFrame::Chunk { bytes, .. }) = WorkerFrame::decode(frame.clone()) else {
        panic!("no chunk")
    };
    assert_eq!(bytes.as_ptr(), frame[PREFIX..].as_ptr());
    for version in BOTH {
        let frame = request(b"body").encode(version);
        let Ok(ServerFrame::Request { body, .. }) = ServerFrame::decode(frame.clone()) else {
            panic!("no request")
        };
        assert_eq!(body.as_ptr(), frame[frame.len() - 4..].as_ptr());
    }
}

#[test]
fn every_cut_of_a_request_head_is_an_error_of_its_job() {
    for whole in BOTH.map(|version| request(b"").encode(version)) {
        for length in 0..whole.len() {
            let error = ServerFrame::decode(whole.slice(..length)).unwrap_err();
            assert_eq!(error.job, (length >= PREFIX).then_some(0x0102_0304), "{length}");
            assert_eq!(error.problem, FrameProblem::Short, "{length}");
        }
    }
}

#[test]
fn fields_that_do_not_fit_their_head_are_an_error_of_its_job() {
    let whole = request(b"").encode(Version::Three);
    for length in PREFIX + 4..whole.len() - 20 {
        let mut cut = BytesMut::from(&whole[..length]);
        cut[PREFIX..PREFIX + 4].copy_from_slice(&((length - PREFIX - 4) as u32).to_be_bytes());
        let error = ServerFrame::decode(cut.freeze()).unwrap_err();
        assert!(matches!(error.problem, FrameProblem::BadMeta(_)), "{length}");
        assert_eq!(error.job, Some(0x0102_0304));
    }
    let mut odd = BytesMut::from(&whole[..]);
    odd[PREFIX + 4] = 2;
    assert!(ServerFrame::decode(odd.freeze()).is_err(), "a flag is 0 or 1");
}

#[test]
fn bad_frames_name_their_problem() {
    let server = |wire: &'static [u8]| ServerFrame::decode(wire.into()).unwrap_err().problem;
    assert_eq!(server(b"\x11\0\0\0\x01{}"), FrameProblem::UnknownKind(0x11));
    assert_eq!(server(b"\x03\0\0\0\x01\0\0\0"), FrameProblem::Short);
    assert_eq!(server(b"\x03\0\0\0\x01\0\0\0\0\0"), FrameProblem::Trailing);
    assert_eq!(server(b"\x01\0\0\0\x01\xff\xff\xff\xff"), FrameProblem::MetaTooLong(0xffff_ffff));
    let worker = |wire: &'static [u8]| WorkerFrame::decode(wire.into()).unwrap_err().problem;
    assert_eq!(worker(b"\x01\0\0\0\x01"), FrameProblem::UnknownKind(1));
    assert_eq!(worker(b"\x15\0\0\0\x01x"), FrameProblem::Trailing);
    for wire in [
        &b"\x11\0\0\0\x01"[..],
        b"\x11\0\0\0\x01{\"status_code\":-1}",
        b"\x14\0\0\0\x01\xff",
        b"\x16\0\0\0\x01\0",
        b"\x17\0\0\0\x01\0\0\0\x01\0",
    ] {
        assert!(matches!(worker(wire), FrameProblem::BadMeta(_)), "{wire:?}");
    }
}

#[test]
fn a_head_has_a_bound_and_reaches_it() {
    let head = |value: usize| {
        let headers = HeaderFields::from_iter([("a", "x".repeat(value))]);
        WorkerFrame::Head { job: 1, head: ResponseHead { status_code: 200, headers } }
    };
    for version in BOTH {
        let around = head(0).encode(version).len() - PREFIX;
        let fits = head(MAX_META - around);
        assert_eq!(WorkerFrame::decode(fits.encode(version)), Ok(fits));
        let long = head(MAX_META - around + 1).encode(version);
        let problem = FrameProblem::MetaTooLong(MAX_META + 1);
        assert_eq!(WorkerFrame::decode(long), Err(FrameError { job: Some(1), problem }));
    }
}

#[test]
fn versions_are_known_by_their_names() {
    assert_eq!(Version::NAMES.map(Version::of), [Some(Version::Three), Some(Version::Two)]);
    assert_eq!(Version::of("warren.relay.4"), None);
}

proptest! {
    #[test]
    fn any_bytes_read_back_as_they_were_read(
        kind in prop_oneof![1..=4u8, 0x11..=0x17u8, any::<u8>()], version in select(&BOTH[..]),
        rest: Vec<u8>,
    ) {
        let wire = Bytes::from([&[kind][..], &rest].concat());
        if let Ok(frame) = ServerFrame::decode(wire.clone()) {
            prop_assert_eq!(ServerFrame::decode(frame.encode(version)), Ok(frame));
        }
        if let Ok(frame) = WorkerFrame::decode(wire) {
            prop_assert_eq!(WorkerFrame::decode(frame.encode(version)), Ok(frame));
        }
    }

    #[test]
    fn requests_read_back(
        job: u32, request_id: String, model: String, endpoint_path: String, is_streaming: bool,
        headers: Vec<(String, Vec<u8>)>, body_len: u64, body: Vec<u8>, version in select(&BOTH[..]),
    ) {
        let headers = headers.into_iter().collect();
        let head = RequestHead {
            request_id, model, endpoint_path, is_streaming, headers, body_len,
        };
        let frame = ServerFrame::Request { job, head, body: body.into() };
        prop_assert_eq!(ServerFrame::decode(frame.encode(version)), Ok(frame));
    }

    #[test]
    fn answers_read_back(
        job: u32, status_code: u16, headers: Vec<(String, Vec<u8>)>, body: Vec<u8>,
        version in select(&BOTH[..]),
    ) {
        let head = ResponseHead { status_code, headers: headers.into_iter().collect() };
        for frame in [
            WorkerFrame::Head { job, head: head.clone() },
            WorkerFrame::Whole { job, head, body: body.into() },
        ] {
            prop_assert_eq!(WorkerFrame::decode(frame.encode(version)), Ok(frame));
        }
    }

    #[test]
    fn failures_read_back(job: u32, code: String, message: String) {
        let failure = JobFailure { code: code.into(), message };
        let frame = WorkerFrame::Fail { job, failure };
        prop_assert_eq!(WorkerFrame::decode(frame.encode(Version::Three)), Ok(frame));
    }
}
