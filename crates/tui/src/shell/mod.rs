//! x
pub struct Server; pub struct TuiError; pub fn run(){}