//! Executes a template as Go's `text/template` does with `missingkey=error`, within a budget.

use super::budget::{CALLS, RenderBudget, Text};
use super::functions;
use super::gzipped::Gzipped;
use super::last_yaml::LastYaml;
use super::parsed::Parsed;
use super::print::printed;
use super::value::Value;
use crate::cluster::facts::Facts;
use crate::cluster::query::Query;
use crate::pack::asset::Read;
use crate::pack::files::Files;
use gotmpl::parse::{BranchNode, CommandNode, Expr, ListNode, Node, Number, PipeNode, TemplateNode};
use std::rc::Rc;

/// The data that the functions of a template may access.
#[derive(Debug)]
pub struct RenderContext<'a> {
    /// The facts, with the answers to queries.
    pub facts: &'a Facts,
    /// The files of the pack, for `readAsset`.
    pub files: &'a Files,
    /// The objects that may be queried; `None` allows everything except Secrets.
    pub reads: Option<&'a [Read]>,
    /// What `fromYaml` read last.
    pub yaml: &'a LastYaml,
    /// What `gzip` has compressed.
    pub gzipped: &'a Gzipped,
    /// The remaining budget.
    pub budget: RenderBudget,
}

/// Why a template stopped.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// The template failed, with this message.
    Failed(String),
    /// This query must be answered first.
    Needs(Query),
    /// The cluster could not answer this query.
    Held(Query),
    /// The template says why there is no object here.
    NotApplicable(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Stop {
        Stop::Failed(message)
    }
}

impl From<&str> for Stop {
    fn from(message: &str) -> Stop {
        Stop::Failed(message.to_owned())
    }
}

enum Flow {
    Next,
    Break,
    Continue,
}

struct Interpreter<'a> {
    parsed: &'a Parsed,
    context: &'a RenderContext<'a>,
    variables: Vec<(String, Value)>,
    depth: usize,
    line: usize,
    out: Text<'a>,
}

/// Executes a template on its data; the error is the line and the reason why it stopped.
pub fn run<'a>(parsed: &'a Parsed, data: &Value, context: &'a RenderContext<'a>) -> Result<String, (usize, Stop)> {
    let mut interpreter = Interpreter {
        parsed,
        context,
        variables: vec![("$".to_owned(), data.clone())],
        depth: 0,
        line: 1,
        out: Text::new(&context.budget),
    };
    match interpreter.list(&parsed.body, data) {
        Ok(_) => Ok(interpreter.out.finish()),
        Err(stop) => Err((interpreter.line, stop)),
    }
}

