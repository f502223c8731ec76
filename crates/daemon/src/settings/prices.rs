//! The prices of models.

use std::collections::{BTreeMap, HashMap};

use access::{ModelPrices, Price, Prices};
use anyhow::{Context, bail};
use base::Currency;

use crate::options::{PriceOptions, ProviderPriceOptions};

/// The prices of the settings, in their one currency.
///
/// # Errors
/// When they are in two currencies, or a price lacks `input` or `output`.
pub(crate) fn prices(
    currency: Option<Currency>,
    options: Option<&BTreeMap<String, PriceOptions>>,
) -> anyhow::Result<Prices> {
    let options = || options.into_iter().flatten();
    let mut named = currency;
    for (model, price) in options() {
        match (named, price.currency) {
            (Some(one), Some(other)) if one != other => bail!(
                "[prices.{model:?}] is in {other}, others are in {one}: a server counts money in \
                 one currency"
            ),
            (None, other) => named = other,
            _ => {}
        }
    }
    let prices = options().map(|(model, price)| {
        let price = of_model(price).with_context(|| format!("in [prices.{model:?}]"));
        Ok((model.clone(), price?))
    });
    let prices = prices.collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Prices::new(named.unwrap_or_default(), prices))
}

fn of_model(options: &PriceOptions) -> anyhow::Result<ModelPrices> {
    let PriceOptions { input, output, cached_input, .. } = *options;
    let usual = match (input, output) {
        (Some(input), Some(output)) => Some(Price { input, output, cached_input }),
        (None, None) if cached_input.is_none() && !options.providers.is_empty() => None,
        _ => bail!("a price needs input and output, each for a million tokens"),
    };
    let at = options.providers.iter().map(|(name, price)| {
        let ProviderPriceOptions { input, output, cached_input } = *price;
        (name.clone(), Price { input, output, cached_input })
    });
    Ok(ModelPrices { usual, at: HashMap::from_iter(at) })
}

#[cfg(test)]
mod tests {
    use access::Tokens;
    use base::Money;

    use super::*;

    fn read(toml: &str) -> anyhow::Result<Prices> {
        let options: BTreeMap<String, PriceOptions> = toml::from_str(toml)?;
        prices(None, Some(&options))
    }

    #[test]
    fn prices_are_read_as_people_write_them() {
        let prices = read(
            "[gpt-x]\ninput = 0.15\noutput = 1\ncached_input = \"0.075\"\ncurrency = \"eur\"\n\
             [qwen.providers.box]\ninput = 0.01\noutput = 0.02",
        )
        .unwrap();
        assert_eq!(prices.currency.as_str(), "EUR");
        let tokens = Tokens { prompt: 1_000_000, cached: 0, completion: 0 };
        assert_eq!(prices.cost("gpt-x", None, tokens), Some(Money(150_000)));
        assert_eq!(prices.cost("qwen", None, tokens), None);
        assert_eq!(prices.cost("qwen", Some("box"), tokens), Some(Money(10_000)));
    }

    #[test]
    fn two_currencies_and_half_a_price_are_refused() {
        let two = "[a]\ninput = 1\noutput = 1\ncurrency = \"EUR\"\n\
                   [b]\ninput = 1\noutput = 1\ncurrency = \"USD\"";
        let error = read(two).unwrap_err().to_string();
        assert!(error.contains("one currency"), "{error}");
        for half in ["[a]\ninput = 1", "[a]\ncached_input = 1", "[a]"] {
            let error = format!("{:#}", read(half).unwrap_err());
            assert!(error.contains("needs input and output"), "{error}");
        }
        for bad in ["[a]\ninput = -1\noutput = 1", "[a]\ninput = 0.0000001\noutput = 1"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
