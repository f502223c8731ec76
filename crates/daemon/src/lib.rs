//! Config, roles, telemetry, start and drain: joins the machines to their shells.
