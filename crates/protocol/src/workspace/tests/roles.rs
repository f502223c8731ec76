//! The order of the roles.

use crate::workspace::Role;

#[test]
fn a_role_may_do_what_those_before_it_may() {
    assert!(Role::Read < Role::Write && Role::Write < Role::Admin);
    assert_eq!(Role::ALL.map(Role::as_str), ["read", "write", "admin"]);
}
