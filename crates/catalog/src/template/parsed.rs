//! A parsed and checked template.

use super::balance;
use super::names;
use gotmpl::TemplateError;
use gotmpl::parse::{ListNode, Parser};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A template whose syntax, functions and variables are valid.
#[derive(Debug)]
pub struct Parsed {
    /// The body outside of any `define`.
    pub body: ListNode,
    /// The named templates.
    pub defines: BTreeMap<String, ListNode>,
}

impl Parsed {
    /// Parses a template; the error is the list of mistakes with their lines.
    pub fn read(source: &str) -> Result<Arc<Parsed>, Vec<balance::Mistake>> {
        balance::check(source).map_err(|mistake| vec![mistake])?;
        let (body, defined) =
            Parser::new(source, "{{", "}}").and_then(Parser::parse).map_err(|error| vec![mistake(error)])?;
        let mut mistakes = Vec::new();
        let mut defines = BTreeMap::new();
        for define in defined {
            let name = define.name.to_string();
            let is_new = defines.get(&name).is_none_or(ListNode::is_empty_tree);
            if !is_new && !define.body.is_empty_tree() {
                mistakes.push((define.pos.line, format!("template {name:?} is defined twice")));
            } else if is_new {
                defines.insert(name, define.body);
            }
        }
        let parsed = Parsed { body, defines };
        mistakes.extend(names::check(&parsed));
        if mistakes.is_empty() { Ok(Arc::new(parsed)) } else { Err(mistakes) }
    }
}

fn mistake(error: TemplateError) -> balance::Mistake {
    match error {
        TemplateError::Parse { line, message, .. } | TemplateError::Lex { line, message, .. } => (line, message),
        other => (1, other.to_string()),
    }
}
