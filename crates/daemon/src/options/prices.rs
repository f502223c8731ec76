//! The prices of models, in the file.

use std::collections::BTreeMap;

use base::{Currency, Money};
use serde::Deserialize;

section! {
    /// One `[prices."MODEL"]` of the file: what a million tokens cost.
    #[derive(Debug, Clone, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    PriceOptions {
        /// Of the tokens of a prompt.
        input: Option<Money>,
        /// Of the tokens of an answer.
        output: Option<Money>,
        /// Of those tokens of a prompt that the provider reads from its cache [default: as input]
        cached_input: Option<Money>,
        /// The currency, which is the same for all prices.
        currency: Option<Currency>,
        /// Other prices at the providers of a name: `[prices."MODEL".providers."NAME"]`
        providers: BTreeMap<String, ProviderPriceOptions>,
    }
}

section! {
    /// One `[prices."MODEL".providers."NAME"]` of the file: what a million tokens cost there.
    #[derive(Debug, Clone, Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    ProviderPriceOptions {
        /// Of the tokens of a prompt.
        input: Money,
        /// Of the tokens of an answer.
        output: Money,
        /// Of those tokens of a prompt that the provider reads from its cache [default: as input]
        cached_input: Option<Money>,
    }
}
