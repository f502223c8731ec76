//! The lists of messages: `messages! { … }`, which declares an enum.

use syn::{
    Attribute, Ident, LitStr, Token, Type, Visibility, braced, parenthesized,
    parse::{Parse, ParseStream},
    token,
};

/// A list of messages.
pub(crate) struct Messages {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) all: Vec<Message>,
}

/// One message: its type on the wire, and what else it has.
pub(crate) struct Message {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) name: String,
    pub(crate) body: Option<Type>,
}

impl Parse for Messages {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        // example "…";
        input.parse::<Ident>()?;
        input.parse::<LitStr>()?;
        input.parse::<Token![;]>()?;
        let attributes = input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        input.parse::<Token![enum]>()?;
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        input.parse::<Ident>()?;
        let content;
        braced!(content in input);
        let all = content.parse_terminated(Message::parse, Token![,])?.into_iter().collect();
        Ok(Self { attributes, name, all })
    }
}

impl Parse for Message {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let name = input.parse::<LitStr>()?.value();
        while input.peek(Token![|]) {
            input.parse::<Token![|]>()?;
            input.parse::<LitStr>()?;
        }
        input.parse::<Token![=>]>()?;
        input.parse::<Ident>()?;
        let mut body = None;
        if input.peek(token::Paren) {
            let content;
            parenthesized!(content in input);
            body = Some(content.parse()?);
        }
        Ok(Self { attributes, name, body })
    }
}
