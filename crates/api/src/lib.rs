//! Consumer APIs over HTTP.
