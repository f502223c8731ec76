//! Streams that a peer on the LAN answers, beside the same through the peer's own worker. They take turns.

use std::path::Path;

use anyhow::Result;

use super::{
    super::requests::{COLUMNS, RATE, Row, lines},
    Part,
};
use crate::{
    lab::Lab,
    report::Section,
    targets::mesh::{self, OWN, PEER},
};

/// The least rate through a peer, as a share of the rate through a worker.
const LEAST: f64 = 0.8;

pub(super) async fn measure(lab: &Lab, program: &Path) -> Result<Section> {
    let mut pair = mesh::pair(program, lab.backend, None).await?;
    let row = Row::STREAMS;
    let lines = lines(row, lab, &mut pair).await?;
    let [own, peer] = pair;
    peer.stop().await;
    own.stop().await;
    Ok(Section {
        name: Part::Requests.name().into(),
        title: format!("through a server's own worker and through its peer: {}", row.title()),
        columns: COLUMNS.to_vec(),
        lines,
        bases: &[OWN],
        goals: vec![RATE.at_least(PEER, LEAST).beside(OWN)],
    })
}
