//! Follows the tokens of inline code: assignments, imports, functions, loops, and the calls with what their arguments are
//! known to be.

use std::collections::HashMap;

use super::calls;
use super::inline::{Language, Value};
use super::inline_lex::{Piece, Token};
use super::text::UNKNOWN;
use super::walk::Walker;

/// The most values that are worked out.
const WORK: usize = 60_000;
const DEPTH: usize = 40;
/// How far a comprehension's loop may stand behind its value, in tokens.
const COMPREHENSION: usize = 100;
/// The longest function that is followed, in tokens.
const BODY: usize = 4_000;
/// How many functions of the code's own may call each other.
const CALLS: usize = 6;
/// How many turns of a loop are followed.
const CHOICES: usize = 128;

/// A function that the code defines.
#[derive(Clone)]
struct Function<'t> {
    parameters: Vec<String>,
    tokens: &'t [Token],
    start: usize,
    end: usize,
}

pub(super) struct Evaluator<'w, 'a, 't> {
    pub walker: &'w mut Walker<'a>,
    pub language: Language,
    tokens: &'t [Token],
    at: usize,
    variables: HashMap<String, Value>,
    functions: HashMap<String, Function<'t>>,
    /// How often each name is called.
    called: HashMap<&'t str, usize>,
    calling: Vec<String>,
    depth: usize,
    work: usize,
}

impl<'w, 'a, 't> Evaluator<'w, 'a, 't> {
    pub fn new(walker: &'w mut Walker<'a>, language: Language, tokens: &'t [Token]) -> Self {
        let mut called = HashMap::new();
        for pair in tokens.windows(2) {
            if let [Token::Name(name), Token::Punctuation('(')] = pair {
                *called.entry(name.as_str()).or_insert(0) += 1;
            }
        }
        Evaluator {
            walker,
            language,
            tokens,
            at: 0,
            variables: HashMap::new(),
            functions: HashMap::new(),
            called,
            calling: Vec::new(),
            depth: 0,
            work: 0,
        }
    }

    pub fn set(&mut self, name: &str, value: Value) {
        self.variables.insert(name.to_owned(), value);
    }

