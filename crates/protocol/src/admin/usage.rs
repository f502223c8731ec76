//! Usage: the answer of `GET /admin/usage`, and the same as CSV.

pub use base::UsageCounts;
use base::{Currency, UsageBy};
use serde::{Deserialize, Serialize};

/// Usage, summed up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReport {
    /// One row for each combination of the grouping fields, the most used first.
    pub rows: Vec<UsageRow>,
    /// All that was asked about, rows that are left out included.
    pub totals: UsageCounts,
    /// The currency of all costs.
    #[serde(default)]
    pub currency: Currency,
    /// Whether there are more rows than listed.
    #[serde(default)]
    pub truncated: bool,
}

/// One combination. It holds the grouping fields of the report and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRow {
    /// The key that it counts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name of the provider; empty when none had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The path that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The day in UTC, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The counts.
    #[serde(flatten)]
    pub counts: UsageCounts,
}

impl UsageRow {
    /// The value of this grouping field, if the report has it.
    pub fn get(&self, by: UsageBy) -> Option<&str> {
        match by {
            UsageBy::Key => self.key.as_deref(),
            UsageBy::Model => self.model.as_deref(),
            UsageBy::Provider => self.provider.as_deref(),
            UsageBy::Api => self.api.as_deref(),
            UsageBy::Day => self.day.as_deref(),
        }
    }

    /// Sets the value of a grouping field.
    pub fn set(&mut self, by: UsageBy, value: String) {
        let place = match by {
            UsageBy::Key => &mut self.key,
            UsageBy::Model => &mut self.model,
            UsageBy::Provider => &mut self.provider,
            UsageBy::Api => &mut self.api,
            UsageBy::Day => &mut self.day,
        };
        *place = Some(value);
    }
}

impl UsageReport {
    /// The rows as CSV (RFC 4180) with a header line, grouped by `by`. Without any `by`, one line
    /// with the totals.
    pub fn to_csv(&self, by: &[UsageBy]) -> String {
        let cost = ["cost", "currency"];
        let names = by.iter().map(|by| by.as_str()).chain(UsageCounts::NAMES).chain(cost);
        let mut csv = line(names.map(str::to_owned));
        if by.is_empty() {
            csv.push_str(&line(self.fields(&self.totals)));
        }
        for row in self.rows.iter().filter(|_| !by.is_empty()) {
            let names = by.iter().map(|by| field(row.get(*by).unwrap_or_default()));
            csv.push_str(&line(names.chain(self.fields(&row.counts))));
        }
        csv
    }

    fn fields(&self, counts: &UsageCounts) -> impl Iterator<Item = String> {
        let cost = [counts.cost.to_string(), self.currency.to_string()];
        counts.values().map(|count| count.to_string()).into_iter().chain(cost)
    }
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.collect();
    format!("{}\r\n", fields.join(","))
}

/// A name as a CSV field. Other people choose the names, and a spreadsheet would run a field that begins
/// like a formula, so such a field gets an apostrophe in front.
fn field(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        return quoted(&format!("'{text}"));
    }
    quoted(text)
}

fn quoted(text: &str) -> String {
    if !text.contains(['"', ',', '\r', '\n']) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use base::Money;

    use super::*;

    fn report() -> UsageReport {
        let counts = UsageCounts {
            requests: 2,
            prompt_tokens: 5,
            cost: Money(1_500),
            ..UsageCounts::default()
        };
        let mut row = UsageRow { counts, ..UsageRow::default() };
        row.set(UsageBy::Model, "a,\"b\"".to_owned());
        row.set(UsageBy::Day, "2026-11-20".to_owned());
        UsageReport { rows: vec![row], totals: counts, ..UsageReport::default() }
    }

    #[test]
    fn csv_quotes_what_would_break_it() {
        let csv = report().to_csv(&[UsageBy::Day, UsageBy::Model]);
        assert_eq!(
            csv,
            "day,model,requests,prompt_tokens,completion_tokens,total_tokens,estimated,errors,cost,currency\r\n\
             2026-11-20,\"a,\"\"b\"\"\",2,5,0,0,0,0,0.0015,USD\r\n"
        );
        assert!(report().to_csv(&[]).ends_with("\r\n2,5,0,0,0,0,0.0015,USD\r\n"));
    }

    #[test]
    fn no_name_is_a_formula_for_a_spreadsheet() {
        for name in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\r=1"] {
            let told = field(name);
            assert!(told.trim_start_matches('"').starts_with('\''), "{told}");
        }
        assert_eq!(field("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
        assert_eq!(field("llama-3=x"), "llama-3=x");
        assert_eq!(field("a\tb"), "a\tb");
    }

    #[test]
    fn a_row_tells_only_what_it_is_told_apart_by() {
        let shown = serde_json::to_value(report()).unwrap();
        let row = &shown["rows"][0];
        assert!(row.get("key").is_none() && row["day"] == "2026-11-20" && row["requests"] == 2);
        assert_eq!(serde_json::from_value::<UsageReport>(shown).unwrap(), report());
    }
}
