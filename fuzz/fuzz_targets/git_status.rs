//! Git's status of a work tree: read or refused, and nothing in it that git did not say. The first
//! byte of the input says how much of the rest is the prefix of the project's paths.
#![no_main]

use files::git::status::parse;
use libfuzzer_sys::fuzz_target;
use protocol::workspace::ProjectId;

fuzz_target!(|data: &[u8]| {
    let Some((&length, rest)) = data.split_first() else { return };
    let (prefix, output) = rest.split_at(usize::from(length).min(rest.len()));
    let Ok(status) = parse(ProjectId::from_random(1), output, prefix) else { return };
    let records = output.split(|byte| *byte == 0).count();
    assert!(status.staged.len() + status.unstaged.len() <= 2 * records);
    assert!(status.untracked.len() <= records);
    let changes = || status.staged.iter().chain(&status.unstaged);
    assert!(!changes().any(|change| change.path.contains('\0')));
    assert!(!status.untracked.iter().any(|path| path.contains('\0')));
});
