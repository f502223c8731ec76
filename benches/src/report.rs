//! The report of the suite: a table for each scenario, with ratios to direct and to nginx, and the
//! goals beside what was measured. The same as JSON.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use crate::{cli::Kind, load::Failures};

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: String,
    sections: Vec<Section>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) lines: Vec<Line>,
    /// The lines that those after them are compared with.
    #[serde(skip)]
    pub(crate) bases: &'static [&'static str],
    pub(crate) goals: Vec<Goal>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    #[serde(skip)]
    pub(crate) decimals: usize,
}

/// One target's numbers, in the order of the columns.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) target: &'static str,
    /// `None`: not measured, or without meaning here. Of several rounds, their medians.
    pub(crate) values: Vec<Option<f64>>,
    /// The values of each round, where rounds were measured apart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) rounds: Vec<Vec<Option<f64>>>,
    /// Connections that the target closed and the clients opened again.
    pub(crate) reconnects: u64,
    pub(crate) failures: Failures,
}

/// The lines that others are compared with, where a backend is asked in several ways.
pub(crate) const BACKENDS: &[&str] = &[Kind::Direct.name(), Kind::Nginx.name(), Kind::Bare.name()];

/// The goal of one line in one column. Shown, never asserted.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Goal {
    pub(crate) line: &'static str,
    pub(crate) column: &'static str,
    /// As a ratio to this line, not as a value.
    pub(crate) ratio_to: Option<&'static str>,
    pub(crate) bound: Bound,
}

/// On which side of a number a goal is reached.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Column {
    pub(crate) const fn new(name: &'static str, decimals: usize) -> Self {
        Self { name, decimals }
    }

    /// A goal: a line reaches at least this here.
    pub(crate) const fn at_least(self, line: &'static str, least: f64) -> Goal {
        Goal { line, column: self.name, ratio_to: None, bound: Bound::AtLeast(least) }
    }

    /// A goal: a line does not exceed this here.
    pub(crate) const fn at_most(self, line: &'static str, most: f64) -> Goal {
        Goal { line, column: self.name, ratio_to: None, bound: Bound::AtMost(most) }
    }
}

impl Goal {
    /// The same of the ratio to another line.
    pub(crate) const fn beside(self, base: &'static str) -> Self {
        Self { ratio_to: Some(base), ..self }
    }
}

impl Line {
    /// A target's numbers; none of its connections was closed.
    pub(crate) fn new(target: &'static str, values: Vec<Option<f64>>, failures: Failures) -> Self {
        Self { target, values, rounds: Vec::new(), reconnects: 0, failures }
    }

    /// The medians of what each round gave.
    pub(crate) fn of_rounds(
        target: &'static str,
        rounds: Vec<Vec<Option<f64>>>,
        reconnects: u64,
        failures: Failures,
    ) -> Self {
        let columns = rounds.first().map_or(0, Vec::len);
        let of = |column: usize| rounds.iter().filter_map(move |round| round[column]).collect();
        let values = (0..columns).map(|column| median(of(column))).collect();
        Self { target, values, rounds, reconnects, failures }
    }
}

impl Report {
    pub(crate) fn new(machine: String) -> Self {
        Self { machine, sections: Vec::new() }
    }

    pub(crate) fn heading(&self) -> &str {
        &self.machine
    }

    /// Shows a section and keeps it.
    pub(crate) fn add(&mut self, section: Section) -> Result<()> {
        show(&section.table())?;
        self.sections.push(section);
        Ok(())
    }

    /// All goals beside the measured figures; empty without goals.
    pub(crate) fn goals(&self) -> String {
        let all =
            self.sections.iter().flat_map(Section::verdicts).map(|line| format!("\n  {line}"));
        let lines: String = all.collect();
        if lines.is_empty() { lines } else { format!("\nall goals{lines}") }
    }
}

impl Section {
    fn table(&self) -> String {
        let mut rows = vec![self.header()];
        for line in &self.lines {
            rows.push(self.values(line));
            for base in self.bases {
                rows.extend(self.ratios(line, base));
            }
        }
        let mut text = format!("\n{}: {}\n{}", self.name, self.title, align(&rows));
        for line in self.lines.iter().filter(|line| line.failures.total() > 0) {
            let kinds = line.failures.iter().map(|(what, count)| format!("{count} × {what}"));
            text +=
                &format!("  {} failed: {}\n", line.target, kinds.collect::<Vec<_>>().join("; "));
        }
        for line in self.lines.iter().filter(|line| line.reconnects > 0) {
            text += &format!("  {} closed {} connections\n", line.target, line.reconnects);
        }
        self.verdicts().for_each(|verdict| text += &format!("  {verdict}\n"));
        text
    }

    fn header(&self) -> Vec<String> {
        let names = self.columns.iter().map(|column| column.name.to_owned());
        [String::new()].into_iter().chain(names).chain(["failed".to_owned()]).collect()
    }

    fn values(&self, line: &Line) -> Vec<String> {
        let mut row = vec![line.target.to_owned()];
        for (column, value) in self.columns.iter().zip(&line.values) {
            row.push(value.map_or("-".into(), |value| format!("{value:.*}", column.decimals)));
        }
        row.push(line.failures.total().to_string());
        row
    }

    /// A line's values divided by those of `base`; `None` when it is that line or has nothing to
    /// be compared with.
    fn ratios(&self, line: &Line, base: &str) -> Option<Vec<String>> {
        let order = |target| self.lines.iter().position(|line| line.target == target);
        if order(line.target) <= order(base) {
            return None;
        }
        let base = self.line(base)?;
        let mut row = vec![format!("  ÷ {}", base.target)];
        for column in 0..self.columns.len() {
            row.push(
                ratio(line, base, column).map_or(String::new(), |ratio| format!("{ratio:.2}")),
            );
        }
        row.push(String::new());
        Some(row)
    }

