//! Terminals and agents of a daemon, beside what has nothing else to do: a terminal's bare master, an
//! agent's bare pipes; and beside other programs that serve terminals, where they are installed.
//!
//! - [`flood`]: a program that writes as fast as it is read
//! - [`echo`]: a key, until it comes back
//! - [`hop`]: the same of a terminal of another member
//! - [`members`]: objects of five members, until all have them
//! - [`clients`]: many clients of one terminal, some of which never read
//! - [`idle`]: what terminals cost in which nothing happens
//! - [`resync`]: what a screen costs that is sent whole
//! - [`agent`]: prompts to an agent that is warm
//! - [`tools`]: what they share

mod agent;
mod clients;
mod echo;
mod flood;
mod hop;
mod idle;
mod members;
mod resync;
mod tools;

use anyhow::Result;

use self::tools::{RAW, WARREN, launch, line, load};
use crate::{lab::Lab, programs::flood::Kind, report::Report};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Flood(Kind),
    Echo,
    Hop,
    Members,
    Clients,
    Idle,
    Resync,
    Agent,
}

impl Part {
    pub(crate) const ALL: [Self; 10] = [
        Self::Flood(Kind::Plain),
        Self::Flood(Kind::Colour),
        Self::Flood(Kind::Repaint),
        Self::Echo,
        Self::Hop,
        Self::Members,
        Self::Clients,
        Self::Idle,
        Self::Resync,
        Self::Agent,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flood(Kind::Plain) => "workspace/flood/plain",
            Self::Flood(Kind::Colour) => "workspace/flood/colour",
            Self::Flood(Kind::Repaint) => "workspace/flood/repaint",
            Self::Echo => "workspace/echo",
            Self::Hop => "workspace/hop",
            Self::Members => "workspace/members",
            Self::Clients => "workspace/clients",
            Self::Idle => "workspace/idle",
            Self::Resync => "workspace/resync",
            Self::Agent => "workspace/agent",
        }
    }

    pub(crate) async fn measure(self, lab: &Lab, report: &mut Report) -> Result<()> {
        let Some(program) = lab.launcher.warren() else { return Ok(()) };
        let section = match self {
            Self::Flood(kind) => flood::measure(lab, program, kind).await,
            Self::Echo => echo::measure(lab, program).await,
            Self::Hop => hop::measure(lab, program).await,
            Self::Members => members::measure(lab, program, self.name()).await,
            Self::Clients => clients::measure(lab, program).await,
            Self::Idle => idle::measure(lab, program).await,
            Self::Resync => resync::measure(lab, program).await,
            Self::Agent => agent::measure(lab, program).await,
        };
        report.add(section?)
    }
}
