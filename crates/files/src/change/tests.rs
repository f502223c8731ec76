//! Entries created, moved, copied and deleted: nothing is overwritten, and no link is followed.

use std::{
    ffi::{CStr, OsStr},
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt},
    },
};

use protocol::workspace::limits::UPLOAD_MAX;

use super::{
    copy::copy_within,
    rename::{by_hand, onto_placeholder, remove_linked},
    *,
};
use crate::{
    FileError, RelPath,
    budget::{Budget, MAX_DEPTH},
    root::LOOK,
    tests::{Project, names, path, promptly},
};

const EXISTS: &str = "a file or directory with that name already exists";

fn exists(done: Result<(), FileError>) -> bool {
    done.is_err_and(|error| error.to_string() == EXISTS)
}

fn mode(project: &Project, name: &str) -> u32 {
    fs::symlink_metadata(project.at(name)).unwrap().mode() & 0o7777
}

fn set_mode(project: &Project, name: &str, mode: u32) {
    fs::set_permissions(project.at(name), fs::Permissions::from_mode(mode)).unwrap();
}

/// Creates nested directories that are all called `d`.
fn deep(project: &Project, levels: usize) {
    let path = vec!["d"; levels].join("/");
    fs::create_dir_all(project.at(&path)).unwrap();
}

#[test]
fn files_directories_and_uploads_are_created_where_nothing_is() {
    let project = Project::new();
    let root = &project.root;
    directory(root, &path("d")).unwrap();
    file(root, &path("d/f")).unwrap();
    upload(root, &path("d/u"), b"\0\xff").unwrap();
    assert_eq!(project.read("d/f"), "");
    assert_eq!(fs::read(project.at("d/u")).unwrap(), b"\0\xff");
    assert_eq!(names(&project.at("d")), ["f", "u"]);
}

#[test]
fn creating_never_overwrites() {
    let project = Project::new();
    let root = &project.root;
    project.file("f", "old");
    project.file("d/f", "old");
    project.link("out", "../outside/new");
    project.link("nowhere", "gone");
    for name in ["f", "d", "out", "nowhere", ""] {
        assert!(exists(file(root, &path(name))), "{name}");
        assert!(exists(directory(root, &path(name))), "{name}");
        assert!(exists(upload(root, &path(name), b"new")), "{name}");
        assert!(exists(move_entry(root, &path("d/f"), &path(name))), "{name}");
        assert!(exists(copy(root, &path("d/f"), &path(name))), "{name}");
    }
    assert_eq!((project.read("f"), project.read("d/f")), ("old".to_owned(), "old".to_owned()));
    project.assert_untouched();
}

#[test]
fn the_directory_of_something_new_must_be_there_and_inside() {
    let project = Project::new();
    let root = &project.root;
    project.file("f", "");
    project.link("out", "../outside");
    for name in ["gone/new", "f/new"] {
        assert!(matches!(file(root, &path(name)), Err(FileError::NoParent)));
        assert!(matches!(directory(root, &path(name)), Err(FileError::NoParent)));
        assert!(matches!(upload(root, &path(name), b""), Err(FileError::NoParent)));
        assert!(matches!(move_entry(root, &path("f"), &path(name)), Err(FileError::NoParent)));
        assert!(matches!(copy(root, &path("f"), &path(name)), Err(FileError::NoParent)));
    }
    assert!(matches!(file(root, &path("out/new")), Err(FileError::Escapes)));
    assert!(matches!(directory(root, &path("out/new")), Err(FileError::Escapes)));
    assert!(matches!(upload(root, &path("out/new"), b""), Err(FileError::Escapes)));
    assert!(matches!(move_entry(root, &path("out/f"), &path("new")), Err(FileError::Escapes)));
    assert!(matches!(move_entry(root, &path("f"), &path("out/new")), Err(FileError::Escapes)));
    assert!(matches!(copy(root, &path("out/f"), &path("new")), Err(FileError::Escapes)));
    assert!(matches!(copy(root, &path("f"), &path("out/new")), Err(FileError::Escapes)));
    assert!(matches!(delete(root, &path("out/f")), Err(FileError::Escapes)));
    project.assert_untouched();
}

#[test]
fn an_upload_has_twenty_five_mebibytes_at_most() {
    let project = Project::new();
    let bytes = vec![7; UPLOAD_MAX + 1];
    let refused = upload(&project.root, &path("u"), &bytes);
    assert!(matches!(refused, Err(FileError::TooLarge { .. })));
    upload(&project.root, &path("u"), &bytes[1..]).unwrap();
    assert_eq!(fs::metadata(project.at("u")).unwrap().len(), UPLOAD_MAX as u64);
}

