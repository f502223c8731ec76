//! Prices of tokens: those that the owner of the server has set, and the cost of a job by them.

use std::collections::HashMap;

use base::{Currency, Money};

/// The number of tokens that a price is for.
const PER: u128 = 1_000_000;

/// The prices of a model's tokens, each for a million of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    /// The price of the tokens of a prompt.
    pub input: Money,
    /// The price of the tokens of an answer.
    pub output: Money,
    /// The price of those tokens of a prompt that come from the provider's cache; `None`: as the others.
    pub cached_input: Option<Money>,
}

/// The prices of a server, all in one currency.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    /// The currency.
    pub currency: Currency,
    of_models: HashMap<String, ModelPrices>,
}

/// The prices of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelPrices {
    /// The price at any provider that has no price of its own.
    pub usual: Option<Price>,
    /// The prices at single providers, by their names.
    pub at: HashMap<String, Price>,
}

/// The tokens of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// The tokens of the prompt.
    pub prompt: u64,
    /// Those tokens of the prompt that came from a cache.
    pub cached: u64,
    /// The tokens of the answer.
    pub completion: u64,
}

/// The amount that a job takes from the limits of its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Charge {
    /// Tokens, read and written together.
    pub tokens: u64,
    /// Money.
    pub money: Money,
}

impl From<u64> for Charge {
    fn from(tokens: u64) -> Self {
        Self { tokens, money: Money::default() }
    }
}

impl Prices {
    /// Prices in this currency, by the names of models.
    pub fn new(
        currency: Currency,
        of_models: impl IntoIterator<Item = (String, ModelPrices)>,
    ) -> Self {
        Self { currency, of_models: of_models.into_iter().collect() }
    }

    /// The cost of a job of this model at this provider; `None` without a price.
    pub fn cost(&self, model: &str, provider: Option<&str>, tokens: Tokens) -> Option<Money> {
        let prices = self.of_models.get(model)?;
        let own = provider.and_then(|name| prices.at.get(name));
        own.or(prices.usual.as_ref()).map(|price| price.of(tokens))
    }

    /// The most that a job may cost if one of these models serves it, at any provider.
    pub fn most<'a>(&self, models: impl Iterator<Item = &'a str>, tokens: Tokens) -> Money {
        let of_model = models.filter_map(|model| self.of_models.get(model));
        let prices = of_model.flat_map(|prices| prices.usual.iter().chain(prices.at.values()));
        prices.map(|price| price.of(tokens)).max().unwrap_or_default()
    }
}

impl Price {
    /// The cost of these tokens, rounded up to a whole millionth.
    fn of(&self, tokens: Tokens) -> Money {
        let cached = tokens.cached.min(tokens.prompt);
        let cached_input = self.cached_input.unwrap_or(self.input);
        let parts = [
            (tokens.prompt - cached, self.input),
            (cached, cached_input),
            (tokens.completion, self.output),
        ];
        let cost = parts.map(|(tokens, price)| u128::from(tokens) * u128::from(price.0));
        let cost = cost.iter().fold(0, |sum: u128, part| sum.saturating_add(*part)).div_ceil(PER);
        Money(u64::try_from(cost).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: u64, output: u64, cached: Option<u64>) -> Price {
        let cached_input = cached.map(Money);
        Price { input: Money(input), output: Money(output), cached_input }
    }

    fn prices() -> Prices {
        let usual = Some(price(150_000, 600_000, Some(75_000)));
        let at = HashMap::from([("box".to_owned(), price(1_000, 2_000, None))]);
        let models = [("m".to_owned(), ModelPrices { usual, at })];
        Prices::new(Currency::default(), models)
    }

    fn tokens(prompt: u64, cached: u64, completion: u64) -> Tokens {
        Tokens { prompt, cached, completion }
    }

    #[test]
    fn cached_tokens_of_a_prompt_have_their_own_price() {
        let cost = |tokens| prices().cost("m", Some("cloud"), tokens).map(|money| money.0);
        assert_eq!(cost(tokens(1_000_000, 0, 1_000_000)), Some(750_000));
        assert_eq!(cost(tokens(1_000_000, 400_000, 0)), Some(90_000 + 30_000));
        assert_eq!(cost(tokens(10, 90, 0)), Some(1), "no more than there are, and rounded up");
    }

    #[test]
    fn a_provider_of_a_name_may_have_a_price_of_its_own() {
        let all = tokens(1_000_000, 1_000_000, 1_000_000);
        assert_eq!(prices().cost("m", Some("box"), all), Some(Money(3_000)));
        assert_eq!(prices().cost("n", Some("box"), all), None);
        assert_eq!(prices().most(["n", "m"].into_iter(), all), Money(675_000));
        assert_eq!(prices().most(["n"].into_iter(), all), Money(0), "without a price");
    }

    #[test]
    fn absurd_counts_do_not_overflow() {
        let all = tokens(u64::MAX, 0, u64::MAX);
        assert_eq!(price(u64::MAX, u64::MAX, None).of(all), Money(u64::MAX));
    }
}
