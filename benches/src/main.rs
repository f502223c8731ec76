//! Benchmarks. 
fn main() {}
