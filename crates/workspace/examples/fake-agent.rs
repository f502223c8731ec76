//! The program that the tests start as agents: see `testkit::agents`.

fn main() {
    testkit::agents::main();
}
