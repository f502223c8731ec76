//! `warren usage`: tokens and requests by key, model and so on.

use base::{Money, UsageBy};
use clap::Args;
use client::{
    admin::usage::{UsageCounts, UsageReport, UsageRow},
    server::UsageRequest,
};
use daemon::ConfigFile;

use super::{
    names::Names,
    say, say_json,
    table::{plain, table},
    target::{AdminTarget, Target},
    worker_runtime,
};
use crate::exit::usage;

/// Show usage
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren usage --since 7d\n  \
    warren usage --by model,day --csv")]
pub(crate) struct Usage {
    /// What to group by: key, model, provider, api, day [default: key]
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',')]
    by: Option<Vec<UsageBy>>,
    /// From this time on: 2026-11-01, 2026-11-01T12:00:00Z, or 7d for seven days ago
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Before this time
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Of this key only, by its id
    #[arg(long, value_name = "ID")]
    key: Option<String>,
    /// Of this model only
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Of the workers or nodes of this name only
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    target: Target,
}

impl Usage {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        worker_runtime()?.block_on(self.report(file))
    }

    async fn report(self, file: &ConfigFile) -> anyhow::Result<()> {
        let request = self.request();
        let query = daemon::offline::usage_query(&request.query()).map_err(usage)?;
        let target = self.target.choose(&file.serve)?;
        let report = match &target {
            AdminTarget::Running(warren) => warren.usage(&request).await?,
            AdminTarget::Offline(stopped) => stopped.usage(&query)?,
        };
        if self.json {
            return Ok(say_json(&report)?);
        }
        if self.csv {
            return Ok(say(report.to_csv(&query.query.by).replace("\r\n", "\n").trim_end())?);
        }
        let names = match &target {
            AdminTarget::Running(warren) => Names::of(warren).await,
            AdminTarget::Offline(stopped) => Names::of_keys(&stopped.keys()),
        };
        Ok(say(&readable(&report, &query.query.by, &names))?)
    }

    fn request(&self) -> UsageRequest {
        UsageRequest {
            by: self.by.clone().unwrap_or_else(|| vec![UsageBy::Key]),
            since: self.since.clone(),
            until: self.until.clone(),
            key: self.key.clone(),
            model: self.model.clone(),
            provider: self.provider.clone(),
        }
    }
}

fn readable(report: &UsageReport, by: &[UsageBy], named: &Names) -> String {
    if report.totals.requests == 0 {
        return "Nothing was used.".to_owned();
    }
    let priced = report.totals.cost > Money::default();
    let cost = format!("cost {}", report.currency);
    let names = by.iter().map(|by| by.as_str());
    let counts = shown(UsageCounts::NAMES, priced);
    let counts = counts.map(|name| name.strip_suffix("_tokens").unwrap_or(name));
    let header: Vec<&str> = names.chain(counts).chain(priced.then_some(&*cost)).collect();
    let mut rows: Vec<Vec<String>> =
        report.rows.iter().map(|row| cells(row, by, named, priced)).collect();
    if rows.len() != 1 {
        let mut totals = vec![String::new(); by.len()];
        totals.iter_mut().take(1).for_each(|name| "all".clone_into(name));
        rows.push(totals.into_iter().chain(numbers(&report.totals, priced)).collect());
    }
    let table = table(&header, &rows, header.len() - by.len());
    let more = "\nThere are more rows than these: ask for less time, or for one key or model.";
    if report.truncated { table + more } else { table }
}

fn cells(row: &UsageRow, by: &[UsageBy], named: &Names, priced: bool) -> Vec<String> {
    let name = |by: &UsageBy| row.get(*by).unwrap_or_default();
    let names = by.iter().map(|by| match by {
        UsageBy::Key | UsageBy::Provider => named.shown(name(by)),
        _ => plain(name(by)),
    });
    names.chain(numbers(&row.counts, priced)).collect()
}

fn numbers(counts: &UsageCounts, priced: bool) -> impl Iterator<Item = String> {
    let cost = priced.then(|| counts.cost.to_string());
    shown(counts.values(), priced).map(|count| count.to_string()).chain(cost)
}

/// The columns that have room on 80 characters: beside a cost, the sum of the tokens is left out.
fn shown<T>(counts: [T; 6], priced: bool) -> impl Iterator<Item = T> {
    let [requests, prompt, completion, total, estimated, errors] = counts;
    let total = (!priced).then_some(total);
    let first = [requests, prompt, completion].into_iter();
    first.chain(total).chain([estimated, errors])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_a_total() {
        let counts = UsageCounts { requests: 2, prompt_tokens: 30, ..UsageCounts::default() };
        let row = |model: &str| {
            let mut row = UsageRow { counts, ..UsageRow::default() };
            row.set(UsageBy::Model, model.to_owned());
            row
        };
        let totals = UsageCounts { requests: 4, prompt_tokens: 60, ..UsageCounts::default() };
        let report =
            UsageReport { rows: vec![row("m"), row("")], totals, ..UsageReport::default() };
        let table = readable(&report, &[UsageBy::Model], &Names::default());
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("MODEL  REQUESTS  PROMPT"), "{table}");
        assert!(lines[2].starts_with("-  ") && lines[3].starts_with("all"), "{table}");
        let mut priced = report;
        priced.totals.cost = Money(1_234_567);
        priced.rows[0].set(UsageBy::Model, "k-0123456789abcdef".to_owned());
        let table = readable(&priced, &[UsageBy::Model], &Names::default());
        let last = table.lines().last().unwrap();
        assert!(table.contains("COST USD") && last.ends_with("1.234567"), "{table}");
        assert!(table.lines().all(|line| line.len() <= 80), "{table}");
        let nothing = readable(&UsageReport::default(), &[UsageBy::Model], &Names::default());
        assert_eq!(nothing, "Nothing was used.");
    }
}
