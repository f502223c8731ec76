//! Limits how often a provider's bad frames are logged and answered.

use std::time::Duration;

use tokio::time::Instant;

/// The number of bad frames that are logged and answered in each [`WINDOW`].
pub(crate) const MAX: u32 = 20;

const WINDOW: Duration = Duration::from_secs(1);

/// Keeps a provider that sends many bad frames from filling the log and from getting endless
/// answers.
pub(crate) struct Complaints {
    since: Instant,
    made: u32,
    suppressed: u64,
}

impl Complaints {
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, made: 0, suppressed: 0 }
    }

    /// Whether one more bad frame may be logged and answered. At the start of a window, logs how
    /// many were suppressed in the last one.
    pub(crate) fn may_make(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= WINDOW {
            if self.suppressed > 0 {
                tracing::warn!(frames = self.suppressed, "more such frames are not in the log");
            }
            *self = Self::new(now);
        }
        let may = self.made < MAX;
        if may {
            self.made += 1;
        } else {
            self.suppressed += 1;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn complaints_are_few_each_second() {
        let mut complaints = Complaints::new(Instant::now());
        let mut made = || (0..1000).filter(|_| complaints.may_make(Instant::now())).count();
        assert_eq!((made(), made()), (MAX as usize, 0));
        tokio::time::advance(WINDOW).await;
        assert_eq!(made(), MAX as usize);
    }
}