#[test]
fn moving_gives_another_name_to_files_directories_and_links() {
    let project = Project::new();
    let root = &project.root;
    project.file("d/f", "text");
    project.link("link", "../outside");
    move_entry(root, &path("d/f"), &path("g")).unwrap();
    move_entry(root, &path("d"), &path("e")).unwrap();
    move_entry(root, &path("link"), &path("e/link")).unwrap();
    assert_eq!(names(root.path()), ["e", "g"]);
    assert!(project.at("e/link").is_symlink());
    project.assert_untouched();
}

#[test]
fn a_refused_move_names_the_reason() {
    let project = Project::new();
    let root = &project.root;
    project.file("d/f", "text");
    project.link("again", "d");
    let moved = |from: &str, to: &str| move_entry(root, &path(from), &path(to));
    assert!(matches!(moved("", "x"), Err(FileError::IsRoot)));
    assert!(matches!(moved("gone", "x"), Err(FileError::NotFound)));
    assert!(matches!(moved("d", "d/e"), Err(FileError::IntoItself)));
    assert!(matches!(moved("d", "again/e"), Err(FileError::IntoItself)));
    assert!(exists(moved("d/f", "d/f")));
    assert_eq!(names(&project.at("d")), ["f"]);
}

/// The fallback of rename for file systems with hard links, and the one for those without.
#[test]
fn the_fallbacks_of_rename_never_overwrite() {
    for rename in [by_hand, onto_placeholder] {
        let project = Project::new();
        for name in ["f", "g", "d/x", "e/x"] {
            project.file(name, name);
        }
        project.link("link", "gone");
        fs::create_dir(project.at("empty")).unwrap();
        let dir = project.root.open_at(&RelPath::root(), LOOK).unwrap();
        let dir = std::os::fd::AsFd::as_fd(&dir);
        let renamed = |from: &CStr, to: &CStr| rename(dir, from, dir, to);
        use rustix::io::Errno;
        for (from, to) in [
            (c"f", c"g"),
            (c"f", c"d"),
            (c"f", c"link"),
            (c"d", c"e"),
            (c"d", c"empty"),
            (c"d", c"f"),
        ] {
            assert_eq!(renamed(from, to), Err(Errno::EXIST), "{from:?} {to:?}");
        }
        assert_eq!(renamed(c"d", c"d/in"), Err(Errno::INVAL));
        assert_eq!(renamed(c"gone", c"new"), Err(Errno::NOENT));
        assert_eq!(renamed(c"f", c"new"), Ok(()));
        assert_eq!(renamed(c"link", c"moved"), Ok(()));
        assert_eq!(renamed(c"d", c"dir"), Ok(()));
        assert_eq!(names(project.root.path()), ["dir", "e", "empty", "g", "moved", "new"]);
        assert_eq!((project.read("new"), project.read("g")), ("f".to_owned(), "g".to_owned()));
        assert!(project.at("moved").is_symlink());
        assert_eq!(names(&project.at("dir")), ["x"]);
    }
}

#[test]
fn the_fallback_of_rename_keeps_a_file_that_has_replaced_the_moved_one() {
    let project = Project::new();
    project.file("f", "saved meanwhile");
    project.file("new", "moved");
    fs::hard_link(project.at("new"), project.at("old")).unwrap();
    let dir = project.root.open_at(&RelPath::root(), LOOK).unwrap();
    let dir = std::os::fd::AsFd::as_fd(&dir);
    let removed = |from: &CStr| remove_linked(dir, from, dir, c"new");
    assert_eq!([removed(c"f"), removed(c"old"), removed(c"gone")], [Ok(()); 3]);
    assert_eq!(names(project.root.path()), ["f", "new"]);
}