impl Interpreter<'_> {
    fn list(&mut self, list: &ListNode, dot: &Value) -> Result<Flow, Stop> {
        for node in &list.nodes {
            self.context.budget.step(1)?;
            let flow = match node {
                Node::Text(text) => {
                    self.out.push(&text.text)?;
                    Flow::Next
                }
                Node::Action(action) => {
                    let value = self.pipe(&action.pipe, dot)?;
                    if action.pipe.decl.is_empty() {
                        self.write(&value)?;
                    }
                    Flow::Next
                }
                Node::If(branch) => self.condition(branch, dot, false)?,
                Node::With(branch) => self.condition(branch, dot, true)?,
                Node::Range(branch) => self.range(branch, dot)?,
                Node::Template(call) => self.template(call, dot)?,
                Node::List(list) => self.list(list, dot)?,
                Node::Define(_) => Flow::Next,
                Node::Break(_) => Flow::Break,
                Node::Continue(_) => Flow::Continue,
            };
            if !matches!(flow, Flow::Next) {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn write(&mut self, value: &Value) -> Result<(), Stop> {
        let text = match value {
            Value::Nil => "<no value>".to_owned(),
            Value::Text(text) => return Ok(self.out.push(text)?),
            other => printed(other, &self.context.budget)?,
        };
        Ok(self.out.push(&text)?)
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth == CALLS {
            return Err(format!("templates, blocks and parentheses nest deeper than {CALLS}").into());
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn condition(&mut self, branch: &BranchNode, dot: &Value, becomes_dot: bool) -> Result<Flow, Stop> {
        let mark = self.variables.len();
        let flow = self.deeper(|interpreter| {
            let value = interpreter.pipe(&branch.pipe, dot)?;
            if value.is_true() {
                interpreter.list(&branch.body, if becomes_dot { &value } else { dot })
            } else if let Some(other) = &branch.else_body {
                interpreter.list(other, dot)
            } else {
                Ok(Flow::Next)
            }
        })?;
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn range(&mut self, branch: &BranchNode, dot: &Value) -> Result<Flow, Stop> {
        let mark = self.variables.len();
        let flow = self.deeper(|interpreter| {
            interpreter.line = branch.pos.line;
            let over = interpreter.commands(&branch.pipe, dot)?;
            let ran = match &over {
                Value::Nil => false,
                Value::Int(count) => {
                    if branch.pipe.decl.len() > 1 {
                        return Err(format!("range over the number {count} takes one variable, not two").into());
                    }
                    interpreter.iterations(branch, (0..*count).map(|index| (Value::Int(index), Value::Int(index))))?
                }
                Value::List(list) => {
                    let items = list.0.iter().enumerate();
                    interpreter
                        .iterations(branch, items.map(|(index, item)| (Value::Int(index as i64), item.clone())))?
                }
                Value::Map(map) => {
                    // The body may change the map; like Go, iterate over the keys from the start.
                    let entries = map.entries.borrow().clone();
                    interpreter.context.budget.items(entries.len())?;
                    interpreter.iterations(branch, entries.into_iter().map(|(key, item)| (Value::Text(key), item)))?
                }
                other => return Err(format!("cannot range over {}", a(other)).into()),
            };
            match &branch.else_body {
                Some(other) if !ran => interpreter.list(other, dot),
                _ => Ok(Flow::Next),
            }
        })?;
        self.variables.truncate(mark);
        Ok(flow)
    }

    /// Executes the body once per item; returns whether there was any.
    fn iterations(&mut self, branch: &BranchNode, items: impl Iterator<Item = (Value, Value)>) -> Result<bool, Stop> {
        let mut ran = false;
        for (index, item) in items {
            ran = true;
            self.context.budget.step(1)?;
            let mark = self.variables.len();
            let values = match branch.pipe.decl.len() {
                0 => vec![],
                1 => vec![item.clone()],
                _ => vec![index, item.clone()],
            };
            for (name, value) in branch.pipe.decl.iter().zip(values) {
                self.bind(name, value, branch.pipe.is_assign)?;
            }
            let flow = self.list(&branch.body, &item)?;
            self.variables.truncate(mark);
            if matches!(flow, Flow::Break) {
                break;
            }
        }
        Ok(ran)
    }

    fn template(&mut self, call: &TemplateNode, dot: &Value) -> Result<Flow, Stop> {
        let dot = match &call.pipe {
            Some(pipe) => self.pipe(pipe, dot)?,
            None => Value::Nil,
        };
        let parsed = self.parsed;
        let Some(body) = parsed.defines.get(call.name.as_str()) else {
            return Err(format!("template {:?} is not defined", call.name).into());
        };
        let outside = std::mem::replace(&mut self.variables, vec![("$".to_owned(), dot.clone())]);
        self.deeper(|interpreter| interpreter.list(body, &dot))?;
        self.variables = outside;
        Ok(Flow::Next)
    }

    fn bind(&mut self, name: &str, value: Value, is_assignment: bool) -> Result<(), Stop> {
        if !is_assignment {
            self.variables.push((name.to_owned(), value));
            return Ok(());
        }
        match self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => Err(format!("variable {name} is not defined").into()),
        }
    }

    fn pipe(&mut self, pipe: &PipeNode, dot: &Value) -> Result<Value, Stop> {
        self.line = pipe.pos.line;
        let value = self.commands(pipe, dot)?;
        for name in &pipe.decl {
            self.bind(name, value.clone(), pipe.is_assign)?;
        }
        Ok(value)
    }

    fn commands(&mut self, pipe: &PipeNode, dot: &Value) -> Result<Value, Stop> {
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(command, dot, last)?);
        }
        Ok(last.unwrap_or(Value::Nil))
    }

    fn command(&mut self, command: &CommandNode, dot: &Value, piped: Option<Value>) -> Result<Value, Stop> {
        let Some((first, arguments)) = command.args.split_first() else {
            return Err("empty command".into());
        };
        match first {
            Expr::Identifier(position, name) => self.call(position.line, name, arguments, dot, piped),
            Expr::Nil(_) => Err("nil is not a command".into()),
            _ => self.plain(first, arguments, dot, piped.as_ref()),
        }
    }

    fn plain(&mut self, first: &Expr, rest: &[Expr], dot: &Value, piped: Option<&Value>) -> Result<Value, Stop> {
        if !rest.is_empty() || piped.is_some() {
            return Err("arguments are given to something that is not a function".into());
        }
        self.expression(first, dot)
    }

    fn expression(&mut self, expression: &Expr, dot: &Value) -> Result<Value, Stop> {
        self.line = expression.pos().line;
        match expression {
            Expr::Dot(_) => Ok(dot.clone()),
            Expr::Field(_, fields) => walk(dot.clone(), fields),
            Expr::Variable(_, name, fields) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                let value = found.map(|(_, value)| value.clone()).ok_or(format!("variable {name} is not defined"))?;
                walk(value, fields)
            }
            Expr::String(_, text) => Ok(Value::Text(Rc::from(text.as_ref()))),
            Expr::Number(_, Number::Int(number)) => Ok(Value::Int(*number)),
            Expr::Number(_, Number::Float(number)) => Ok(Value::Float(*number)),
            Expr::Number(_, Number::Uint(number)) => Err(format!("{number} overflows int").into()),
            Expr::Bool(_, truth) => Ok(Value::Bool(*truth)),
            Expr::Nil(_) => Ok(Value::Nil),
            Expr::Pipe(_, pipe) => self.deeper(|interpreter| interpreter.pipe(pipe, dot)),
            Expr::Identifier(position, name) => self.call(position.line, name, &[], dot, None),
            Expr::Chain(_, inner, fields) => {
                let value = self.expression(inner, dot)?;
                walk(value, fields)
            }
        }
    }

    fn call(
        &mut self,
        line: usize,
        name: &str,
        arguments: &[Expr],
        dot: &Value,
        piped: Option<Value>,
    ) -> Result<Value, Stop> {
        self.context.budget.step(1)?;
        let given = arguments.len() + usize::from(piped.is_some());
        let function = functions::find(name).ok_or_else(|| format!("unknown function {name}"))?;
        if given < function.least || function.most.is_some_and(|most| given > most) {
            self.line = line;
            return Err(format!("{name} takes {} arguments, got {given}", function.takes()).into());
        }
        let ends_at = match name {
            "and" => Some(false),
            "or" => Some(true),
            _ => None,
        };
        let mut values = Vec::with_capacity(given);
        for argument in arguments {
            let value = self.expression(argument, dot)?;
            // `and` and `or` evaluate no more arguments than necessary.
            if ends_at == Some(value.is_true()) {
                return Ok(value);
            }
            values.push(value);
        }
        values.extend(piped);
        self.line = line;
        let value = (function.call)(self.context, &values).map_err(|stop| match stop {
            Stop::Failed(message) => Stop::Failed(format!("{name}: {message}")),
            other => other,
        })?;
        match &value {
            Value::Text(text) => self.context.budget.text(text.len())?,
            Value::Bytes(bytes) => self.context.budget.text(bytes.len())?,
            Value::List(list) => self.context.budget.items(list.0.len())?,
            _ => {}
        }
        Ok(value)
    }
}

/// Follows a chain of fields.
fn walk<T: AsRef<str>>(mut value: Value, fields: &[T]) -> Result<Value, Stop> {
    for field in fields {
        let field = field.as_ref();
        value = match &value {
            Value::Map(map) => match map.entries.borrow().get(field) {
                Some(found) => found.clone(),
                None => return Err(format!("the map has no key {field:?}").into()),
            },
            Value::Nil => return Err(format!("cannot read .{field} of nil").into()),
            other => return Err(format!("{} has no field {field:?}", a(other)).into()),
        };
    }
    Ok(value)
}

/// The type of a value, with its article.
pub fn a(value: &Value) -> String {
    match value {
        Value::Int(_) => "an int".to_owned(),
        Value::Nil | Value::Bytes(_) => value.type_name().to_owned(),
        other => format!("a {}", other.type_name()),
    }
}
