//! Answers read from bytes, whole and byte by byte.

use http::StatusCode;

use super::{AnswerReader, MAX_FIELDS, MAX_HEAD, Malformed, answer::MAX_INTERIM, body};

/// The result of a read: the status, the body, and whether the connection may be used again.
type Read = Result<(u16, String, bool), Malformed>;

/// Reads an answer that comes in pieces of this size, and then the end of the connection.
fn read_in(size: usize, bytes: &[u8], to_head: bool) -> Read {
    let mut reader = AnswerReader::new(to_head);
    let (mut status, mut content) = (None, Vec::new());
    for piece in bytes.chunks(size) {
        let mut piece = piece.to_vec();
        let fed = reader.feed(&mut piece)?;
        status = status.or(fed.head.map(|head| head.status.as_u16()));
        content.extend_from_slice(&piece[fed.content]);
    }
    let goes_on = reader.may_go_on();
    reader.close()?;
    Ok((status.unwrap(), String::from_utf8(content).unwrap(), goes_on))
}

/// The same however it is cut.
fn read(bytes: impl AsRef<[u8]>) -> Read {
    let bytes = bytes.as_ref();
    let whole = read_in(usize::MAX, bytes, false);
    for size in [1, 2, 3, 7] {
        assert_eq!(read_in(size, bytes, false), whole, "in pieces of {size}");
    }
    whole
}

fn headed(head: &str, body: &str) -> Read {
    read(format!("HTTP/1.1 200 OK\r\n{head}\r\n{body}"))
}

fn chunked(body: &str) -> Read {
    headed("transfer-encoding: chunked\r\n", body)
}

fn is(content: &str, goes_on: bool) -> Read {
    Ok((200, content.to_owned(), goes_on))
}

#[test]
fn a_body_ends_at_its_length_its_last_chunk_or_the_connections_end() {
    assert_eq!(headed("content-length: 3\r\n", "abc"), is("abc", true));
    assert_eq!(headed("content-length: 0\r\n", ""), is("", true));
    assert_eq!(chunked("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"), is("abc0123456789", true));
    assert_eq!(headed("x: y\r\n", "abc"), is("abc", false));
    assert_eq!(headed("transfer-encoding: identity\r\n", "abc"), is("abc", false));
}

#[test]
fn an_answer_that_is_cut_off_is_not_whole() {
    for cut in ["", "H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
        assert_eq!(read(cut), Err(Malformed::NoHead), "{cut:?}");
    }
    assert_eq!(headed("content-length: 3\r\n", "ab"), Err(Malformed::CutOff));
    for cut in ["", "3", "3\r\n", "3\r\nab", "3\r\nabc\r\n", "0\r\n", "0\r\n\r", "0\r\na: b\r\n"] {
        assert_eq!(chunked(cut), Err(Malformed::CutOff), "{cut:?}");
    }
}

#[test]
fn bytes_behind_the_end_are_read_by_nobody() {
    assert_eq!(headed("content-length: 3\r\n", "abcHTTP/1.1 200 OK\r\n"), is("abc", false));
    assert_eq!(chunked("1\r\na\r\n0\r\n\r\n\n"), is("a", false));
    assert_eq!(read("HTTP/1.1 204 No\r\n\r\nabc"), Ok((204, String::new(), false)));
}

#[test]
fn lengths_that_two_readers_could_take_differently_are_refused() {
    let both = headed("content-length: 3\r\ntransfer-encoding: chunked\r\n", "");
    assert_eq!(both, Err(Malformed::BothLengths));
    for same in ["content-length: 3, 3\r\n", "content-length: 3\r\ncontent-length: 3\r\n"] {
        assert_eq!(headed(same, "abc"), is("abc", true), "{same}");
    }
    for bad in [
        "3, 4",
        "3\r\ncontent-length: 4",
        "+3",
        "-1",
        "",
        "3 3",
        "0x3",
        "99999999999999999999",
        "9223372036854775808",
        "\u{e9}",
    ] {
        let told = headed(&format!("content-length: {bad}\r\n"), "abc");
        assert_eq!(told, Err(Malformed::Length), "{bad}");
    }
    for bad in ["gzip", "gzip, chunked", "chunked, chunked", "chunked,", "", "xchunked"] {
        let told = headed(&format!("transfer-encoding: {bad}\r\n"), "0\r\n\r\n");
        assert_eq!(told, Err(Malformed::Coding), "{bad}");
    }
    let old = read("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_eq!(old, Err(Malformed::Coding));
}

#[test]
fn chunks_are_read_strictly() {
    for good in
        ["1 \r\na\r\n0\r\n\r\n", "01;x=\"y\"\r\na\r\n0;z\r\n\r\n", "1\t;\r\na\r\n000\r\n\r\n"]
    {
        assert_eq!(chunked(good), is("a", true), "{good:?}");
    }
    for bad in [
        "\r\n",
        "g\r\n",
        "-1\r\n",
        " 1\r\na",
        "1\na\r\n",
        "1\r\r\n",
        "1 1\r\na",
        "1;\na\r\n",
        "1\r\nab\r\n",
        "1\r\na\n0\r\n",
        "1\r\na\r0\r\n",
        "11111111111111111\r\na",
    ] {
        assert_eq!(chunked(bad), Err(Malformed::Chunk), "{bad:?}");
    }
    let extended = |length: usize| chunked(&format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(length)));
    assert_eq!(extended(body::MAX_EXTENSIONS - 1), is("a", true));
    assert_eq!(extended(body::MAX_EXTENSIONS), Err(Malformed::Extensions));
}

