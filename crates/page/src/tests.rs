//! The answers to HTTP requests for the files.

use std::{fs, path::Path};

use super::*;

fn asked(headers: &[(HeaderName, &str)]) -> HeaderMap {
    headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
}

fn get(path: &str, headers: &[(HeaderName, &str)]) -> Response<Bytes> {
    find(path).unwrap().answer(&Method::GET, &asked(headers))
}

const GZIP: (HeaderName, &str) = (header::ACCEPT_ENCODING, "br;q=1.0, gzip;q=0.8, *;q=0.1");

#[test]
fn every_file_is_sent_as_it_was_built_to_those_who_take_no_gzip() {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    assert!(
        FILES.iter().any(File::is_index) && FILES.iter().any(|file| file.path.starts_with(ASSETS))
    );
    for file in FILES {
        let name = if file.is_index() { "index.html" } else { &file.path[1..] };
        let answer = file.answer(&Method::GET, &HeaderMap::new());
        assert_eq!(answer.body()[..], fs::read(dist.join(name)).unwrap(), "{name}");
        assert!(!answer.headers().contains_key(header::CONTENT_ENCODING));
        assert_eq!(answer.headers()[header::CONTENT_LENGTH], answer.body().len().to_string());
    }
}

#[test]
fn gzip_is_sent_to_those_who_take_it_under_a_tag_of_its_own() {
    let (packed, plain) = (get("/", &[GZIP]), get("/", &[]));
    assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed.body()[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body()[..]);
    assert_ne!(packed.headers()[header::ETAG], plain.headers()[header::ETAG]);
    for (accepted, is_taken) in [
        ("gzip;q=0", false),
        ("*", true),
        ("gzip;q=0, *", false),
        ("identity", false),
        ("GZIP", true),
    ] {
        let answer = get("/", &[(header::ACCEPT_ENCODING, accepted)]);
        assert_eq!(answer.headers().contains_key(header::CONTENT_ENCODING), is_taken, "{accepted}");
    }
}

#[test]
fn a_client_that_has_a_file_is_told_so_and_keeps_its_policy() {
    let tag = get("/", &[GZIP]).headers()[header::ETAG].to_str().unwrap().to_owned();
    for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
        let answer = get("/", &[GZIP, (header::IF_NONE_MATCH, &known)]);
        assert_eq!(
            (answer.status(), answer.body().len()),
            (StatusCode::NOT_MODIFIED, 0),
            "{known}"
        );
        assert_eq!(answer.headers()[header::ETAG], *tag);
        assert!(answer.headers().contains_key(header::CONTENT_SECURITY_POLICY));
    }
    assert_eq!(
        get("/", &[(header::IF_NONE_MATCH, &tag)]).status(),
        StatusCode::OK,
        "plain bytes differ"
    );
}

#[test]
fn files_whose_names_change_with_them_are_kept_and_others_asked_for_again() {
    for file in FILES {
        let answer = file.answer(&Method::GET, &HeaderMap::new());
        let headers = answer.headers();
        let is_kept = file.path.starts_with("/assets/");
        assert_eq!(headers[header::CACHE_CONTROL] == "no-cache", !is_kept, "{}", file.path);
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.contains("; worker-src 'self';"), "{policy}");
    }
}

/// The types that browsers need to take a file for what it is: a manifest, a worker of the page, an icon.
#[test]
fn files_have_the_types_of_their_names() {
    for file in FILES.iter().filter(|file| !file.is_index()) {
        let (_, ending) = file.path.rsplit_once('.').unwrap();
        let kind = match ending {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "txt" => "text/plain; charset=utf-8",
            "webmanifest" => "application/manifest+json",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            ending => panic!("{ending}: add its type here"),
        };
        let answer = file.answer(&Method::GET, &HeaderMap::new());
        assert_eq!(answer.headers()[header::CONTENT_TYPE], kind, "{}", file.path);
    }
}

#[test]
fn a_head_has_the_length_and_no_content() {
    let answer = find("/").unwrap().answer(&Method::HEAD, &HeaderMap::new());
    let length = find("/").unwrap().length.to_string();
    assert_eq!(
        (answer.body().len(), &answer.headers()[header::CONTENT_LENGTH]),
        (0, &length.parse().unwrap())
    );
}

#[test]
fn nothing_else_is_a_file() {
    for path in [
        "",
        "/assets",
        "/assets/",
        "/index.html",
        "/../Cargo.toml",
        "/assets/../icon.svg",
        "/v1/models",
    ] {
        assert!(find(path).is_none(), "{path}");
    }
}
