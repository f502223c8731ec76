//! The thread that speaks mDNS.

use mdns_sd::{IfKind, ServiceDaemon};

use crate::DiscoveryError;

/// A thread that speaks mDNS on some interfaces. When it is dropped, the thread withdraws its announcements and ends.
pub(crate) struct Running(ServiceDaemon);

impl Running {
    /// Starts it. It sends nothing until there is something to announce or to look for.
    pub(crate) fn start(interfaces: Vec<IfKind>) -> Result<Self, DiscoveryError> {
        let start = || {
            let running = Self(ServiceDaemon::new()?);
            // The later choice counts, so only these are used.
            running.0.disable_interface(IfKind::All)?;
            running.0.enable_interface(interfaces)?;
            Ok(running)
        };
        start().map_err(|error| DiscoveryError::start(&error))
    }
}

impl std::ops::Deref for Running {
    type Target = ServiceDaemon;

    fn deref(&self) -> &ServiceDaemon {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if it has ended before.
        let _ = self.0.shutdown();
    }
}
