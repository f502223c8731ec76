//! Has cargo build the program that the tests of the crate start (`workspace-test-host`): it does so
//! for a test that stands outside of the crate.

#[test]
fn the_host_is_built_where_the_tests_look_for_it() {
    let host = std::path::Path::new(env!("CARGO_BIN_EXE_workspace-test-host"));
    assert!(host.ends_with("workspace-test-host") && host.exists());
}