#[test]
fn a_copy_is_the_same_tree_with_the_same_modes_and_its_links_as_links() {
    let project = Project::new();
    let root = &project.root;
    project.file("d/sub/f", "text");
    project.file("d/run", "#!");
    fs::create_dir(project.at("d/empty")).unwrap();
    fs::write(project.at("d").join(OsStr::from_bytes(b"\xff")), "odd").unwrap();
    project.link("d/out", "../../outside");
    project.link("d/nowhere", "gone");
    set_mode(&project, "d/run", 0o4750);
    set_mode(&project, "d/sub", 0o500);
    copy(root, &path("d"), &path("e")).unwrap();
    assert_eq!(names(&project.at("e")), names(&project.at("d")));
    assert_eq!(
        (project.read("e/sub/f"), project.read("e/run")),
        ("text".to_owned(), "#!".to_owned())
    );
    assert_eq!(fs::read_link(project.at("e/out")).unwrap(), OsStr::new("../../outside"));
    assert_eq!((mode(&project, "e/sub"), mode(&project, "e/run")), (0o500, 0o750));
    copy(root, &path("d/out"), &path("link")).unwrap();
    assert!(project.at("link").is_symlink());
    copy(root, &path("d/run"), &path("file")).unwrap();
    assert_eq!(mode(&project, "file"), 0o750);
    project.assert_untouched();
}

#[test]
fn a_copy_that_meets_a_special_file_is_refused_and_leaves_nothing() {
    let project = Project::new();
    project.file("d/f", "text");
    let special = project.special();
    promptly(move || {
        for name in special {
            let root = &project.root;
            let copied = copy(root, &path(name), &path("e"));
            assert!(matches!(copied, Err(FileError::NotRegular)), "{name}");
            fs::rename(project.at(name), project.at("d/special")).unwrap();
            let copied = copy(root, &path("d"), &path("e"));
            assert!(matches!(copied, Err(FileError::NotRegular)), "{name}");
            assert!(!project.at("e").exists());
            fs::remove_file(project.at("d/special")).unwrap();
        }
    });
}

#[test]
fn a_copy_never_goes_into_itself() {
    let project = Project::new();
    let root = &project.root;
    project.file("d/sub/f", "text");
    project.link("again", "d/sub");
    for to in ["d/e", "d/sub/e", "again/e"] {
        let copied = copy(root, &path("d"), &path(to));
        assert!(matches!(copied, Err(FileError::IntoItself)), "{to}: {copied:?}");
    }
    assert_eq!(
        (names(&project.at("d")), names(&project.at("d/sub"))),
        (vec!["sub".into()], vec!["f".into()])
    );
    assert!(matches!(copy(root, &path(""), &path("e")), Err(FileError::IsRoot)));
    assert!(matches!(copy(root, &path("gone"), &path("e")), Err(FileError::NotFound)));
}

#[test]
fn a_copy_of_too_much_is_refused_and_leaves_nothing() {
    let project = Project::new();
    let root = &project.root;
    (0..5).for_each(|n| project.file(&format!("many/{n}"), "text"));
    let copied = copy_within(root, &path("many"), &path("e"), Budget::entries(5));
    assert!(matches!(copied, Err(FileError::TooManyEntries { limit: 5 })));
    deep(&project, MAX_DEPTH + 2);
    assert!(matches!(copy(root, &path("d"), &path("e")), Err(FileError::TooDeep { .. })));
    assert_eq!(names(root.path()), ["d", "many"]);
    assert!(copy_within(root, &path("many"), &path("e"), Budget::entries(6)).is_ok());
}

#[test]
fn deleting_removes_all_below_and_follows_no_link() {
    let project = Project::new();
    let root = &project.root;
    project.file("d/a/b/f", "text");
    project.link("d/out", "../../outside");
    project.link("d/a/out", project.outside());
    fs::write(project.at("d").join(OsStr::from_bytes(b"\xff")), "odd").unwrap();
    project.link("link", "d");
    delete(root, &path("link")).unwrap();
    assert!(project.at("d").exists());
    delete(root, &path("d/a/b/f")).unwrap();
    delete(root, &path("d")).unwrap();
    assert!(names(root.path()).is_empty());
    project.assert_untouched();
}

#[test]
fn special_files_are_deleted_and_moved_without_blocking() {
    let project = Project::new();
    let special = project.special();
    promptly(move || {
        for name in special {
            move_entry(&project.root, &path(name), &path("moved")).unwrap();
            delete(&project.root, &path("moved")).unwrap();
        }
        assert!(names(project.root.path()).is_empty());
    });
}

#[test]
fn a_refused_delete_names_the_reason() {
    let project = Project::new();
    let root = &project.root;
    assert!(matches!(delete(root, &path("")), Err(FileError::IsRoot)));
    assert!(matches!(delete(root, &path("gone")), Err(FileError::NotFound)));
    deep(&project, MAX_DEPTH + 2);
    assert!(matches!(delete(root, &path("d")), Err(FileError::TooDeep { .. })));
    delete(root, &path("d/d/d")).unwrap();
    delete(root, &path("d")).unwrap();
}
