//! Tests of control groups: the files of the kernel, and emptying a group.

use super::*;

#[test]
fn the_unified_hierarchy_and_that_of_a_controller_are_told_apart() {
    let unified = "41 31 0:38 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw";
    let pids = "39 31 0:36 /a /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids";
    let found = |mount: &str, root: &str| Some((PathBuf::from(mount), root.to_owned()));
    assert_eq!(mount_of(unified, None), found("/sys/fs/cgroup/unified", "/"));
    assert_eq!(mount_of(pids, None), None);
    assert_eq!(mount_of(pids, Some("pids")), found("/sys/fs/cgroup/pids", "/a"));
    assert_eq!(mount_of(unified, Some("pids")), None);
    assert_eq!(mount_of("nonsense", None), None);
}

#[test]
fn a_path_with_colons_is_read_whole() {
    let path_of = |line: &str, controller| {
        let groups = ProcessCGroups::from_read(line.as_bytes()).unwrap();
        let group = groups.into_iter().find(|group| is_in(group, controller));
        group.map(|group| group.pathname)
    };
    assert_eq!(path_of("0::/user.slice/a:b", None).as_deref(), Some("/user.slice/a:b"));
    assert_eq!(path_of("8:cpu,pids:/x", Some("pids")).as_deref(), Some("/x"));
    assert_eq!(path_of("8:cpu:/x", Some("pids")), None);
}

#[test]
fn a_session_is_found_in_its_group_and_in_groups_below() {
    let id = Uuid::from_u128(7);
    for path in [format!("/a/warren-1-2/{id}"), format!("/warren-1-2/{id}/own")] {
        assert_eq!(session_below(&path, "warren-1-2"), Some(id));
        assert_eq!(session_below(&path, "warren-1-3"), None);
        assert_eq!(session_below(&path, ""), None);
    }
    for other in ["/warren-1-2", "/warren-1-2/x", "", "/"] {
        assert_eq!(session_below(other, "warren-1-2"), None);
    }
}

#[test]
fn only_groups_of_dead_supervisors_count_as_left_behind() {
    let me = std::process::id();
    let started = processes::stat(me).unwrap().start_time;
    assert!(!is_of_dead(Path::new(&format!("/x/warren-{me}-{started}"))));
    assert!(is_of_dead(Path::new(&format!("/x/warren-{me}-{}", started + 1))));
    for other in ["/x/warren-main", "/x/user.slice", "/x/warren-1-x", "/x/warren-"] {
        assert!(!is_of_dead(Path::new(other)), "{other}");
    }
}

/// The test needs a controller that is enabled below the group of this process, and the right to
/// create groups.
#[test]
fn a_group_that_holds_only_the_daemon_is_emptied_to_pass_a_controller_on() {
    let skip = |reason| eprintln!("skipped: {reason}");
    let Some(home) = place(None) else { return skip("there is no unified hierarchy") };
    let passed = fs::read_to_string(home.join("cgroup.subtree_control")).unwrap_or_default();
    let Some(controller) = passed.split_whitespace().next() else {
        return skip("no controller is passed on");
    };
    let parent = home.join(format!("warren-test-{}", std::process::id()));
    if fs::create_dir(&parent).is_err() || move_in(&parent, "0").is_err() {
        return skip("no group can be made");
    }
    let own = parent.join("own");
    fs::create_dir(&own).unwrap();
    assert!(pass_on(&parent, controller).is_err(), "it holds this process");
    let is_enabled = enable(&own, controller);
    let is_inside = fs::read_to_string("/proc/self/cgroup").unwrap().contains(MAIN);
    let enters_own = place(None) == Some(parent.clone());
    move_in(&home, "0").unwrap();
    remove_all(&parent, DEPTH);
    assert!(is_enabled && is_inside && enters_own);
    assert!(!parent.exists());
}

#[test]
fn without_a_hierarchy_there_is_no_group_and_no_error() {
    assert!(Groups::default().create(Uuid::from_u128(1), Some(9)).unwrap().is_none());
}
