//! A type as TypeScript.

use syn::{
    Field, Fields, GenericArgument, Generics, ItemEnum, ItemStruct, PathArguments, Type, Variant,
};

use crate::{
    attributes::{Serde, comment},
    known::{known, name_of},
    messages::Messages,
    sources::{Declared, Sources},
};

/// The way of a type's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The server writes it: what it leaves out may be absent.
    Received,
    /// The page writes it: what the server does not ask for may be absent.
    Sent,
    /// Either.
    Both,
}

/// A type as TypeScript, with the names of the types that it is made of.
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) uses: Vec<String>,
}

impl Written {
    pub(crate) fn of(sources: &Sources, name: &str, direction: Direction) -> Self {
        let (file, declared) = sources.find(name);
        let is_in_room = file.parent().is_some_and(|folder| folder.ends_with("room"));
        let (parameters, uses) = (Vec::new(), Vec::new());
        let mut writer = Writer { direction, is_in_room, parameters, uses };
        let text = match declared {
            Declared::Struct(it) => writer.of_struct(it),
            Declared::Enum(it) => writer.of_enum(it),
            Declared::Messages(it) => writer.of_messages(it),
            Declared::Alias(it) => {
                let meant = writer.kind(&it.ty);
                format!("{}export type {} = {meant};\n", comment(&it.attrs, ""), name_of(name))
            }
        };
        Self { text, uses: writer.uses }
    }
}

struct Writer {
    direction: Direction,
    is_in_room: bool,
    /// The parameters of a generic type.
    parameters: Vec<String>,
    uses: Vec<String>,
}

impl Writer {
    fn of_struct(&mut self, it: &ItemStruct) -> String {
        let name = self.named(&it.ident.to_string(), &it.generics);
        let (doc, serde) = (comment(&it.attrs, ""), Serde::of(&it.attrs));
        let Fields::Named(fields) = &it.fields else {
            let one = it.fields.iter().next().expect("a struct without names has a field");
            return format!("{doc}export type {name} = {};\n", self.kind(&one.ty));
        };
        let (flat, own): (Vec<&Field>, Vec<&Field>) =
            fields.named.iter().partition(|field| Serde::of(&field.attrs).flatten);
        let body = self.fields(&own, &serde, serde.rename_all.as_deref(), "  ");
        let body = format!("{{\n{body}}}");
        if flat.is_empty() {
            return format!("{doc}export interface {name} {body}\n");
        }
        let flat: Vec<String> = flat.iter().map(|field| self.flat(&field.ty)).collect();
        format!("{doc}export type {name} = {} & {body};\n", flat.join(" & "))
    }

    fn of_enum(&mut self, it: &ItemEnum) -> String {
        let name = self.named(&it.ident.to_string(), &it.generics);
        let serde = Serde::of(&it.attrs);
        let variants = it.variants.iter().map(|variant| {
            let written = self.variant(variant, &serde);
            format!("{}  | {written}", comment(&variant.attrs, "  "))
        });
        let variants: Vec<String> = variants.collect();
        format!("{}export type {name} =\n{};\n", comment(&it.attrs, ""), variants.join("\n"))
    }

    fn of_messages(&mut self, it: &Messages) -> String {
        let all = it.all.iter().map(|message| {
            let tag = format!("{{ type: {:?} }}", message.name);
            let body = message.body.as_ref().map(|body| format!(" & {}", self.kind(body)));
            let doc = comment(&message.attributes, "  ");
            format!("{doc}  | {tag}{}", body.unwrap_or_default())
        });
        let all: Vec<String> = all.collect();
        format!("{}export type {} =\n{};\n", comment(&it.attributes, ""), it.name, all.join("\n"))
    }

    /// A name with the parameters of its type, which are remembered.
    fn named(&mut self, name: &str, generics: &Generics) -> String {
        self.parameters = generics.type_params().map(|it| it.ident.to_string()).collect();
        let name = name_of(name);
        match self.parameters.as_slice() {
            [] => name.to_owned(),
            all => format!("{name}<{}>", all.join(", ")),
        }
    }

    fn variant(&mut self, variant: &Variant, of: &Serde) -> String {
        let own = Serde::of(&variant.attrs);
        let name =
            format!("{:?}", own.renamed(of.rename_all.as_deref(), &variant.ident.to_string()));
        let body = self.body(&variant.fields, &own);
        match (&of.tag, &of.content, body) {
            _ if of.untagged => {
                self.body(&variant.fields, &own).unwrap_or_else(|| "null".to_owned())
            }
            (Some(tag), _, None) => format!("{{ {tag}: {name} }}"),
            (Some(tag), None, Some(body)) => format!("{{ {tag}: {name} }} & {body}"),
            (Some(tag), Some(content), Some(body)) => {
                format!("{{ {tag}: {name}; {content}: {body} }}")
            }
            (None, _, None) => name,
            (None, _, Some(body)) => format!("{{ {name}: {body} }}"),
        }
    }