    fn verdicts(&self) -> impl Iterator<Item = String> {
        self.goals.iter().filter_map(|goal| self.verdict(goal))
    }

    fn verdict(&self, goal: &Goal) -> Option<String> {
        let line = self.line(goal.line)?;
        let column = self.columns.iter().position(|column| column.name == goal.column)?;
        let measured = match goal.ratio_to {
            None => line.values.get(column).copied().flatten(),
            Some(base) => ratio(line, self.line(base)?, column),
        }?;
        let (reached, sign, bound) = match goal.bound {
            Bound::AtLeast(bound) => (measured >= bound, "≥", bound),
            Bound::AtMost(bound) => (measured <= bound, "≤", bound),
        };
        let of = goal.ratio_to.map_or(String::new(), |base| format!(" ÷ {base}"));
        let verdict = if reached { "reached" } else { "NOT reached" };
        let several = self.goals.iter().any(|other| other.line != goal.line);
        let whose = if several { format!("{}, ", goal.line) } else { String::new() };
        let what = format!("{}: {whose}{}{of}", self.name, goal.column);
        Some(format!("goal {what} {sign} {bound}: measured {measured:.2}, {verdict}"))
    }

    fn line(&self, target: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.target == target)
    }
}

pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

pub(crate) fn show(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches('\n'))?;
    Ok(out.flush()?)
}

/// Prints progress on stderr. A closed stderr is no failure.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "benches: {text}");
}

/// The median of the ratios of all rounds: what drifts from one round to the next is in none of them. Without rounds,
/// the ratio of the values.
fn ratio(line: &Line, base: &Line, column: usize) -> Option<f64> {
    if line.rounds.is_empty() || line.rounds.len() != base.rounds.len() {
        return quotient(&line.values, &base.values, column);
    }
    let pairs = line.rounds.iter().zip(&base.rounds);
    median(pairs.filter_map(|(line, base)| quotient(line, base, column)).collect())
}

fn quotient(values: &[Option<f64>], base: &[Option<f64>], column: usize) -> Option<f64> {
    let value = values.get(column).copied().flatten()?;
    let base = base.get(column).copied().flatten()?;
    (base != 0.0).then(|| value / base)
}

/// The middle one, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = values.len() / 2;
    let lower = values.len().checked_sub(1)? / 2;
    Some(f64::midpoint(values[lower], values[upper]))
}

/// The first column to the left, the others to the right, each as wide as its widest cell.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let widths: Vec<usize> = (0..columns)
        .map(|column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let line = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("  {cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        text += line.collect::<String>().trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(target: &'static str, rate: f64, cpu: Option<f64>) -> Line {
        Line::new(target, vec![Some(rate), cpu], Failures::default())
    }

    fn section() -> Section {
        let goal = |bound, ratio_to| Goal { line: "warren", column: "req/s", ratio_to, bound };
        Section {
            name: "plain/32".into(),
            title: "words".into(),
            columns: vec![Column::new("req/s", 0), Column::new("cpu s", 3)],
            lines: vec![
                line("direct", 1000.0, None),
                line("nginx", 500.0, Some(0.1)),
                line("warren", 200.0, Some(0.3)),
            ],
            bases: BACKENDS,
            goals: vec![goal(Bound::AtLeast(0.5), Some("nginx")), goal(Bound::AtMost(250.0), None)],
        }
    }

    #[test]
    fn a_table_has_values_and_ratios_to_those_before() {
        let expected = "
plain/32: words
              req/s  cpu s  failed
  direct       1000      -       0
  nginx         500  0.100       0
    ÷ direct   0.50
  warren        200  0.300       0
    ÷ direct   0.20
    ÷ nginx    0.40   3.00
  goal plain/32: req/s ÷ nginx ≥ 0.5: measured 0.40, NOT reached
  goal plain/32: req/s ≤ 250: measured 200.00, reached
";
        assert_eq!(section().table(), expected);
    }

    #[test]
    fn ratios_of_rounds_are_taken_round_by_round() {
        let of = |target, rates: [f64; 3]| {
            let rounds = rates.map(|rate| vec![Some(rate), None]).to_vec();
            Line::of_rounds(target, rounds, 0, Failures::default())
        };
        let (base, line) = (of("nginx", [100.0, 10.0, 1000.0]), of("warren", [50.0, 6.0, 400.0]));
        assert_eq!(line.values, [Some(50.0), None]);
        assert_eq!(ratio(&line, &base, 0), Some(0.5));
        assert_eq!(ratio(&line, &base, 1), None);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn failures_are_told() {
        let mut section = section();
        section.lines[1].failures.add("status 502");
        section.lines[1].failures.add("status 502");
        assert!(section.table().contains("nginx failed: 2 × status 502"));
    }

    #[test]
    fn goals_of_several_lines_tell_which() {
        let mut section = section();
        section.goals[1].line = "nginx";
        let verdicts: Vec<String> = section.verdicts().collect();
        assert!(verdicts[0].starts_with("goal plain/32: warren, req/s ÷ nginx ≥"), "{verdicts:?}");
        assert!(verdicts[1].starts_with("goal plain/32: nginx, req/s ≤"), "{verdicts:?}");
    }

    #[test]
    fn without_nginx_its_goals_are_silent() {
        let mut section = section();
        section.lines.remove(1);
        assert_eq!(section.verdicts().count(), 1);
        assert!(!section.table().contains("nginx"));
    }
}
