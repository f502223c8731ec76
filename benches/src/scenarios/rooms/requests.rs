//! The cost of a request in a room: one server, whose backend is lent to all by a worker and to a room
//! by a participant, asked in both ways in turns.

use anyhow::Result;

use super::super::requests::{COLUMNS, RATE, Row, lines};
use crate::{
    lab::Lab,
    report::{Report, Section},
    targets::rooms::{PLAIN, ROOM, launch_both},
};

/// The least rate in the room, as a share of the plain API's.
const LEAST: f64 = 0.9;

pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let Some(program) = lab.launcher.warren() else { return Ok(()) };
    let mut targets = launch_both(program, lab.backend).await?;
    for row in Row::small() {
        report.add(Section {
            name: format!("rooms/request/{}", row.name()),
            title: format!("through the plain API and in a room: {}", row.title()),
            columns: COLUMNS.to_vec(),
            lines: lines(row, lab, &mut targets).await?,
            bases: &[PLAIN],
            goals: vec![RATE.at_least(ROOM, LEAST).beside(PLAIN)],
        })?;
    }
    let [plain, room] = targets;
    room.stop().await;
    plain.stop().await;
    Ok(())
}
