//! The cost of servers that act as one, and how fast they notice that one has died. NATS is a real one on loopback.
//!
//! - `hop`: a request at a server whose worker is connected to another one
//! - `total`: the requests of three servers, beside those of one
//! - `death`: a thousand workers at three servers, one of which is killed

mod death;
mod hop;
mod total;

use anyhow::Result;

use crate::{
    lab::Lab,
    report::{self, Report},
    targets::fleet,
};

/// A part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Hop,
    Total,
    Death,
}

impl Part {
    pub(crate) const ALL: [Self; 3] = [Self::Hop, Self::Total, Self::Death];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hop => "fleet/hop",
            Self::Total => "fleet/total",
            Self::Death => "fleet/death",
        }
    }

    pub(crate) async fn measure(self, lab: &Lab, report: &mut Report) -> Result<()> {
        let Some(program) = lab.launcher.warren() else { return Ok(()) };
        let Some(nats) = fleet::find().await else {
            report::note("nats-server is not installed: left out");
            return Ok(());
        };
        let programs = (&*nats, &**program);
        match self {
            Self::Hop => hop::measure(lab, programs, report).await,
            Self::Total => total::measure(lab, programs, report).await,
            Self::Death => death::measure(lab, programs, report).await,
        }
    }
}
