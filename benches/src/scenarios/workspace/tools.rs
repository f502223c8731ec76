//! Helpers that the scenarios of the workspace share.

use std::{path::Path, time::Duration};

use anyhow::Result;
use serde::de::DeserializeOwned;

use crate::{
    lab::Lab,
    load::{
        Failures, Plan,
        workspace::{Daemon, Plan as Workspace},
    },
    report::Line,
    targets::{Target, workspace},
};

pub(super) const RAW: &str = "raw";

pub(super) const WARREN: &str = "warren";

pub(super) const LIMIT: Duration = Duration::from_secs(300);

pub(super) async fn launch(lab: &Lab, program: &Path) -> Result<(Target, Daemon)> {
    let target = workspace::launch(program, lab.program()).await?;
    let daemon = workspace::daemon(&target)?;
    Ok((target, daemon))
}

pub(super) async fn load<T: DeserializeOwned>(lab: &Lab, plan: Workspace) -> Result<T> {
    lab.load(&Plan::Workspace(plan), LIMIT).await
}

/// A line without failures: what fails here ends the scenario.
pub(super) fn line(target: &'static str, values: Vec<Option<f64>>) -> Line {
    Line::new(target, values, Failures::default())
}
