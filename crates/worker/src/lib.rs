//! Lends a machine's backends to a server.
