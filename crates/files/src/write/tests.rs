//! Writes: refusals, the state that stays, and the state that others see.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    sync::Barrier,
    thread,
};

use super::*;
use crate::tests::{Project, is_root, names, path, promptly};

fn put(
    project: &Project,
    name: &str,
    content: &str,
    base: Option<&str>,
) -> Result<String, FileError> {
    text(&project.root, &path(name), content, base)
}

#[test]
fn a_new_file_is_as_the_umask_lets_it() {
    let project = Project::new();
    let written = put(&project, "f", "abc", None).unwrap();
    assert_eq!(written, digest(b"abc"));
    assert_eq!(project.read("f"), "abc");
    fs::File::create(project.at("plain")).unwrap();
    let mode = |name| fs::metadata(project.at(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("f"), mode("plain") & 0o644);
    project.assert_untouched();
}

#[test]
fn a_write_with_the_right_base_replaces_and_one_with_another_is_a_conflict() {
    let project = Project::new();
    project.file("f", "one");
    let two = put(&project, "f", "two", Some(&digest(b"one"))).unwrap();
    let refused = put(&project, "f", "three", Some(&digest(b"one"))).unwrap_err();
    assert!(matches!(refused, FileError::Conflict { current_sha256: Some(now) } if now == two));
    assert_eq!(project.read("f"), "two");
    assert!(put(&project, "f", "three", Some(&two.to_uppercase())).is_ok());
    assert!(matches!(put(&project, "f", "four", Some("")), Err(FileError::Conflict { .. })));
    assert!(put(&project, "f", "four", None).is_ok());
    project.assert_untouched();
}

#[test]
fn a_write_with_a_base_to_what_is_gone_is_a_conflict_with_nothing() {
    let project = Project::new();
    let refused = put(&project, "f", "text", Some(&digest(b""))).unwrap_err();
    assert!(matches!(refused, FileError::Conflict { current_sha256: None }));
    assert!(!project.at("f").exists());
}

#[test]
fn mode_and_owner_stay() {
    let project = Project::new();
    project.file("f", "one");
    fs::set_permissions(project.at("f"), fs::Permissions::from_mode(0o4751)).unwrap();
    if is_root() {
        chown(project.at("f"), Some(4321), Some(1234)).unwrap();
        fs::set_permissions(project.at("f"), fs::Permissions::from_mode(0o4751)).unwrap();
    }
    let before = fs::metadata(project.at("f")).unwrap();
    put(&project, "f", "two", Some(&digest(b"one"))).unwrap();
    let after = fs::metadata(project.at("f")).unwrap();
    let attributes = |meta: &fs::Metadata| (meta.mode(), meta.uid(), meta.gid());
    assert_eq!(attributes(&before), attributes(&after));
    assert_ne!(before.ino(), after.ino());
}

#[test]
fn an_open_old_file_still_has_the_old_text() {
    let project = Project::new();
    project.file("f", "one");
    let mut open = fs::File::open(project.at("f")).unwrap();
    put(&project, "f", "two", None).unwrap();
    assert_eq!(std::io::read_to_string(&mut open).unwrap(), "one");
    assert_eq!(project.read("f"), "two");
}

#[test]
fn a_link_inside_is_written_through_and_stays_a_link() {
    let project = Project::new();
    project.file("a/f", "one");
    project.link("link", "a/f");
    project.link("a/up", "../link");
    project.link("dangling", "a/new");
    put(&project, "link", "two", Some(&digest(b"one"))).unwrap();
    put(&project, "a/up", "three", Some(&digest(b"two"))).unwrap();
    put(&project, "dangling", "new", None).unwrap();
    assert_eq!(
        (project.read("a/f"), project.read("a/new")),
        ("three".to_owned(), "new".to_owned())
    );
    assert!(project.at("link").is_symlink() && project.at("dangling").is_symlink());
}

#[test]
fn a_link_that_leaves_or_goes_round_is_refused() {
    let project = Project::new();
    project.file("a/f", "one");
    project.link("out", "../outside/f");
    project.link("new", "../outside/new");
    project.link("a/out", "../../outside/f");
    project.link("absolute", project.at("a/f"));
    for name in ["out", "new", "a/out", "absolute"] {
        assert!(matches!(put(&project, name, "x", None), Err(FileError::Escapes)), "{name}");
    }
    project.link("one", "two");
    project.link("two", "one");
    assert!(matches!(put(&project, "one", "x", None), Err(FileError::Links)));
    project.link("dir", "a/..");
    assert!(matches!(put(&project, "dir", "x", None), Err(FileError::IsADirectory)));
    project.assert_untouched();
}

#[test]
fn a_refused_write_names_the_reason() {
    let project = Project::new();
    fs::create_dir(project.at("dir")).unwrap();
    assert!(matches!(put(&project, "", "x", None), Err(FileError::IsRoot)));
    assert!(matches!(put(&project, "dir", "x", None), Err(FileError::IsADirectory)));
    assert!(matches!(put(&project, "gone/f", "x", None), Err(FileError::NoParent)));
    let large = "x".repeat(TEXT_FILE_MAX + 1);
    assert!(matches!(put(&project, "f", &large, None), Err(FileError::TooLarge { .. })));
    assert!(put(&project, "f", &large[1..], None).is_ok());
    project.assert_untouched();
}

#[test]
fn special_files_are_refused_without_blocking() {
    let project = Project::new();
    let names = project.special();
    promptly(move || {
        for name in names {
            for base in [None, Some("base")] {
                let refused = put(&project, name, "x", base);
                assert!(matches!(refused, Err(FileError::NotRegular)), "{name}: {refused:?}");
            }
        }
    });
}

#[test]
fn a_file_too_large_to_digest_is_an_error_and_can_still_be_replaced() {
    let project = Project::new();
    fs::File::create(project.at("f")).unwrap().set_len(DIGESTED_MAX + 1).unwrap();
    assert!(matches!(put(&project, "f", "x", Some("base")), Err(FileError::TooLarge { .. })));
    assert!(put(&project, "f", "x", None).is_ok());
}

#[test]
fn one_of_many_writers_with_the_same_base_wins() {
    let project = Project::new();
    for round in 0..50 {
        project.file("f", "base");
        let start = Barrier::new(4);
        let one = |name: String| {
            start.wait();
            put(&project, "f", &name, Some(&digest(b"base"))).is_ok()
        };
        let one = &one;
        let wrote: Vec<bool> = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|n| scope.spawn(move || one(format!("{round} {n}")))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(wrote.iter().filter(|wrote| **wrote).count(), 1, "{round}");
    }
    assert_eq!(names(&project.at("")), ["f"]);
}

#[test]
fn a_change_by_others_during_the_write_is_noticed() {
    let project = Project::new();
    project.file("f", "one");
    let base = digest(b"one");
    let place = target::find(&project.root, &path("f")).unwrap();
    let mut old = OldFile::open(&place).unwrap();
    assert!(old.check_name(&place, Some(&base)).unwrap());
    // The file is changed in place, with the same length.
    fs::write(project.at("f"), "eno").unwrap();
    let refused = old.check_name(&place, Some(&base));
    assert!(matches!(refused, Err(FileError::Conflict { current_sha256: Some(_) })));
    // The file is replaced by another file with the same name and content.
    fs::write(project.at("f"), "one").unwrap();
    fs::write(project.at("other"), "one").unwrap();
    fs::rename(project.at("other"), project.at("f")).unwrap();
    assert!(!old.check_name(&place, Some(&base)).unwrap());
    fs::remove_file(project.at("f")).unwrap();
    assert!(!old.check_name(&place, None).unwrap());
}

#[test]
fn a_file_that_others_replace_all_the_time_is_whole_whoever_wins() {
    let project = Project::new();
    project.file("f", &"a".repeat(10_000));
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..500 {
                fs::write(project.at("theirs"), format!("{n:05}").repeat(2000)).unwrap();
                fs::rename(project.at("theirs"), project.at("f")).unwrap();
            }
        });
        for _ in 0..500 {
            match put(&project, "f", &"b".repeat(10_000), None) {
                Ok(_) | Err(FileError::Busy) => {}
                Err(other) => panic!("{other}"),
            }
            let seen = project.read("f");
            let (first, all) = (&seen[..5], seen.len() == 10_000);
            assert!(all && seen == first.repeat(2000));
        }
    });
    project.assert_untouched();
}