#[test]
fn trailers_are_checked_bounded_and_dropped() {
    assert_eq!(chunked("1\r\na\r\n0\r\nx: y\r\nContent-Length: 9\r\n\r\n"), is("a", true));
    for bad in [
        "0\r\nx y\r\n\r\n",
        "0\r\n: y\r\n\r\n",
        "0\r\nx: y\rz\r\n",
        "0\r\n\rx",
        "0\r\nx: \0\r\n\r\n",
    ] {
        assert_eq!(chunked(bad), Err(Malformed::Trailers), "{bad:?}");
    }
    let lines = |count| chunked(&format!("0\r\n{}\r\n", "a: b\r\n".repeat(count)));
    assert_eq!(lines(MAX_FIELDS), is("", true));
    assert_eq!(lines(MAX_FIELDS + 1), Err(Malformed::ManyTrailers));
    let long = chunked(&format!("0\r\nx: {}", "y".repeat(body::MAX_TRAILERS)));
    assert_eq!(long, Err(Malformed::ManyTrailers));
}

#[test]
fn answers_without_a_body_have_none_whatever_they_announce() {
    for (line, status) in [("204 No Content", 204), ("304 Not Modified", 304)] {
        let told = read(format!("HTTP/1.1 {line}\r\ncontent-length: 9\r\n\r\n"));
        assert_eq!(told, Ok((status, String::new(), true)));
    }
    let to_head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
    assert_eq!(read_in(1, to_head, true), is("", true));
}

#[test]
fn interim_answers_are_skipped_some_of_them() {
    let interim = |count| {
        let before = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(count);
        read(before + "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na")
    };
    assert_eq!(interim(1), is("a", true));
    assert_eq!(interim(MAX_INTERIM), is("a", true));
    assert_eq!(interim(MAX_INTERIM + 1), Err(Malformed::ManyInterim));
    assert_eq!(read("HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n"), Err(Malformed::Switched));
}

#[test]
fn a_connection_is_kept_as_its_answer_says() {
    let kept = |version: &str, header: &str| {
        let answer = format!("HTTP/{version} 200 OK\r\n{header}content-length: 1\r\n\r\na");
        read(answer).unwrap().2
    };
    assert!(kept("1.1", "") && kept("1.1", "connection: x, keep-alive\r\n"));
    assert!(!kept("1.1", "connection: x, Close\r\n"));
    assert!(!kept("1.1", "connection: close\r\nconnection: keep-alive\r\n"));
    assert!(!kept("1.0", "") && kept("1.0", "connection: Keep-Alive\r\n"));
}

#[test]
fn heads_are_bounded_and_clear_errors_say_so() {
    let long = |length: usize| {
        let (begin, end) = ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\nx: ", "\r\n\r\n");
        let value = "y".repeat(length - begin.len() - end.len());
        // Byte by byte this is read in one of the sizes only.
        read_in(1000, format!("{begin}{value}{end}a").as_bytes(), false)
    };
    assert_eq!(long(MAX_HEAD), is("a", true));
    assert_eq!(long(MAX_HEAD + 1), Err(Malformed::LongHead));
    let endless =
        read_in(1000, &[&b"HTTP/1.1 200 OK\r\nx: "[..], &[b'y'; 2 * MAX_HEAD][..]].concat(), false);
    assert_eq!(endless, Err(Malformed::LongHead));
    let fields = |count| headed(&("a: b\r\n".repeat(count) + "content-length: 1\r\n"), "a");
    assert_eq!(fields(MAX_FIELDS - 1), is("a", true));
    assert_eq!(fields(MAX_FIELDS), Err(Malformed::ManyFields));
    assert!(Malformed::ManyFields.to_string().contains("more than 100 header lines"));
    assert!(Malformed::LongHead.to_string().contains("longer than 65536 bytes"));
}

#[test]
fn what_is_no_http_is_refused_at_once() {
    for other in ["SSH-2.0-x\r\n", "\x15\x03\x01", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 20\r\n\r\n"]
    {
        let read = read_in(usize::MAX, other.as_bytes(), false);
        assert!(matches!(read, Err(Malformed::NoHttp(_))), "{other:?}: {read:?}");
    }
    assert_eq!(read("HTTP/1.1 099 Odd\r\n\r\n"), Err(Malformed::Status));
    let header = headed("a b: c\r\n", "");
    assert!(matches!(header, Err(Malformed::NoHttp(_) | Malformed::NoHead)), "{header:?}");
}

#[test]
fn values_of_headers_are_as_they_came() {
    let mut reader = AnswerReader::new(false);
    let mut bytes = *b"\nHTTP/1.1 418 I'm\r\nX-A:  caf\xe9 \r\nx-a: 2\nx-empty:\r\n\r\n";
    let head = reader.feed(&mut bytes).unwrap().head.unwrap();
    assert_eq!(head.status, StatusCode::IM_A_TEAPOT);
    let values: Vec<_> = head.headers.get_all("x-a").iter().map(|it| it.as_bytes()).collect();
    assert_eq!(values, [&b"caf\xe9"[..], b"2"]);
    assert_eq!(head.headers["x-empty"], "");
}
