//! Statements of inline code: imports, functions, loops, assignments.

use super::inline::{Language, Value};
use super::inline_eval::{BODY, CHOICES, Evaluator, Function};
use super::inline_lex::Token;

impl<'t> Evaluator<'_, '_, 't> {
    pub fn statement(&mut self) {
        match self.word(0) {
            "import" if self.imports() => return,
            "from" if self.word(2) == "import" => return self.imports_from(),
            "def" | "function" | "sub" | "fn" | "func" | "fun" if self.defines() => return,
            "for" | "foreach" if self.loops() => return,
            _ => {}
        }
        if self.unpacks() || self.assigns() {
            return;
        }
        self.expression();
    }

    /// `import a.b as c, d` and `import x from 'y'`.
    fn imports(&mut self) -> bool {
        self.at += 1;
        if self.language == Language::Node {
            return self.imports_node();
        }
        while let Some(Token::Name(module)) = self.peek() {
            self.at += 1;
            if self.word(0) == "as" {
                let alias = self.word(1).to_owned();
                self.variables.insert(alias, Value::Path(module.clone()));
                self.at += 2;
            }
            if !self.take(',') {
                break;
            }
        }
        true
    }

    /// `import { exec as e } from 'child_process'`, `import * as fs from 'fs'`.
    fn imports_node(&mut self) -> bool {
        let end = (0..64).find(|by| self.word(*by) == "from");
        let Some(end) = end else { return true };
        let module = match self.ahead(end + 1) {
            Some(Token::Text(module)) => module.clone(),
            _ => return true,
        };
        let braced = self.punctuation('{');
        let names: Vec<String> =
            (0..end).map(|by| self.word(by)).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let mut i = 0;
        while let Some(name) = names.get(i) {
            let alias = if names.get(i + 1).is_some_and(|word| word == "as") { names.get(i + 2) } else { None };
            let path = if braced { format!("{module}.{name}") } else { module.clone() };
            let known = if name == "as" { names.get(i + 1) } else { Some(alias.unwrap_or(name)) };
            if let Some(known) = known {
                self.variables.insert(known.clone(), Value::Path(path));
            }
            i += if alias.is_some() { 3 } else { 1 };
        }
        self.at += end + 2;
        true
    }

    /// `from a import b as c, d`.
    fn imports_from(&mut self) {
        let module = self.word(1).to_owned();
        self.at += 3;
        let open = self.take('(');
        loop {
            while open && matches!(self.peek(), Some(Token::Newline(_))) {
                self.at += 1;
            }
            let Some(Token::Name(name)) = self.peek() else { break };
            self.at += 1;
            let mut alias = name.clone();
            if self.word(0) == "as" {
                alias = self.word(1).to_owned();
                self.at += 2;
            }
            self.variables.insert(alias, Value::Path(format!("{module}.{name}")));
            if !self.take(',') {
                break;
            }
        }
    }

    /// A function: its body counts at once, and again for each call with what the call gives it.
    fn defines(&mut self) -> bool {
        let by = usize::from(self.word(1) == "*") + 1;
        let name = self.word(by).to_owned();
        if name.is_empty() {
            return false;
        }
        self.at += by + 1;
        let parameters = self.parameters();
        let indent = self.indent_before(self.at);
        let end = self.body_end(indent);
        // Its own definition looks like a call.
        self.define(&name, parameters, end, 1);
        true
    }

    /// A function whose body goes from here to `end`. Its body counts here where nothing calls it.
    fn define(&mut self, name: &str, parameters: Vec<String>, end: usize, own: usize) {
        let function = Function { parameters, tokens: self.tokens, start: self.at, end };
        self.functions.insert(name.to_owned(), function);
        if self.called.get(name).is_some_and(|times| *times > own) {
            self.at = end;
        }
    }

    /// `name = lambda x: ...`, `name = (x) => ...`, `name = function (x) {...}`, `name = ->(x) {...}`.
    fn assigns_function(&mut self, name: &str, by: usize) -> bool {
        let mut by = by;
        let word = self.word(by);
        let worded = matches!(word, "lambda" | "function" | "async" | "sub" | "fn" | "fun");
        by += usize::from(worded);
        by += usize::from(self.is_punctuation(by, '-') && self.is_punctuation(by + 1, '>')) * 2;
        let mut parameters = Vec::new();
        if self.is_punctuation(by, '(') {
            let back = self.at;
            self.at += by;
            parameters = self.parameters();
            by = self.at.saturating_sub(back);
            self.at = back;
        } else {
            while !self.word(by).is_empty() && parameters.len() < 16 {
                parameters.push(self.word(by).to_owned());
                by += 1;
                by += usize::from(self.is_punctuation(by, ','));
            }
        }
        let arrow = self.is_punctuation(by, '=') && self.is_punctuation(by + 1, '>')
            || self.is_punctuation(by, '-') && self.is_punctuation(by + 1, '>');
        if !arrow && !worded {
            return false;
        }
        self.at += by + usize::from(arrow) * 2;
        let mut depth = 0_usize;
        let body = self.tokens.iter().enumerate().skip(self.at).take(BODY);
        let end = body.into_iter().find_map(|(i, token)| match token {
            Token::Punctuation('{' | '(' | '[') => {
                depth += 1;
                None
            }
            Token::Punctuation('}' | ')' | ']') => {
                depth = depth.saturating_sub(1);
                None
            }
            Token::Punctuation(';') | Token::Newline(_) if depth == 0 => Some(i),
            _ => None,
        });
        self.define(name, parameters, end.unwrap_or(self.tokens.len()), 0);
        true
    }

