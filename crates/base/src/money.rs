//! Money as whole numbers: amounts in millionths, and the currency that they are in.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::key::Period;

/// Digits after the point of an amount at most.
const DIGITS: usize = 6;

/// An amount in millionths of a unit of the server's currency. It is never a floating-point number,
/// so sums are exact. In text and in JSON it is a decimal, such as `0.15`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(pub u64);

/// A currency by its code of three letters, such as `USD`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency([u8; 3]);

/// Money that may be spent in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoneyBudget {
    /// The amount.
    pub amount: Money,
    /// The currency of the amount.
    pub currency: Currency,
    /// In each of these.
    pub per: Period,
}

/// The kind that a text about money does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotMoney(&'static str);

impl Money {
    /// The larger sum, or the largest amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Default for Currency {
    fn default() -> Self {
        Self(*b"USD")
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, millionths) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let digits = format!("{millionths:06}");
        let kept = digits.trim_end_matches('0').len().max(2);
        write!(f, "{units}.{}", digits.get(..kept).unwrap_or(&digits))
    }
}

/// `5`, `5.00` or `0.000123`.
impl FromStr for Money {
    type Err = NotMoney;

    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let bad = || NotMoney("an amount such as 5 or 0.15, with at most 6 digits after the point");
        let (units, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(units) || !is_number(part) || part.len() > DIGITS {
            return Err(bad());
        }
        let units: u64 = units.parse().map_err(|_| bad())?;
        let millionths: u64 = format!("{part:0<DIGITS$}").parse().map_err(|_| bad())?;
        let amount = units.checked_mul(1_000_000).and_then(|all| all.checked_add(millionths));
        amount.map(Self).ok_or_else(bad)
    }
}

impl Currency {
    /// Its code.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Currency {
    type Err = NotMoney;

    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let code = text.to_ascii_uppercase();
        let is_code = text.bytes().all(|b| b.is_ascii_alphabetic());
        let code = code.as_bytes().try_into().ok().filter(|_| is_code);
        code.map(Self).ok_or(NotMoney("a currency of three letters, such as USD or EUR"))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `5.00USD/month` or `2EUR/day`.
impl FromStr for MoneyBudget {
    type Err = NotMoney;

    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let bad = || NotMoney("AMOUNT and a currency, such as 5.00USD/month or 2EUR/day");
        let (money, per) = text.split_once('/').ok_or_else(bad)?;
        let money = money.trim();
        let letters = money.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(bad)?;
        let (amount, currency) = money.split_at(letters);
        let amount = amount.trim().parse().map_err(|_| bad())?;
        let (currency, per) = (currency.parse()?, per.trim().parse().map_err(|_| bad())?);
        Ok(Self { amount, currency, per })
    }
}

impl fmt::Display for MoneyBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}/{}", self.amount, self.currency, self.per.as_str())
    }
}

impl fmt::Display for NotMoney {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.0)
    }
}

impl std::error::Error for NotMoney {}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// From a text, or from a number whose shortest decimal form is an amount.
impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Decimal::deserialize(deserializer)? {
            Decimal::Text(text) => text,
            Decimal::Whole(number) => number.to_string(),
            Decimal::Point(number) => number.to_string(),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Decimal {
    Text(String),
    Whole(u64),
    Point(f64),
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_decimals_of_at_most_six_digits() {
        for (text, millionths, shown) in [
            ("5", 5_000_000, "5.00"),
            ("0.15", 150_000, "0.15"),
            ("12.3", 12_300_000, "12.30"),
            ("0.000123", 123, "0.000123"),
        ] {
            let amount: Money = text.parse().unwrap();
            assert_eq!((amount.0, amount.to_string().as_str()), (millionths, shown));
        }
        for bad in ["", ".", ".5", "5.", "-1", "1e3", "1,5", "0.0000001", "99999999999999999999"] {
            assert!(bad.parse::<Money>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_budget_in_money_reads_back_what_it_shows() {
        for text in ["5.00USD/month", "0.25EUR/day"] {
            assert_eq!(text.parse::<MoneyBudget>().unwrap().to_string(), text);
        }
        let budget = "2 eur / day".parse::<MoneyBudget>().unwrap();
        assert_eq!(budget.to_string(), "2.00EUR/day");
        for bad in ["5", "5/month", "USD/month", "5US/month", "5USDX/day", "5USD/week", "5USD"] {
            assert!(bad.parse::<MoneyBudget>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_amount_reads_back_what_it_shows(millionths: u64) {
            let amount = Money(millionths);
            prop_assert_eq!(amount.to_string().parse::<Money>(), Ok(amount));
        }
    }
}
