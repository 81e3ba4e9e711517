//! Checks that a template uses only functions, variables and templates that exist, as Go does when it parses.

use super::balance::Mistake;
use super::functions;
use super::parsed::Parsed;
use gotmpl::parse::{BranchNode, CommandNode, Expr, ListNode, Node, PipeNode};

/// The function name and the arguments of a call with only constant texts.
pub type ConstantCall = (String, Vec<String>);

struct NameCheck<'a> {
    parsed: &'a Parsed,
    variables: Vec<String>,
    mistakes: Vec<Mistake>,
    constant_calls: Vec<(usize, ConstantCall)>,
}

/// Uses of names that do not exist, with their lines.
pub fn check(parsed: &Parsed) -> Vec<Mistake> {
    checked(parsed).mistakes
}

/// The calls with only constant texts as arguments, with their lines.
pub fn constant_calls(parsed: &Parsed) -> Vec<(usize, ConstantCall)> {
    checked(parsed).constant_calls
}

fn checked(parsed: &Parsed) -> NameCheck<'_> {
    let mut names = NameCheck { parsed, variables: Vec::new(), mistakes: Vec::new(), constant_calls: Vec::new() };
    for body in std::iter::once(&parsed.body).chain(parsed.defines.values()) {
        names.variables = vec!["$".to_owned()];
        names.list(body);
    }
    names.mistakes.sort();
    names
}

impl NameCheck<'_> {
    fn list(&mut self, list: &ListNode) {
        for node in &list.nodes {
            match node {
                Node::Action(action) => self.pipe(&action.pipe),
                Node::If(branch) | Node::With(branch) | Node::Range(branch) => self.branch(branch),
                Node::Template(call) => {
                    if !self.parsed.defines.contains_key(call.name.as_str()) {
                        self.mistakes.push((call.pos.line, format!("template {:?} is not defined", call.name)));
                    }
                    if let Some(pipe) = &call.pipe {
                        self.pipe(pipe);
                    }
                }
                Node::List(list) => self.list(list),
                Node::Text(_) | Node::Define(_) | Node::Break(_) | Node::Continue(_) => {}
            }
        }
    }

    fn branch(&mut self, branch: &BranchNode) {
        let mark = self.variables.len();
        self.pipe(&branch.pipe);
        self.list(&branch.body);
        self.variables.truncate(mark);
        if let Some(other) = &branch.else_body {
            self.pipe_variables(&branch.pipe);
            self.list(other);
            self.variables.truncate(mark);
        }
    }

    fn pipe(&mut self, pipe: &PipeNode) {
        for (index, command) in pipe.commands.iter().enumerate() {
            self.command(command, index > 0);
        }
        self.pipe_variables(pipe);
    }

    fn pipe_variables(&mut self, pipe: &PipeNode) {
        for name in &pipe.decl {
            if pipe.is_assign {
                self.variable(pipe.pos.line, name);
            } else {
                self.variables.push(name.to_string());
            }
        }
    }

    fn variable(&mut self, line: usize, name: &str) {
        if !self.variables.iter().any(|known| known == name) {
            self.mistakes.push((line, format!("variable {name} is not defined")));
        }
    }

    fn command(&mut self, command: &CommandNode, is_piped: bool) {
        for argument in &command.args {
            self.expression(argument);
        }
        if let [Expr::Identifier(position, name), arguments @ ..] = command.args.as_slice()
            && !is_piped
        {
            let texts = arguments.iter().map(|argument| match argument {
                Expr::String(_, text) => Some(text.to_string()),
                _ => None,
            });
            if let Some(texts) = texts.collect() {
                self.constant_calls.push((position.line, (name.to_string(), texts)));
            }
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::Identifier(position, name) => {
                if functions::find(name).is_none() {
                    self.mistakes.push((position.line, format!("unknown function {name}")));
                }
            }
            Expr::Variable(position, name, _) => self.variable(position.line, name),
            Expr::Pipe(_, pipe) => {
                let mark = self.variables.len();
                self.pipe(pipe);
                self.variables.truncate(mark);
            }
            Expr::Chain(_, inner, _) => self.expression(inner),
            Expr::Dot(_) | Expr::Field(..) | Expr::String(..) | Expr::Number(..) | Expr::Bool(..) | Expr::Nil(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::constant_calls;
    use crate::template::Parsed;

    #[test]
    fn a_call_is_constant_if_all_its_arguments_are_texts_in_the_template() {
        let template = "{{ readAsset \"a\" }}\n{{ readAsset .x }}{{ \"b\" | readAsset }}{{ readAsset \"c\" | upper }}";
        let calls = constant_calls(&Parsed::read(template).unwrap());
        let call = |line: usize, text: &str| (line, ("readAsset".to_owned(), vec![text.to_owned()]));
        assert_eq!(calls, [call(1, "a"), call(2, "c")]);
    }
}
