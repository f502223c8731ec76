//! The cost of silent nodes for a relay: its memory, and the messages that it sends.

use std::{path::Path, time::Duration};

use anyhow::Result;

use super::Part;
use crate::{
    lab::{Lab, outcome},
    load::{
        Failures, Plan,
        mesh::nodes::{Nodes, Outcome},
    },
    report::{Column, Line, Section},
    targets::mesh,
};

const EMPTY: Column = Column::new("empty MB", 1);
const REGISTERED: Column = Column::new("registered MB", 1);
const LISTED: Column = Column::new("listed MB", 1);
const JOIN: Column = Column::new("frames/join", 2);
const AGAIN: Column = Column::new("frames/cycle", 2);
const CHURN: Column = Column::new("frames/churn", 2);

const LIMIT: Duration = Duration::from_secs(120);

/// Nodes, and what their lines are called.
const CROWDS: [(u32, &str); 3] = [(250, FEW), (500, "500 nodes"), (1000, MANY)];
const FEW: &str = "250 nodes";
const MANY: &str = "1000 nodes";

const MOST: f64 = 60.0;

/// The most messages that each node gets about others that come and go at once: a relay has a bound of its
/// own, less than the 200 that 100 of 1,000 nodes would make.
const TOLD: f64 = 100.0;

/// How much more is sent for each of many nodes than of a few: noise only.
const LINEAR: f64 = 1.1;

/// Measures crowds of several sizes, each at a relay of its own.
pub(super) async fn measure(lab: &Lab, program: &Path) -> Result<Section> {
    let mut lines = Vec::new();
    for (nodes, name) in CROWDS {
        lines.push(line(lab, program, nodes, name).await?);
    }
    let at_most = |column: Column, most| column.at_most(MANY, most);
    let linear = |column: Column| column.at_most(MANY, LINEAR).beside(FEW);
    Ok(Section {
        name: Part::Nodes.name().into(),
        title: "a relay's memory, and what it sends for each node that registers, that registers again \
                and asks who is there, and when a tenth of them leave and come back"
            .into(),
        columns: vec![EMPTY, REGISTERED, LISTED, JOIN, AGAIN, CHURN],
        lines,
        bases: &[FEW],
        goals: vec![
            at_most(REGISTERED, MOST),
            linear(JOIN),
            linear(AGAIN),
            at_most(CHURN, TOLD),
        ],
    })
}

async fn line(lab: &Lab, program: &Path, nodes: u32, name: &'static str) -> Result<Line> {
    let relay = mesh::relay(program).await?;
    let memory = || relay.resident("server").map(|bytes| bytes as f64 / 1e6);
    let empty = memory();
    let mut load = lab.start_load(&Plan::Nodes(Nodes { addr: relay.addr, nodes }))?;
    let each = |step: &Outcome| Some(step.frames as f64 / f64::from(nodes));
    let joined: Outcome = outcome(&mut load, LIMIT).await?;
    let registered = memory();
    load.go_on().await?;
    let again: Outcome = outcome(&mut load, LIMIT).await?;
    let listed = memory();
    load.go_on().await?;
    let churn: Outcome = outcome(&mut load, LIMIT).await?;
    load.stop().await;
    let values = vec![empty, registered, listed, each(&joined), each(&again), each(&churn)];
    relay.stop().await;
    Ok(Line::new(name, values, Failures::default()))
}
