//! The cost of a model engine: streams of a loaded one through `warren up`, beside the same program asked directly;
//! and how long the first token takes when another model must make room first.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::BodyExt;
use memchr::memmem;

use super::requests::{COLUMNS, Row, lines};
use crate::{
    http1::Link,
    lab::Lab,
    load::{Failures, closed::LIMIT},
    payload::{Answer, BenchRequest, MODEL},
    report::{Column, Line, Report, Section},
    stats::Times,
    targets::{
        Target,
        engines::{self, DIRECT, ENGINE, OTHER},
    },
};

const FIRST50: Column = Column::new("ttfb p50 ms", 1);
const FIRST_MAX: Column = Column::new("ttfb max ms", 1);

const BODY: usize = 1 << 10;

pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let Some(program) = lab.launcher.warren() else { return Ok(()) };
    let through = engines::launch(program, lab.program()).await?;
    let mut targets = [engines::by_hand(lab.program()).await?, through];
    // Loads it.
    first_byte(&mut Link::open(targets[1].addr).await?, MODEL).await?;
    for row in Row::engines() {
        report.add(Section {
            name: format!("engines/{}", row.name()),
            title: format!("a loaded model engine, directly and through Warren: {}", row.title()),
            columns: COLUMNS.to_vec(),
            lines: lines(row, lab, &mut targets).await?,
            bases: &[DIRECT],
            goals: Vec::new(),
        })?;
    }
    let [by_hand, through] = targets;
    by_hand.stop().await;
    let section = swaps(lab, &through).await?;
    through.stop().await;
    report.add(section)
}

/// Asks for the two models in turns, and starts the program by hand as often.
async fn swaps(lab: &Lab, through: &Target) -> Result<Section> {
    let (mut started, mut swapped) = (Times::default(), Times::default());
    let mut link = Link::open(through.addr).await?;
    for _ in 0..lab.options.rounds() {
        for model in [OTHER, MODEL] {
            let begun = Instant::now();
            let by_hand = engines::by_hand(lab.program()).await?;
            first_byte(&mut Link::open(by_hand.addr).await?, model).await?;
            started.add(begun.elapsed());
            by_hand.stop().await;
            swapped.add(first_byte(&mut link, model).await?);
        }
    }
    let line = |name, times: &Times| {
        Line::new(name, vec![times.millis(0.5), times.millis(1.0)], Failures::default())
    };
    Ok(Section {
        name: "engines/swap".into(),
        title: "the first token of a model whose engine must be started: by hand, and by Warren \
                after it has ended another one"
            .into(),
        columns: vec![FIRST50, FIRST_MAX],
        lines: vec![line(DIRECT, &started), line(ENGINE, &swapped)],
        bases: &[DIRECT],
        goals: Vec::new(),
    })
}

/// The time from a request to the first byte of its answer that is no comment. The answer is read to its end.
async fn first_byte(link: &mut Link, model: &str) -> Result<Duration> {
    let body = BenchRequest { id: 0, answer: Answer::back_to_back(4) }.body(BODY);
    let begun = Instant::now();
    let read = async {
        let response = link.chat(named(&body, model)?).await?;
        ensure!(response.status() == 200, "status {}", response.status());
        let (mut body, mut first) = (response.into_body(), None);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if first.is_none() && memmem::find(&data, b"data:").is_some() {
                first = Some(begun.elapsed());
            }
        }
        first.context("an answer without an event")
    };
    tokio::time::timeout(LIMIT, read).await.context("no answer in time")?
}

/// The same request of another model.
fn named(body: &[u8], model: &str) -> Result<Bytes> {
    let name = format!("\"{MODEL}\"");
    let at = memmem::find(body, name.as_bytes()).context("a request without a model")?;
    let (before, after) = (&body[..at], &body[at + name.len()..]);
    Ok([before, format!("\"{model}\"").as_bytes(), after].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_can_ask_for_another_model() {
        let body = BenchRequest { id: 0, answer: Answer::back_to_back(4) }.body(BODY);
        let other = named(&body, OTHER).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&other).unwrap();
        assert_eq!(json["model"], OTHER);
        assert!(BenchRequest::parse(&other[..900]).is_some());
    }
}
