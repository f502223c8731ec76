//! Who may do what: credentials, scopes, and which requests are local.
