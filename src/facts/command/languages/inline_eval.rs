//! Follows the tokens of inline code: assignments, imports, functions, loops, and the calls with what their arguments are
//! known to be.

use std::collections::HashMap;

use super::calls;
use super::inline::{Language, Value};
use super::inline_lex::{Piece, Token};
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::UNKNOWN;

/// The most values that are worked out.
const WORK: usize = 60_000;
const DEPTH: usize = 40;
/// How far a comprehension's loop may stand behind its value, in tokens.
const COMPREHENSION: usize = 100;
/// The longest function that is followed, in tokens.
pub(crate) const BODY: usize = 4_000;
/// How many functions of the code's own may call each other.
const CALLS: usize = 6;
/// How many turns of a loop are followed.
pub(crate) const CHOICES: usize = 128;

/// A function that the code defines.
#[derive(Clone)]
pub(crate) struct Function<'t> {
    pub parameters: Vec<String>,
    pub tokens: &'t [Token],
    pub start: usize,
    pub end: usize,
}

pub(crate) struct Evaluator<'w, 'a, 't> {
    pub walker: &'w mut Walker<'a>,
    pub language: Language,
    pub tokens: &'t [Token],
    pub at: usize,
    pub variables: HashMap<String, Value>,
    pub functions: HashMap<String, Function<'t>>,
    /// How often each name is called.
    pub called: HashMap<&'t str, usize>,
    pub calling: Vec<String>,
    pub depth: usize,
    pub work: usize,
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

    pub fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    pub fn ahead(&self, by: usize) -> Option<&'t Token> {
        self.tokens.get(self.at + by)
    }

    pub fn punctuation(&self, c: char) -> bool {
        self.peek() == Some(&Token::Punctuation(c))
    }

    pub fn is_punctuation(&self, by: usize, c: char) -> bool {
        self.ahead(by) == Some(&Token::Punctuation(c))
    }

    pub fn word(&self, by: usize) -> &'t str {
        match self.ahead(by) {
            Some(Token::Name(name)) => name,
            _ => "",
        }
    }

    pub fn take(&mut self, c: char) -> bool {
        let found = self.punctuation(c);
        if found {
            self.at += 1;
        }
        found
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
            Some(Token::Number(_)) => true,
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
            && !takes_all(name)
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
        // A function that is given to a function is called with what is given beside it.
        let given = args.iter().enumerate().find_map(|(i, arg)| match arg {
            Value::Named(_, value) => Some((i, &**value)),
            other => Some((i, other)),
        }
        .filter(|(_, value)| matches!(value, Value::Path(path) if self.functions.contains_key(path) || calls::is_call(path))));
        if let Some((i, Value::Path(path))) = given
            && self.depth < DEPTH
            && self.work < WORK
        {
            let beside: Vec<Value> = args.iter().skip(i + 1).flat_map(spread).collect();
            if !beside.is_empty() {
                self.work += args.len();
                self.depth += 1;
                self.call(path, None, beside);
                self.depth -= 1;
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
    pub fn bounded(&mut self, value: Value) -> Value {
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
    pub fn items(&mut self, close: char) -> Vec<Value> {
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
                    let block = close == '}';
                    let looped = |word: &str| matches!(word, "for" | "foreach");
                    let stated = block && (self.unpacks() || self.assigns() || looped(self.word(0)) && self.loops());
                    let value = if stated { Value::Unknown } else { self.expression() };
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
                Some(Token::Punctuation('[')) if !matches!(self.language, Language::Haskell | Language::OCaml) => {
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

/// Functions that take what a loop gives all at once.
fn takes_all(name: &str) -> bool {
    matches!(
        name.rsplit('.').next().unwrap_or_default(),
        "join" | "map" | "list" | "tuple" | "reversed" | "sorted" | "bytes"
    )
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
