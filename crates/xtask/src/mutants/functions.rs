//! Finds the functions of a file and whether their bodies can be chosen at run time.

use anyhow::Context;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, ImplItemFn, ItemFn, ReturnType, Signature, TraitItemFn, Type, TypeImplTrait, TypeParamBound};

/// A function that is in no other function.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// Where its block is in the file, with the braces.
    pub(super) body: Range<usize>,
    pub(super) choice: Choice,
}

/// How one of several bodies is chosen while the program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// All bodies have one type.
    Direct,
    /// Each body is an iterator of another type, and is boxed as this trait.
    Boxed(String),
    /// Not at all: it may run while the program is compiled, or its bodies have types without a name.
    Never,
}

/// The iterators that a box of them is too.
const ITERATORS: [&str; 3] = ["Iterator", "DoubleEndedIterator", "ExactSizeIterator"];

/// The outermost functions of a file, in its order.
pub(super) fn functions(text: &str) -> anyhow::Result<Vec<Function>> {
    let file = syn::parse_file(text).context("could not parse")?;
    let mut finder = Finder { text, found: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.found)
}

struct Finder<'a> {
    text: &'a str,
    found: Vec<Function>,
}

impl Finder<'_> {
    fn add(&mut self, signature: &Signature, block: &Block) {
        let choice = if signature.constness.is_some() { Choice::Never } else { self.choice(&signature.output) };
        self.found.push(Function { body: block.span().byte_range(), choice });
    }

    fn choice(&self, output: &ReturnType) -> Choice {
        let mut search = ImplTrait(false);
        search.visit_return_type(output);
        match output {
            _ if !search.0 => Choice::Direct,
            ReturnType::Type(_, returned) => self.boxed(returned).map_or(Choice::Never, Choice::Boxed),
            ReturnType::Default => Choice::Never,
        }
    }

    /// The trait of an iterator, as it is written.
    fn boxed(&self, returned: &Type) -> Option<String> {
        let Type::ImplTrait(TypeImplTrait { bounds, .. }) = returned else { return None };
        let mut bounds = bounds.iter();
        let (Some(TypeParamBound::Trait(bound)), None) = (bounds.next(), bounds.next()) else { return None };
        let name = bound.path.segments.last()?.ident.to_string();
        ITERATORS.contains(&name.as_str()).then(|| self.text[bound.span().byte_range()].to_owned())
    }
}

impl Visit<'_> for Finder<'_> {
    fn visit_item_fn(&mut self, function: &ItemFn) {
        self.add(&function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &ImplItemFn) {
        self.add(&function.sig, &function.block);
    }

    fn visit_trait_item_fn(&mut self, function: &TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
    }
}

/// Whether a type contains `impl Trait`.
struct ImplTrait(bool);

impl Visit<'_> for ImplTrait {
    fn visit_type_impl_trait(&mut self, _: &TypeImplTrait) {
        self.0 = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, functions};

    #[test]
    fn outermost_functions_are_found_with_their_bodies() {
        let text = "fn ü() { fn inner() {} }\nimpl A { fn f(&self) -> u8 { 1 } }\ntrait T { fn g(); fn h() { } }\nmod m { fn i() {2} }";
        let bodies: Vec<String> =
            functions(text).unwrap().into_iter().map(|function| text[function.body].to_owned()).collect();
        assert_eq!(bodies, ["{ fn inner() {} }", "{ 1 }", "{ }", "{2}"]);
    }

    #[test]
    fn a_body_is_chosen_directly_boxed_or_never() {
        let boxed = |text: &str| Choice::Boxed(text.to_owned());
        let cases = [
            ("fn f() {}", Choice::Direct),
            ("fn f(a: impl Iterator) -> Vec<u8> { a.collect() }", Choice::Direct),
            ("fn f() -> impl Iterator<Item = &'static str> {}", boxed("Iterator<Item = &'static str>")),
            ("fn f() -> impl Iterator<Item = u8> + Clone {}", Choice::Never),
            ("fn f() -> impl Display {}", Choice::Never),
            ("fn f() -> Option<impl Iterator<Item = u8>> {}", Choice::Never),
            ("const fn f() -> u8 { 1 }", Choice::Never),
        ];
        for (text, choice) in cases {
            assert_eq!(functions(text).unwrap()[0].choice, choice, "{text}");
        }
    }
}