    /// The body of a variant beside its name.
    fn body(&mut self, fields: &Fields, of: &Serde) -> Option<String> {
        match fields {
            Fields::Unit => None,
            Fields::Unnamed(one) => one.unnamed.first().map(|field| self.kind(&field.ty)),
            Fields::Named(all) => {
                let all: Vec<&Field> = all.named.iter().collect();
                let all = self.fields(&all, of, of.rename_all.as_deref(), "      ");
                Some(format!("{{\n{all}    }}"))
            }
        }
    }

    /// Fields, each on a line of its own. `of`: the attributes of their type.
    fn fields(&mut self, all: &[&Field], of: &Serde, rule: Option<&str>, indent: &str) -> String {
        all.iter().map(|field| self.field(field, of, rule, indent)).collect()
    }

    fn field(&mut self, field: &Field, of: &Serde, rule: Option<&str>, indent: &str) -> String {
        let serde = Serde::of(&field.attrs);
        if serde.skip {
            return String::new();
        }
        let name = field.ident.as_ref().expect("it has a name").to_string();
        let name = quoted(&serde.renamed(rule, name.trim_start_matches("r#")));
        let kind = self.kind(&field.ty);
        let doc = comment(&field.attrs, indent);
        let is_option = kind.ends_with(" | null");
        // A field that is left out when it is `None` never arrives as null.
        let as_received = kind.strip_suffix(" | null").unwrap_or(&kind).to_owned();
        let may_be_omitted = serde.default || of.default || is_option;
        let (mark, kind) = match self.direction {
            Direction::Received if serde.is_left_out => ("?", as_received),
            Direction::Received => ("", kind),
            Direction::Sent if may_be_omitted => ("?", kind),
            Direction::Both if may_be_omitted || serde.is_left_out => ("?", kind),
            Direction::Sent | Direction::Both => ("", kind),
        };
        format!("{doc}{indent}{name}{mark}: {kind};\n")
    }

    /// The type of fields that stand among the others. They may all be absent together.
    fn flat(&mut self, of: &Type) -> String {
        let kind = self.kind(of);
        match kind.strip_suffix(" | null") {
            Some(kind) => format!("Partial<{kind}>"),
            None => kind,
        }
    }

    fn kind(&mut self, of: &Type) -> String {
        match of {
            Type::Reference(it) => self.kind(&it.elem),
            Type::Paren(it) => self.kind(&it.elem),
            Type::Slice(it) => list(&self.kind(&it.elem)),
            Type::Array(it) => list(&self.kind(&it.elem)),
            Type::Tuple(it) => {
                let all: Vec<String> = it.elems.iter().map(|it| self.kind(it)).collect();
                format!("[{}]", all.join(", "))
            }
            Type::Path(it) => {
                let last = it.path.segments.last().expect("a path has a name");
                let arguments: Vec<String> = arguments(&last.arguments, self);
                self.path(&last.ident.to_string(), &arguments)
            }
            _ => panic!("a type is not understood: say in `written` what it means"),
        }
    }

    fn path(&mut self, name: &str, arguments: &[String]) -> String {
        match (name, arguments) {
            ("Box" | "Arc" | "Cow", [inner]) => inner.clone(),
            ("Option", [inner]) => format!("{inner} | null"),
            ("Vec" | "BTreeSet", [inner]) => list(inner),
            ("BTreeMap" | "HashMap", [_, value]) => format!("Record<string, {value}>"),
            _ if self.parameters.iter().any(|parameter| parameter == name) => name.to_owned(),
            _ => match known(name, self.is_in_room) {
                Some(known) => known.to_owned(),
                None => {
                    self.uses.push(name.to_owned());
                    let (name, all) = (name_of(name), arguments.join(", "));
                    if all.is_empty() { name.to_owned() } else { format!("{name}<{all}>") }
                }
            },
        }
    }
}

/// The types between angle brackets.
fn arguments(all: &PathArguments, writer: &mut Writer) -> Vec<String> {
    let PathArguments::AngleBracketed(all) = all else { return Vec::new() };
    let types = all.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(of) => Some(writer.kind(of)),
        _ => None,
    });
    types.collect()
}

fn list(of: &str) -> String {
    if of.contains(' ') { format!("({of})[]") } else { format!("{of}[]") }
}

/// A field's name, quoted where TypeScript asks for that.
fn quoted(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain { name.to_owned() } else { format!("{name:?}") }
}
