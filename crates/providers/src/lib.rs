//! Connections of providers, a file for each protocol.
