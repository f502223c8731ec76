//! Parsing of a status, on bytes recorded from git.

use proptest::prelude::*;
use protocol::workspace::client::{ChangeStatus, GitChange};

use protocol::workspace::GitStatus;

use super::{super::status::parse, PROJECT, clean};

const RECORDED: &[u8] = b"# branch.oid 5b1c2e5b1c2e5b1c2e5b1c2e5b1c2e5b1c2e5b1c\0\
# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -13\0# stash 1\0\
1 M. N... 100644 100644 100644 aaaa bbbb src/lib.rs\0\
1 .M N... 100644 100644 100644 aaaa aaaa with two  spaces\0\
1 AM N... 000000 100644 100644 0000 bbbb new\nline\0\
1 .A N... 000000 000000 100644 0000 0000 intended\0\
1 .M SC.. 160000 160000 160000 aaaa aaaa sub\0\
1 T. N... 100644 120000 120000 aaaa bbbb kind\0\
2 R. N... 100644 100644 100644 aaaa aaaa R100 to here\0from there\0\
2 C. N... 100644 100644 100644 aaaa aaaa C75 copy\0source\0\
2 RM N... 100644 100644 100644 aaaa aaaa R90 both\0was\0\
2 .R N... 100644 100644 100644 aaaa aaaa R90 later\0before\0\
u UU N... 100644 100644 100644 100644 aaaa bbbb cccc conflict ed\0\
u DU N... 100644 000000 100644 100644 aaaa 0000 cccc theirs\0\
? untracked one\0? dir/\0? sub/.warren-00000000000000000000000000000000\0! ignored\0";

fn change(path: &str, status: ChangeStatus, from: Option<&str>) -> GitChange {
    GitChange { path: path.to_owned(), status, from: from.map(str::to_owned) }
}

#[test]
fn a_recorded_status_is_read() {
    use ChangeStatus::{Added, Copied, Modified, Renamed, TypeChanged, Unmerged};
    let status = parse(PROJECT, RECORDED, b"").unwrap();
    assert_eq!(status.branch.as_deref(), Some("main"));
    assert_eq!(status.upstream.as_deref(), Some("origin/main"));
    assert_eq!((status.ahead, status.behind), (2, 13));
    let staged = [
        change("src/lib.rs", Modified, None),
        change("new\nline", Added, None),
        change("kind", TypeChanged, None),
        change("to here", Renamed, Some("from there")),
        change("copy", Copied, Some("source")),
        change("both", Renamed, Some("was")),
    ];
    assert_eq!(status.staged, staged);
    let unstaged = [
        change("with two  spaces", Modified, None),
        change("new\nline", Modified, None),
        change("intended", Added, None),
        change("sub", Modified, None),
        change("both", Modified, None),
        change("later", Renamed, Some("before")),
        change("conflict ed", Unmerged, None),
        change("theirs", Unmerged, None),
    ];
    assert_eq!(status.unstaged, unstaged);
    assert_eq!(status.untracked, ["untracked one", "dir/"]);
}

#[test]
fn an_unborn_branch_and_a_detached_head_are_read() {
    let unborn = parse(PROJECT, b"# branch.oid (initial)\0# branch.head trunk\0", b"").unwrap();
    assert_eq!(unborn, GitStatus { branch: Some("trunk".to_owned()), ..clean() });
    let detached = parse(PROJECT, b"# branch.oid aaaa\0# branch.head (detached)\0", b"").unwrap();
    assert_eq!(detached, clean());
    assert_eq!(parse(PROJECT, b"", b"").unwrap(), clean());
}

#[test]
fn paths_lose_the_prefix_that_they_have() {
    let output = b"? part/f\0? parted/f\x002 R. N... 1 1 1 a a R100 part/to\0elsewhere/from\0";
    let status = parse(PROJECT, output, b"part/").unwrap();
    assert_eq!(status.untracked, ["f", "parted/f"]);
    assert_eq!(status.staged, [change("to", ChangeStatus::Renamed, Some("elsewhere/from"))]);
}

#[test]
fn a_record_cut_short_is_an_error_and_an_unknown_one_is_passed_over() {
    for cut in
        ["1 M. N... 1 1 1 a b", "1 M", "2 R. N... 1 1 1 a b R100", "u UU x", "1 M. N... 1 1 1 a b "]
    {
        assert!(parse(PROJECT, cut.as_bytes(), b"").is_err(), "{cut}");
    }
    assert!(parse(PROJECT, b"# branch.ab +x -1\0", b"").is_err());
    assert_eq!(parse(PROJECT, b"3 what will be\0# new.header\0x\0", b"").unwrap(), clean());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(output in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(PROJECT, &output, b"");
    }

    #[test]
    fn a_status_cut_anywhere_and_changed_anywhere_is_read_or_refused(
        cut in 0..RECORDED.len(),
        at in 0..RECORDED.len(),
        byte: u8,
    ) {
        let mut output = RECORDED.to_vec();
        output[at] = byte;
        output.truncate(cut);
        let _ = parse(PROJECT, &output, b"src/");
    }
}
