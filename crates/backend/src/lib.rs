//! HTTP client of model servers: discovery, streaming, abort; and the demo model.
