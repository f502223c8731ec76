//! A provider's nonsense is logged, and answered, only so often.

use std::time::Duration;

use tokio::time::Instant;

/// How often nonsense is logged and answered, each [`WINDOW`].
pub(crate) const MAX: u32 = 20;

/// Counted anew after this.
const WINDOW: Duration = Duration::from_secs(1);

/// Keeps a provider that sends nonsense without end from filling the log, and from being answered
/// without end.
pub(crate) struct Complaints {
    since: Instant,
    made: u32,
    unsaid: u64,
}

impl Complaints {
    /// None yet.
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, made: 0, unsaid: 0 }
    }

    /// Whether one more may be made. What was kept quiet before is told then.
    pub(crate) fn may_make(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= WINDOW {
            if self.unsaid > 0 {
                tracing::warn!(frames = self.unsaid, "more such frames are not in the log");
            }
            *self = Self::new(now);
        }
        let may = self.made < MAX;
        if may {
            self.made += 1;
        } else {
            self.unsaid += 1;
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
