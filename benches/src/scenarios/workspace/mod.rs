//! Terminals and agents of a daemon, beside what has nothing else to do: a terminal's bare master, an
//! agent's bare pipes; and beside other programs that serve terminals, where they are installed.
//!
//! - [`flood`]: a program that writes as fast as it is read
//! - [`echo`]: a key, until it comes back
//! - [`hop`]: the same of a terminal of another member
//! - [`clients`]: many clients of one terminal, some of which never read
//! - [`idle`]: what terminals cost in which nothing happens
//! - [`resync`]: what a screen costs that is sent whole
//! - [`agent`]: prompts to an agent that is warm

mod agent;
mod clients;
mod echo;
mod flood;
mod hop;
mod idle;
mod resync;

use std::{path::Path, time::Duration};

use anyhow::Result;
use serde::de::DeserializeOwned;

use crate::{
    lab::Lab,
    load::{
        Failures, Plan,
        workspace::{Daemon, Plan as Workspace},
    },
    programs::flood::Kind,
    report::{Line, Report},
    targets::{Target, workspace},
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Flood(Kind),
    Echo,
    Hop,
    Clients,
    Idle,
    Resync,
    Agent,
}

impl Part {
    pub(crate) const ALL: [Self; 9] = [
        Self::Flood(Kind::Plain),
        Self::Flood(Kind::Colour),
        Self::Flood(Kind::Repaint),
        Self::Echo,
        Self::Hop,
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
            Self::Clients => clients::measure(lab, program).await,
            Self::Idle => idle::measure(lab, program).await,
            Self::Resync => resync::measure(lab, program).await,
            Self::Agent => agent::measure(lab, program).await,
        };
        report.add(section?)
    }
}

const RAW: &str = "raw";

const WARREN: &str = "warren";

const LIMIT: Duration = Duration::from_secs(300);

async fn launch(lab: &Lab, program: &Path) -> Result<(Target, Daemon)> {
    let target = workspace::launch(program, lab.program()).await?;
    let daemon = workspace::daemon(&target)?;
    Ok((target, daemon))
}

async fn load<T: DeserializeOwned>(lab: &Lab, plan: Workspace) -> Result<T> {
    lab.load(&Plan::Workspace(plan), LIMIT).await
}

/// A line without failures: what fails here ends the scenario.
fn line(target: &'static str, values: Vec<Option<f64>>) -> Line {
    Line::new(target, values, Failures::default())
}