    /// Everything up to a token.
    pub fn statements(&mut self, end: usize) {
        while self.at < end {
            let before = self.at;
            self.statement();
            if self.at <= before {
                self.at = before + 1;
            }
        }
    }

    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn ahead(&self, by: usize) -> Option<&'t Token> {
        self.tokens.get(self.at + by)
    }

    fn punctuation(&self, c: char) -> bool {
        self.peek() == Some(&Token::Punctuation(c))
    }

    fn is_punctuation(&self, by: usize, c: char) -> bool {
        self.ahead(by) == Some(&Token::Punctuation(c))
    }

    fn word(&self, by: usize) -> &'t str {
        match self.ahead(by) {
            Some(Token::Name(name)) => name,
            _ => "",
        }
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.punctuation(c);
        if found {
            self.at += 1;
        }
        found
    }

    // Statements.

    fn statement(&mut self) {
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
    fn loops(&mut self) -> bool {
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
            let list = Value::List(self.items(')'));
            self.bind(&["$_".to_owned()], &list);
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
    fn unpacks(&mut self) -> bool {
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
    fn assigns(&mut self) -> bool {
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

    // Expressions.

    pub fn expression(&mut self) -> Value {
        self.work += 1;
        if self.work > WORK {
            self.walker.limited("inline code");
            self.at = self.tokens.len();
            return Value::Unknown;
        }
        if self.depth >= DEPTH {
            self.at += 1;
            self.walker.limited("depth of inline code");
            return Value::Unknown;
        }
        self.depth += 1;
        let mut value = self.operand();
        loop {
            let joins = match self.peek() {
                Some(Token::Punctuation('+')) => true,
                Some(Token::Punctuation('<')) => self.language == Language::Elixir && self.is_punctuation(1, '>'),
                Some(Token::Punctuation('*')) if self.language == Language::Julia => true,
                Some(Token::Punctuation(c)) if self.language.joins(*c) => true,
                Some(Token::Text(_) | Token::Template(_)) => {
                    matches!(value, Value::Text(_)) && matches!(self.language, Language::Python | Language::Ruby)
                }
                Some(Token::Punctuation('*' | '%' | '/')) => {
                    self.at += 1;
                    self.repeat(&mut value);
                    continue;
                }
                Some(Token::Name(word)) if word == "x" && self.language == Language::Perl => {
                    self.at += 1;
                    self.repeat(&mut value);
                    continue;
                }
                _ => false,
            };
            if !joins {
                break;
            }
            while matches!(self.peek(), Some(Token::Punctuation('+' | '.' | '^' | '<' | '>' | '*'))) {
                self.at += 1;
            }
            let right = self.operand();
            value = joined(value, right);
            value = self.bounded(value);
        }
        self.depth -= 1;
        value
    }

    /// `"x" * 3`, `"%s" % name`, `Path.home() / "x"`.
    fn repeat(&mut self, value: &mut Value) {
        let operator = self.tokens.get(self.at.wrapping_sub(1)).cloned();
        let right = self.operand();
        let limit = self.walker.limits.text;
        let times = matches!(&operator, Some(Token::Punctuation('*') | Token::Name(_)));
        let result = match (operator, &*value, right) {
            (Some(Token::Punctuation('/')), Value::Text(left), right) => {
                Value::Text(format!("{}/{}", left.trim_end_matches('/'), right.text()))
            }
            (Some(Token::Punctuation('%')), Value::Text(format), right) => {
                let items = match right {
                    Value::List(items) => items,
                    other => vec![other],
                };
                formatted(format, &items)
            }
            (_, Value::Text(text), Value::Number(n)) if times && (0..100).contains(&n) => {
                let times = usize::try_from(n).unwrap_or(0);
                if text.len().saturating_mul(times) > limit {
                    self.walker.limited("inline values");
                    Value::Unknown
                } else {
                    Value::Text(text.repeat(times))
                }
            }
            (Some(Token::Punctuation('*')), Value::Number(a), Value::Number(b)) => Value::Number(a.wrapping_mul(b)),
            _ => Value::Unknown,
        };
        *value = self.bounded(result);
    }

    pub fn operand(&mut self) -> Value {
        let Some(token) = self.peek() else { return Value::Unknown };
        self.at += 1;
        let value = match token {
            Token::Text(text) => Value::Text(text.clone()),
            Token::Template(pieces) => self.template(pieces),
            Token::Number(number) => Value::Number(*number),
            Token::Command(pieces) => self.command(pieces),
            Token::Name(name) => self.name(name),
            Token::Punctuation('[') => Value::List(self.items(']')),
            Token::Punctuation('{') => Value::List(self.items('}')),
            Token::Punctuation('(') => {
                let items = self.items(')');
                if let [single] = items.as_slice() { single.clone() } else { Value::List(items) }
            }
            Token::Punctuation('-') if matches!(self.peek(), Some(Token::Number(_))) => match self.operand() {
                Value::Number(n) => Value::Number(n.wrapping_neg()),
                other => other,
            },
            // `*list`, `\&function`, `&function`, `not x`.
            Token::Punctuation('*' | '&' | '\\' | '!' | '~' | '-') if self.depth < DEPTH => {
                self.depth += 1;
                let value = self.operand();
                self.depth -= 1;
                value
            }
            Token::Punctuation(_) | Token::Newline(_) => return Value::Unknown,
        };
        self.postfix(value)
    }

    /// The loop of a comprehension binds its variable before.
    fn comprehension(&mut self) {
        if self.language != Language::Python || self.depth >= DEPTH {
            return;
        }
        let mut depth = 0_usize;
        let mut found = None;
        for (i, token) in self.tokens.iter().enumerate().skip(self.at).take(COMPREHENSION) {
            match token {
                Token::Punctuation('[' | '(' | '{') => depth += 1,
                Token::Punctuation(']' | ')' | '}') if depth == 0 => break,
                Token::Punctuation(']' | ')' | '}') => depth -= 1,
                Token::Punctuation(',') if depth == 0 => break,
                Token::Name(name) if name == "for" && depth == 0 => {
                    found = Some(i);
                    break;
                }
                _ => {}
            }
        }
        if let Some(at) = found {
            let back = std::mem::replace(&mut self.at, at);
            self.depth += 1;
            self.loops();
            self.depth -= 1;
            self.at = back;
        }
    }

    fn template(&mut self, pieces: &'t [Piece]) -> Value {
        let mut value = Value::Text(String::new());
        for piece in pieces {
            let part = match piece {
                Piece::Text(text) => Value::Text(text.clone()),
                Piece::Code(tokens) => self.code(tokens),
            };
            value = joined(value, part);
            value = self.bounded(value);
        }
        value
    }

    /// The value of code that stands in a text.
    fn code(&mut self, tokens: &'t [Token]) -> Value {
        if self.depth >= DEPTH {
            return Value::Unknown;
        }
        let outer = std::mem::replace(&mut self.tokens, tokens);
        let at = std::mem::replace(&mut self.at, 0);
        self.depth += 1;
        let mut value = self.expression();
        while self.at < tokens.len() {
            let before = self.at;
            value = self.expression();
            self.at = self.at.max(before + 1);
        }
        self.depth -= 1;
        self.tokens = outer;
        self.at = at;
        value
    }

    fn command(&mut self, pieces: &'t [Piece]) -> Value {
        let text = self.template(pieces);
        if self.language == Language::Julia {
            return Value::Text(text.text());
        }
        calls::shell(self.walker, &text)
    }

    fn name(&mut self, name: &str) -> Value {
        // `$`rm`` of zx and bun; `f"..."` of tags.
        if self.language == Language::Node
            && matches!(name, "$" | "$.sync" | "Bun.$" | "execa" | "sh")
            && let Some(Token::Text(_) | Token::Template(_)) = self.peek()
        {
            let text = self.operand();
            return calls::shell(self.walker, &text);
        }
        if self.punctuation('(') {
            self.at += 1;
            return self.called(name);
        }
        if self.language == Language::Perl
            && let Some(value) = self.perl_argument(name)
        {
            return value;
        }
        let value = self.known(name);
        let bare = self.language.calls_bare() && self.argument_follows() && !matches!(value, Some(Value::Text(_)));
        if bare && let Some(path) = self.callable(name, value.as_ref()) {
            let args = self.bare_arguments();
            return self.call(&path, None, args);
        }
        // `key: value`, `key=value` and `key => value`.
        if matches!(self.peek(), Some(Token::Punctuation(':' | '=')))
            && !self.is_punctuation(1, '=')
            && !(self.language == Language::Node && self.is_punctuation(1, '>'))
            && self.depth > 1
        {
            self.at += 1;
            while matches!(self.peek(), Some(Token::Punctuation('>' | ':'))) {
                self.at += 1;
            }
            let value = self.expression();
            return Value::Named(name.to_owned(), Box::new(value));
        }
        // `$h{key}`.
        if self.language == Language::Perl && name.starts_with('$') && self.punctuation('{') {
            self.at += 1;
            let key = match self.ahead(0) {
                Some(Token::Name(key)) if self.is_punctuation(1, '}') => {
                    self.at += 2;
                    key.clone()
                }
                _ => self.items('}').first().map(Value::text).unwrap_or_default(),
            };
            return calls::member(self.walker, &Value::Path(name.trim_start_matches('$').to_owned()), &key);
        }
        if let Some(value) = value {
            let kept = self.bounded(value);
            if kept == Value::Unknown && self.variables.contains_key(name) {
                // Too large to be copied each time.
                self.variables.insert(name.to_owned(), Value::Unknown);
            }
            return kept;
        }
        match calls::constant(self.walker, name) {
            Value::Unknown => Value::Path(name.to_owned()),
            value => value,
        }
    }

    /// `shift` and `$_[0]`.
    fn perl_argument(&mut self, name: &str) -> Option<Value> {
        if name == "shift" {
            let Some(Value::List(items)) = self.variables.get_mut("@_") else { return Some(Value::Unknown) };
            return Some(if items.is_empty() { Value::Unknown } else { items.remove(0) });
        }
        let array = name.strip_prefix('$').filter(|_| self.punctuation('['))?;
        self.variables.get(&format!("@{array}")).cloned()
    }

    /// What a name, or the start of a path, was assigned.
    fn known(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.variables.get(name) {
            return Some(value.clone());
        }
        let (head, tail) = name.split_once('.')?;
        match self.variables.get(head)? {
            Value::Path(path) => Some(Value::Path(format!("{path}.{tail}"))),
            _ => None,
        }
    }

    fn argument_follows(&self) -> bool {
        match self.peek() {
            Some(Token::Text(_) | Token::Template(_) | Token::Name(_) | Token::Command(_)) => !matches!(
                self.word(0),
                "if" | "unless" | "do" | "end" | "and" | "or" | "in" | "of" | "as" | "x" | "eq" | "ne" | "then"
            ),
            Some(Token::Punctuation('[')) => self.language != Language::Php,
            Some(Token::Punctuation('*' | '\\')) => matches!(self.language, Language::Ruby),
            _ => false,
        }
    }

    /// The path of a function that may be called without parentheses.
    fn callable(&self, name: &str, value: Option<&Value>) -> Option<String> {
        if self.functions.contains_key(name) {
            return Some(name.to_owned());
        }
        let path = match value {
            Some(Value::Path(path)) => path.as_str(),
            Some(_) => return None,
            None => name,
        };
        calls::is_call(path).then(|| path.to_owned())
    }

    /// A call, after its opening parenthesis.
    fn called(&mut self, name: &str) -> Value {
        let args = self.items(')');
        if let Some(value) = self.known(name) {
            return match value {
                Value::Path(path) => self.call(&path, None, args),
                // `$f = 'system'; $f(...)`.
                Value::Text(path) if self.language == Language::Php => self.call(&path, None, args),
                _ => Value::Unknown,
            };
        }
        // A method of a value that is known.
        if let Some((head, method)) = name.rsplit_once('.')
            && let Some(receiver) = self.known(head)
        {
            if matches!(method, "append" | "push" | "push_back" | "add" | "extend") {
                self.append(head, &args);
            }
            return match receiver {
                Value::Path(path) => self.call(&format!("{path}.{method}"), None, args),
                receiver => self.call(method, Some(&receiver), args),
            };
        }
        self.call(name, None, args)
    }

    fn append(&mut self, name: &str, args: &[Value]) {
        if let Some(Value::List(items)) = self.variables.get(name) {
            let mut items = items.clone();
            for arg in args {
                match arg {
                    Value::List(more) => items.extend(more.iter().cloned()),
                    other => items.push(other.clone()),
                }
            }
            let value = self.bounded(Value::List(items));
            self.variables.insert(name.to_owned(), value);
        }
    }

    fn call(&mut self, name: &str, receiver: Option<&Value>, args: Vec<Value>) -> Value {
        // Each turn of a loop is a call.
        if let Some(at) = args.iter().position(|arg| matches!(arg, Value::Choice(_)))
            && self.depth < DEPTH
            && let Some(Value::Choice(choices)) = args.get(at)
        {
            let mut values = Vec::new();
            for choice in choices.iter().take(CHOICES) {
                self.work += 1;
                let mut args = args.clone();
                if let Some(arg) = args.get_mut(at) {
                    *arg = choice.clone();
                }
                self.depth += 1;
                values.push(self.call(name, receiver, args));
                self.depth -= 1;
                if self.work > WORK {
                    break;
                }
            }
            return Value::Choice(values);
        }
        if let Some(Value::Choice(choices)) = receiver {
            self.work += choices.len();
            let choices = choices.iter().take(if self.work > WORK { 1 } else { CHOICES });
            let values = choices.map(|choice| self.call(name, Some(choice), args.clone())).collect();
            return Value::Choice(values);
        }
        if let Some(function) = self.functions.get(name).cloned() {
            return self.own_function(name, &function, args);
        }
        let value = calls::call(self.walker, self.language, name, receiver, &args);
        // Functions that are given to functions are called with what is given beside them.
        for (i, arg) in args.iter().enumerate() {
            let named = match arg {
                Value::Named(_, value) => value,
                other => other,
            };
            if let Value::Path(path) = named
                && (self.functions.contains_key(path) || calls::is_call(path))
                && self.depth < DEPTH
            {
                let given: Vec<Value> = args.iter().skip(i + 1).flat_map(spread).collect();
                if !given.is_empty() {
                    self.depth += 1;
                    self.call(path, None, given);
                    self.depth -= 1;
                }
            }
        }
        value
    }

    /// A function of the code's own, with its parameters bound.
    fn own_function(&mut self, name: &str, function: &Function<'t>, args: Vec<Value>) -> Value {
        if self.calling.len() >= CALLS || self.calling.iter().any(|calling| calling == name) || self.depth >= DEPTH {
            return Value::Unknown;
        }
        for (i, parameter) in function.parameters.iter().enumerate() {
            let named = args.iter().find_map(|arg| match arg {
                Value::Named(key, value) if key == parameter => Some((**value).clone()),
                _ => None,
            });
            if let Some(value) = named.or_else(|| args.get(i).cloned()) {
                self.variables.insert(parameter.clone(), value);
            }
        }
        self.variables.insert("$_[0]".to_owned(), args.first().cloned().unwrap_or(Value::Unknown));
        self.variables.insert("@_".to_owned(), Value::List(args));
        self.calling.push(name.to_owned());
        let at = std::mem::replace(&mut self.at, function.start);
        let tokens = std::mem::replace(&mut self.tokens, function.tokens);
        self.depth += 1;
        self.statements(function.end);
        self.depth -= 1;
        self.tokens = tokens;
        self.at = at;
        self.calling.pop();
        Value::Unknown
    }

    /// The value where it is small enough; all values together spend the command's budget.
    fn bounded(&mut self, value: Value) -> Value {
        let limit = self.walker.text_limit();
        match value.size(limit, DEPTH) {
            Some(size) => {
                self.walker.expanded += size;
                value
            }
            None => {
                self.walker.limited("inline values");
                Value::Unknown
            }
        }
    }

    fn bare_arguments(&mut self) -> Vec<Value> {
        let mut args = Vec::new();
        loop {
            args.push(self.expression());
            let curried = matches!(self.language, Language::Haskell | Language::OCaml) && self.argument_follows();
            if !self.take(',') && !curried {
                return args;
            }
        }
    }

    /// Items up to a closing bracket.
    fn items(&mut self, close: char) -> Vec<Value> {
        let mut items: Vec<Value> = Vec::new();
        self.comprehension();
        while let Some(token) = self.peek() {
            match token {
                Token::Punctuation(c) if *c == close => {
                    self.at += 1;
                    break;
                }
                Token::Punctuation(',' | ';') | Token::Newline(_) => self.at += 1,
                Token::Punctuation(')' | ']' | '}') => break,
                _ => {
                    let before = self.at;
                    // Blocks hold statements.
                    let value = if close == '}' && (self.unpacks() || self.assigns()) {
                        Value::Unknown
                    } else if close == '}' && matches!(self.word(0), "for" | "foreach") && self.loops() {
                        Value::Unknown
                    } else {
                        self.expression()
                    };
                    items.push(self.keyed(value));
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
            if items.len() > 1000 {
                self.walker.limited("inline values");
                break;
            }
        }
        items
    }

    /// `"key": value` and `"key" => value`.
    fn keyed(&mut self, key: Value) -> Value {
        let Value::Text(name) = &key else { return key };
        let arrow = self.punctuation('=') && self.is_punctuation(1, '>');
        if !arrow && !self.punctuation(':') {
            return key;
        }
        self.at += if arrow { 2 } else { 1 };
        let value = self.expression();
        Value::Named(name.clone(), Box::new(value))
    }

    /// Methods and subscripts after a value.
    fn postfix(&mut self, mut value: Value) -> Value {
        loop {
            self.work += 1;
            match self.peek() {
                Some(Token::Name(name)) if name.starts_with('.') => {
                    let method = name.trim_start_matches('.');
                    self.at += 1;
                    let called = self.take('(');
                    if called {
                        self.callback(method, &value);
                    }
                    let bare =
                        !called && self.language.calls_bare() && self.argument_follows() && calls::is_call(method);
                    let args = if called {
                        self.items(')')
                    } else if bare {
                        self.bare_arguments()
                    } else {
                        Vec::new()
                    };
                    self.block(&value);
                    value = match &value {
                        Value::Path(path) if called || bare => self.call(&format!("{path}.{method}"), None, args),
                        Value::Path(path) => Value::Path(format!("{path}.{method}")),
                        receiver => self.call(method, Some(&receiver.clone()), args),
                    };
                    value = self.bounded(value);
                }
                // `"cmd".!` of Scala, `f.()` of Elixir.
                Some(Token::Punctuation('.')) if self.is_punctuation(1, '!') => {
                    self.at += 2;
                    value = calls::shell(self.walker, &value);
                }
                Some(Token::Punctuation('[')) => {
                    self.at += 1;
                    value = self.subscript(&value);
                }
                Some(Token::Punctuation('(')) if !matches!(value, Value::Number(_)) => {
                    self.at += 1;
                    let args = self.items(')');
                    value = match &value {
                        Value::Path(path) => self.call(&path.clone(), None, args),
                        Value::Text(path) if self.language == Language::Php => self.call(&path.clone(), None, args),
                        _ => Value::Unknown,
                    };
                }
                _ => return value,
            }
        }
    }

    /// `{ |name| ... }` and `do |name|` after a method: the block's variable takes the receiver's items.
    fn block(&mut self, receiver: &Value) {
        let ruby = matches!(self.language, Language::Ruby | Language::Elixir);
        let opened = self.punctuation('{') || self.word(0) == "do";
        if ruby && opened && self.is_punctuation(1, '|') {
            let names: Vec<String> =
                (2..8).map(|by| self.word(by)).take_while(|name| !name.is_empty()).map(str::to_owned).collect();
            self.bind(&names, receiver);
        }
    }

    /// `.forEach(x => ...)`: the parameter takes the receiver's items.
    fn callback(&mut self, method: &str, receiver: &Value) {
        if !matches!(method, "forEach" | "map" | "each" | "filter" | "flatMap" | "foreach" | "some" | "every") {
            return;
        }
        let from = (0..3).find(|by| {
            let word = self.word(*by);
            !word.is_empty() && !matches!(word, "async" | "function" | "fn" | "fun")
        });
        if let Some(by) = from {
            let name = self.word(by).to_owned();
            let arrow = (by + 1..by + 8).any(|by| self.is_punctuation(by, '>') || self.is_punctuation(by, '{'));
            if arrow {
                self.bind(&[name], receiver);
            }
        }
    }

    fn subscript(&mut self, value: &Value) -> Value {
        let reversed = self.tokens.get(self.at..self.at + 4)
            == Some(&[Token::Punctuation(':'), Token::Punctuation(':'), Token::Punctuation('-'), Token::Number(1)]);
        let items = self.items(']');
        match (value, items.as_slice()) {
            (Value::Text(text), _) if reversed => Value::Text(text.chars().rev().collect()),
            (Value::List(list), [Value::Number(n)]) => {
                usize::try_from(*n).ok().and_then(|n| list.get(n)).cloned().unwrap_or(Value::Unknown)
            }
            (Value::List(members), [Value::Text(key)]) => members
                .iter()
                .find_map(|member| match member {
                    Value::Named(name, value) if name == key => Some((**value).clone()),
                    _ => None,
                })
                .unwrap_or(Value::Unknown),
            (value, [key]) if !matches!(key, Value::Number(_)) => calls::member(self.walker, value, &key.text()),
            _ => Value::Unknown,
        }
    }
}

/// The arguments that a higher-order function spreads.
fn spread(value: &Value) -> Vec<Value> {
    match value {
        Value::Named(_, value) => spread(value),
        Value::List(items) => vec![Value::Choice(items.iter().take(CHOICES).cloned().collect())],
        other => vec![other.clone()],
    }
}

/// Two values put together.
fn joined(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => Value::Number(a.wrapping_add(b)),
        (Value::List(mut a), Value::List(b)) => {
            a.extend(b);
            Value::List(a)
        }
        (Value::Choice(choices), right) if !matches!(right, Value::Choice(_)) => {
            Value::Choice(choices.into_iter().map(|left| Value::Text(left.text() + &right.text())).collect())
        }
        (left, Value::Choice(choices)) => Value::Choice(
            choices.into_iter().take(CHOICES).map(|right| Value::Text(left.text() + &right.text())).collect(),
        ),
        (a, b) => Value::Text(a.text() + &b.text()),
    }
}

/// `"%s -rf %s" % (a, b)`.
fn formatted(format: &str, items: &[Value]) -> Value {
    let mut items = items.iter();
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.find(|c| c.is_alphabetic() || *c == '%') {
            Some('%') => out.push('%'),
            Some(_) => out.push_str(&items.next().map_or_else(|| UNKNOWN.to_string(), Value::text)),
            None => break,
        }
    }
    Value::Text(out)
}