    fn parameters(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        if !self.take('(') {
            return names;
        }
        let mut depth = 0_usize;
        let mut fresh = true;
        while let Some(token) = self.peek() {
            self.at += 1;
            match token {
                Token::Punctuation(')') if depth == 0 => break,
                Token::Punctuation('(' | '[' | '{') => depth += 1,
                Token::Punctuation(')' | ']' | '}') => depth = depth.saturating_sub(1),
                Token::Punctuation(',') if depth == 0 => fresh = true,
                Token::Name(name) if fresh => {
                    names.push(name.clone());
                    fresh = false;
                }
                _ => {}
            }
        }
        names
    }

    /// The indentation of the line that holds a token.
    fn indent_before(&self, at: usize) -> usize {
        let line = self.tokens.get(..at).unwrap_or_default().iter().rev().take(BODY).find_map(|token| match token {
            Token::Newline(indent) => Some(*indent),
            _ => None,
        });
        line.unwrap_or(0)
    }

    /// Where the block at hand ends.
    fn body_end(&self, indent: usize) -> usize {
        let mut depth = 0_usize;
        for (i, token) in self.tokens.iter().enumerate().skip(self.at).take(BODY) {
            match token {
                Token::Punctuation('{') => depth += 1,
                Token::Punctuation('}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && self.language != Language::Python {
                        return i + 1;
                    }
                }
                Token::Name(name) if name == "end" && depth == 0 && self.language == Language::Ruby => return i,
                Token::Newline(next)
                    if self.language == Language::Python
                        && *next <= indent
                        && !matches!(self.tokens.get(i + 1), Some(Token::Newline(_)) | None)
                        && i > self.at + 1 =>
                {
                    return i;
                }
                _ => {}
            }
        }
        self.tokens.len().min(self.at + BODY)
    }

    /// `for x in list`, `for (const x of list)`, `foreach ($list as $x)`, `for my $x (list)`.
    pub fn loops(&mut self) -> bool {
        let start = self.at;
        self.at += 1;
        self.take('(');
        let mut names = Vec::new();
        while let Some(Token::Name(name)) = self.peek() {
            if matches!(name.as_str(), "in" | "of" | "as") {
                break;
            }
            names.push(name.clone());
            self.at += 1;
            self.take(',');
        }
        let keyword = self.word(0).to_owned();
        if matches!(keyword.as_str(), "in" | "of") && !names.is_empty() {
            self.at += 1;
            let list = self.expression();
            self.bind(&names, &list);
            return true;
        }
        if self.language == Language::Perl && self.punctuation('(') && names.len() <= 1 {
            let list = self.operand();
            let names = if names.is_empty() { vec!["$_".to_owned()] } else { names };
            self.bind(&names, &list);
            return true;
        }
        if self.language == Language::Perl && names.is_empty() {
            // `for (qw(a b)) {`: the parenthesis is taken already.
            let list = match self.items(')').as_slice() {
                [list @ Value::List(_)] => list.clone(),
                items => Value::List(items.to_vec()),
            };
            self.bind(&["$_".to_owned()], &list);
            return true;
        }
        if self.language == Language::Php && names.is_empty() {
            let list = self.expression();
            let last = (1..6).map(|by| self.word(by)).rfind(|name| name.starts_with('$')).unwrap_or_default();
            self.bind(&[last.to_owned()], &list);
            return true;
        }
        if self.language == Language::Php && keyword == "as" {
            // The list stands before `as`, and was read as a name.
            let list = names.first().and_then(|name| self.variables.get(name)).cloned().unwrap_or(Value::Unknown);
            let last =
                (1..6).map(|by| self.word(by)).rfind(|name| name.starts_with('$')).unwrap_or_default().to_owned();
            self.bind(&[last], &list);
            return true;
        }
        self.at = start + 1;
        true
    }

    /// Loop variables take each item.
    pub fn bind(&mut self, names: &[String], list: &Value) {
        let turns = match list {
            Value::List(items) => {
                if items.len() > CHOICES {
                    self.walker.limited("turns of a loop");
                }
                Value::Choice(items.iter().take(CHOICES).cloned().collect())
            }
            other => other.clone(),
        };
        for (i, name) in names.iter().enumerate() {
            let value = match (&turns, names.len()) {
                (turns, 1) => turns.clone(),
                // A walk of a tree gives the directory first.
                (Value::Text(_), _) if i == 0 => turns.clone(),
                (Value::Choice(items), _) => Value::Choice(
                    items
                        .iter()
                        .map(|item| match item {
                            Value::List(parts) => parts.get(i).cloned().unwrap_or(Value::Unknown),
                            _ => Value::Unknown,
                        })
                        .collect(),
                ),
                _ => Value::Unknown,
            };
            let value = self.bounded(value);
            self.variables.insert(name.clone(), value);
        }
    }

    /// `a, b = x, y`, `const {a, b: c} = module`, `my ($a, $b) = @_`.
    pub fn unpacks(&mut self) -> bool {
        let (open, close) = match self.peek() {
            Some(Token::Punctuation('{')) => (true, '}'),
            Some(Token::Punctuation('[')) => (true, ']'),
            Some(Token::Punctuation('(')) => (true, ')'),
            Some(Token::Name(_)) if self.is_punctuation(1, ',') => (false, '='),
            _ => return false,
        };
        let mut by = usize::from(open);
        let mut names: Vec<(String, String)> = Vec::new();
        loop {
            let name = self.word(by).to_owned();
            if name.is_empty() {
                return false;
            }
            by += 1;
            let mut alias = name.clone();
            if self.is_punctuation(by, ':') && !self.word(by + 1).is_empty() {
                alias = self.word(by + 1).to_owned();
                by += 2;
            }
            names.push((name, alias));
            if names.len() > 64 {
                return false;
            }
            if self.is_punctuation(by, ',') {
                by += 1;
            } else {
                break;
            }
        }
        if open {
            if !self.is_punctuation(by, close) {
                return false;
            }
            by += 1;
        }
        if !self.is_punctuation(by, '=') || self.is_punctuation(by + 1, '=') || self.is_punctuation(by + 1, '>') {
            return false;
        }
        self.at += by + 1;
        let mut value = self.expression();
        if !open && self.punctuation(',') {
            let mut items = vec![value];
            while self.take(',') {
                items.push(self.expression());
            }
            value = Value::List(items);
        }
        for (i, (name, alias)) in names.into_iter().enumerate() {
            let part = match &value {
                Value::List(items) if close != '}' => items.get(i).cloned().unwrap_or(Value::Unknown),
                Value::Path(path) if close == '}' => Value::Path(format!("{path}.{name}")),
                Value::List(members) => members
                    .iter()
                    .find_map(|member| match member {
                        Value::Named(key, value) if *key == name => Some((**value).clone()),
                        _ => None,
                    })
                    .unwrap_or(Value::Unknown),
                _ => Value::Unknown,
            };
            self.variables.insert(alias, part);
        }
        true
    }

    /// `name = expression`, `name += expression`, `name[0] = ...`.
    pub fn assigns(&mut self) -> bool {
        let Some(Token::Name(name)) = self.peek() else { return false };
        // `local a: str = ...` and `x := ...`.
        let mut by = 1;
        if self.is_punctuation(1, ':') && self.is_punctuation(2, '=') {
            by = 2;
        } else if self.is_punctuation(1, ':') && !self.word(2).is_empty() && self.is_punctuation(3, '=') {
            by = 3;
        } else if self.is_punctuation(1, '<') && self.is_punctuation(2, '-') && self.language == Language::R {
            by = 2;
        }
        let adds = matches!(self.ahead(1), Some(Token::Punctuation('+' | '.'))) && self.is_punctuation(2, '=');
        if adds {
            by = 2;
        }
        let arrow = self.language == Language::R && by == 2;
        if !arrow && !self.is_punctuation(by, '=')
            || self.is_punctuation(by + 1, '=')
            || self.is_punctuation(by + 1, '>')
            || self.is_punctuation(by + 1, '~')
        {
            return false;
        }
        if self.assigns_function(name, by + 1) {
            return true;
        }
        self.at += by + 1;
        let mut value = self.expression();
        if adds {
            value = match (self.variables.get(name), value) {
                (Some(Value::List(items)), Value::List(more)) => {
                    Value::List(items.iter().cloned().chain(more).collect())
                }
                (Some(before), value) => Value::Text(before.text() + &value.text()),
                (None, _) => Value::Unknown,
            };
        }
        let value = self.bounded(value);
        self.variables.insert(name.clone(), value);
        true
    }
}
