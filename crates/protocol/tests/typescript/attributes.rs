//! A type's or a field's attributes: those of serde, and its documentation.

use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, Token, parse::ParseStream};

/// The attributes of serde.
#[derive(Debug, Clone, Default)]
pub(crate) struct Serde {
    pub(crate) rename: Option<String>,
    pub(crate) rename_all: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) content: Option<String>,
    pub(crate) untagged: bool,
    pub(crate) flatten: bool,
    pub(crate) skip: bool,
    pub(crate) default: bool,
    pub(crate) is_left_out: bool,
}

impl Serde {
    pub(crate) fn of(attributes: &[Attribute]) -> Self {
        let mut all = Self::default();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("serde")) {
            attribute
                .parse_nested_meta(|meta| {
                    let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                    all.take(&name, value(meta.input)?);
                    Ok(())
                })
                .unwrap_or_else(|error| panic!("an attribute of serde is not understood: {error}"));
        }
        all
    }

    /// A name by the rule of the type that it is in.
    pub(crate) fn renamed(&self, rule: Option<&str>, name: &str) -> String {
        match (&self.rename, rule) {
            (Some(name), _) => name.clone(),
            (None, rule) => by_rule(rule, name),
        }
    }

    fn take(&mut self, name: &str, value: Option<String>) {
        match name {
            "rename" => self.rename = value,
            "rename_all" => self.rename_all = value,
            "tag" => self.tag = value,
            "content" => self.content = value,
            "untagged" => self.untagged = true,
            "flatten" => self.flatten = true,
            "skip" => self.skip = true,
            "default" => self.default = true,
            "skip_serializing_if" => self.is_left_out = true,
            // They say how it is read, or which of its values are taken.
            "deserialize_with"
            | "serialize_with"
            | "alias"
            | "bound"
            | "borrow"
            | "deny_unknown_fields"
            | "from"
            | "other"
            | "transparent"
            | "try_from" => {}
            other => panic!("serde({other}) is not understood: say in `attributes` what it means"),
        }
    }
}

/// The value behind an attribute's name, where it is a text.
fn value(input: ParseStream<'_>) -> syn::Result<Option<String>> {
    if input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in input);
        let _rest: Vec<syn::Expr> = content
            .parse_terminated(Expr::parse_without_eager_brace, Token![,])?
            .into_iter()
            .collect();
        return Ok(None);
    }
    if !input.peek(Token![=]) {
        return Ok(None);
    }
    input.parse::<Token![=]>()?;
    Ok(Some(input.parse::<LitStr>()?.value()))
}

/// A name in the spelling that `rename_all` asks for. Types are in camel case, fields in snake case.
fn by_rule(rule: Option<&str>, name: &str) -> String {
    let words = words(name);
    match rule {
        None => name.to_owned(),
        Some("lowercase") => words.concat(),
        Some("snake_case") => words.join("_"),
        Some("kebab-case") => words.join("-"),
        Some("SCREAMING_SNAKE_CASE") => words.join("_").to_uppercase(),
        Some("camelCase") => {
            let (first, rest) = words.split_first().expect("a name has a word");
            first.clone() + &rest.iter().map(|word| capital(word)).collect::<String>()
        }
        Some(other) => panic!("rename_all = {other:?} is not understood"),
    }
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        let is_new = letter == '_' || letter.is_uppercase();
        if is_new && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if letter != '_' {
            words.last_mut().expect("there is one").extend(letter.to_lowercase());
        }
    }
    words
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

/// Whether a type derives one of serde's traits.
pub(crate) fn derives_serde(attributes: &[Attribute]) -> bool {
    let mut derives = false;
    for attribute in attributes.iter().filter(|it| it.path().is_ident("derive")) {
        let _ = attribute.parse_nested_meta(|meta| {
            let last = meta.path.segments.last().map(|segment| segment.ident.to_string());
            derives |= matches!(last.as_deref(), Some("Serialize" | "Deserialize"));
            Ok(())
        });
    }
    derives
}

/// The documentation as a comment of TypeScript, indented like the item below it. Without documentation it is empty.
pub(crate) fn comment(attributes: &[Attribute], indent: &str) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(doc).map(|line| plain(&line)).collect();
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{indent}/** {line} */\n"),
        lines => {
            let rows = lines.iter().map(|line| format!("{indent} * {line}").trim_end().to_owned());
            format!("{indent}/**\n{}\n{indent} */\n", rows.collect::<Vec<_>>().join("\n"))
        }
    }
}

fn doc(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("doc").then(|| text.value().trim().to_owned())
}

/// A line without the links of Rust's documentation, and nothing that ends a comment.
fn plain(line: &str) -> String {
    line.replace("[`", "`").replace("`]", "`").replace("*/", "* /")
}

#[test]
fn names_are_spelled_as_serde_spells_them() {
    for (rule, name, spelled) in [
        (Some("snake_case"), "OneTwo", "one_two"),
        (Some("lowercase"), "OneTwo", "onetwo"),
        (Some("kebab-case"), "OneTwo", "one-two"),
        (Some("camelCase"), "one_two", "oneTwo"),
        (Some("SCREAMING_SNAKE_CASE"), "OneTwo", "ONE_TWO"),
        (None, "OneTwo", "OneTwo"),
    ] {
        assert_eq!(by_rule(rule, name), spelled);
    }
}
