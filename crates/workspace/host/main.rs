//! The program that the tests start as the supervisor of processes.

fn main() {
    process::supervisor::main()
}
