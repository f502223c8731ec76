//! Which paths lead to which entries.

#[cfg(target_os = "linux")]
use std::{env, process::Command};
use std::{fs, os::fd::AsFd};

use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};

use super::{resolve::walk, *};
use crate::{
    read,
    tests::{Project, path},
};

fn content(project: &Project, name: &str) -> Result<String, FileError> {
    read::text(&project.root, &path(name)).map(|text| text.content)
}

#[test]
fn links_that_stay_inside_are_followed() {
    let project = Project::new();
    project.file("a/b/f", "text");
    project.link("file", "a/b/f");
    project.link("dir", "a/b");
    project.link("a/up", "../a/b/../b");
    project.link("again", "dir");
    for name in ["a/b/f", "file", "dir/f", "a/up/f", "again/f"] {
        assert_eq!(content(&project, name).unwrap(), "text", "{name}");
    }
}

#[test]
fn links_that_leave_are_refused_in_the_protocols_words() {
    let project = Project::new();
    project.file("a/f", "text");
    project.link("out", "../outside");
    project.link("file", "../outside/f");
    project.link("root", "/");
    project.link("absolute", project.at("a"));
    project.link("proc", "/proc/self/root");
    project.link("a/out", "../../outside");
    project.link("up", "..");
    for name in
        ["out/f", "file", "root/etc/passwd", "absolute/f", "proc/etc", "a/out/f", "up/root/a/f"]
    {
        assert_eq!(content(&project, name).unwrap_err().to_string(), "path escapes project root");
    }
}

#[test]
fn links_that_go_round_and_lead_nowhere_are_told_apart() {
    let project = Project::new();
    project.link("one", "two");
    project.link("two", "one");
    project.link("nowhere", "gone");
    assert!(matches!(content(&project, "one"), Err(FileError::Links)));
    assert!(matches!(content(&project, "nowhere"), Err(FileError::NotFound)));
}

#[test]
fn a_root_stays_the_directory_that_it_was_when_its_name_goes_elsewhere() {
    let project = Project::new();
    project.file("f", "text");
    let (here, there) = (project.at(""), project.outside().join("moved"));
    let here = here.components().as_path();
    fs::rename(here, &there).unwrap();
    std::os::unix::fs::symlink(project.outside(), here).unwrap();
    assert_eq!(content(&project, "f").unwrap(), "text");
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    let project = Project::new();
    project.file("f", "text");
    assert!(matches!(Root::open(&project.at("f")), Err(FileError::Root(_))));
    assert!(matches!(Root::open(&project.at("gone")), Err(FileError::Root(_))));
}

#[test]
fn no_link_is_followed_without_openat2() {
    let project = Project::new();
    project.file("a/b/f", "text");
    project.link("out", "../outside");
    project.link("in", "a");
    project.link("a/file", "b/f");
    let dir = openat(rustix::fs::CWD, project.root.path(), LOOK, Mode::empty()).unwrap();
    let walked = |text: &str| walk(dir.as_fd(), text, OFlags::RDONLY);
    assert!(walked("a/b/f").is_ok() && walked("a//./b").is_ok() && walked(".").is_ok());
    for text in ["out/f", "in/b/f", "in/b"] {
        assert!(matches!(walked(text), Err(Errno::LOOP | Errno::NOTDIR)), "{text}");
    }
    assert!(matches!(walked("a/file"), Err(Errno::LOOP)));
    for text in ["..", "a/../../outside/f", "/etc/passwd", "a/.."] {
        assert!(matches!(walked(text), Err(Errno::XDEV)), "{text}");
    }
    assert!(matches!(walked("a/gone/f"), Err(Errno::NOENT)));
}

/// The variable that is set in the process that may not call `openat2`.
#[cfg(target_os = "linux")]
const FILTERED: &str = "WARREN_FILES_FILTERED";

/// Forbids `openat2` (call 437) with `EPERM`, as some containers do, and runs the arguments.
#[cfg(target_os = "linux")]
const FILTER: &str = r#"
import ctypes, os, struct, sys
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit("no filter of calls here")
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
#[cfg(target_os = "linux")]
fn files_are_opened_where_a_filter_forbids_openat2() {
    let child = Command::new("python3")
        .args(["-c", FILTER])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "root::tests::filtered", "--nocapture"])
        .env(FILTERED, "1")
        .output();
    let Ok(child) = child else { return println!("no Python here") };
    let said = String::from_utf8_lossy(&child.stdout);
    if said.contains("opened as it should be") {
        return;
    }
    let complaint = String::from_utf8_lossy(&child.stderr);
    assert!(!said.contains("filtered now"), "{said}{complaint}");
    println!("no filter of calls here: {complaint}");
}

/// Does nothing unless this is the process that may not call `openat2`.
#[test]
#[cfg(target_os = "linux")]
fn filtered() {
    use rustix::fs::{ResolveFlags, openat2};

    if env::var_os(FILTERED).is_none() {
        return;
    }
    println!("filtered now");
    let project = Project::new();
    project.file("a/f", "text");
    project.link("out", "../outside");
    let flags = ResolveFlags::BENEATH;
    let refused = openat2(rustix::fs::CWD, ".", LOOK, Mode::empty(), flags);
    assert!(matches!(refused, Err(Errno::PERM)), "{refused:?}");
    assert_eq!(content(&project, "a/f").unwrap(), "text");
    assert!(content(&project, "out/f").is_err());
    println!("opened as it should be");
}
