//! The mesh, beside what carries bytes with nothing else to do: a plain copy, a bare WebSocket echo.
//!
//! - [`transfer`]: a model from one machine to another
//! - [`requests`]: streams that a peer answers
//! - [`added`]: what a request takes longer, when a peer answers it
//! - [`relay`]: messages through a relay
//! - [`nodes`]: what nodes cost a relay that do nothing

mod added;
mod nodes;
mod relay;
mod requests;
mod transfer;

use std::time::Duration;

use anyhow::Result;

use crate::{child::Process, lab::Lab, load::mesh::frames::Frames, report::Report};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Sealed,
    Stock,
    Requests,
    Lan,
    Relay,
    Frames,
    Nodes,
}

impl Part {
    pub(crate) const ALL: [Self; 7] = [
        Self::Sealed,
        Self::Stock,
        Self::Requests,
        Self::Lan,
        Self::Relay,
        Self::Frames,
        Self::Nodes,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sealed => "mesh/transfer/sealed",
            Self::Stock => "mesh/transfer/stock",
            Self::Requests => "mesh/lan/request",
            Self::Lan => "mesh/lan/added",
            Self::Relay => "mesh/relay/added",
            Self::Frames => "mesh/relay/frames",
            Self::Nodes => "mesh/relay/nodes",
        }
    }

    pub(crate) async fn measure(self, lab: &Lab, report: &mut Report) -> Result<()> {
        let Some(program) = lab.launcher.warren() else { return Ok(()) };
        let section = match self {
            Self::Sealed => transfer::sealed(lab, program).await,
            Self::Stock => transfer::stock(lab, program).await,
            Self::Requests => requests::measure(lab, program).await,
            Self::Lan => added::measure(lab, program, false).await,
            Self::Relay => added::measure(lab, program, true).await,
            Self::Frames => relay::measure(lab, program).await,
            Self::Nodes => nodes::measure(lab, program).await,
        };
        report.add(section?)
    }
}

const ECHO: &str = "echo";

/// How long the suite's own processes may take to listen.
const LISTENS: Duration = Duration::from_secs(20);

/// How long a load may take beside its time.
const MARGIN: Duration = Duration::from_secs(60);

async fn echo(lab: &Lab, plan: Frames) -> Result<(Process, Frames)> {
    let mut echo = lab.process(&["echo"], "echo")?;
    let addr = echo.listening(LISTENS).await?;
    Ok((echo, Frames { addr, relay: false, ..plan }))
}
