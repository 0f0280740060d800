//! Inline code of python, perl, ruby, node, php, lua and awk: a small evaluator that follows string constants into the
//! calls that start processes and touch files. It knows no control flow: every call that stands in the code counts.

use std::collections::HashMap;

use super::calls;
use super::text::{UNKNOWN, escapes};
use super::walk::Walker;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Perl,
    Ruby,
    Node,
    Php,
    Lua,
}

impl Language {
    pub fn of(program: &str) -> Option<Self> {
        let stem = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        match stem {
            "python" | "pypy" | "ipython" | "pythonw" | "py" => Some(Language::Python),
            "perl" => Some(Language::Perl),
            "ruby" | "jruby" | "irb" => Some(Language::Ruby),
            "node" | "nodejs" | "deno" | "bun" | "tsx" | "ts-node" => Some(Language::Node),
            "php" => Some(Language::Php),
            "lua" | "luajit" | "texlua" => Some(Language::Lua),
            _ => None,
        }
    }
}

/// A value of the evaluator.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Number(i64),
    List(Vec<Value>),
    /// A keyword argument or an object's member.
    Named(String, Box<Value>),
    Unknown,
}

impl Value {
    /// Roughly its bytes; `None` where they are more than `limit`, or it is nested deeper than `depth`.
    fn size(&self, limit: usize, depth: usize) -> Option<usize> {
        let size = match self {
            Value::Text(text) => text.len(),
            Value::Number(_) | Value::Unknown => 1,
            Value::Named(name, value) => name.len() + value.size(limit, depth.checked_sub(1)?)?,
            Value::List(items) => {
                let depth = depth.checked_sub(1)?;
                let mut size = 1;
                for item in items {
                    size += item.size(limit, depth)?;
                    if size > limit {
                        return None;
                    }
                }
                size
            }
        };
        (size <= limit).then_some(size)
    }

    pub fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Named(_, value) => value.text(),
            Value::List(items) if items.len() == 1 => items.first().map(Value::text).unwrap_or_default(),
            Value::List(_) | Value::Unknown => UNKNOWN.to_string(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name, with its path: `os.path.join`, `FileUtils.rm_rf`, `$fs->unlink`, `IO::popen`.
    Name(String),
    Text(String),
    Number(i64),
    /// A command in backticks, `%x()` or `qx()`.
    Command(String),
    Punctuation(char),
    Newline,
}

/// The most tokens that are looked at.
const TOKENS: usize = 20_000;
const DEPTH: usize = 40;

pub(super) fn run(walker: &mut Walker<'_>, language: Language, code: &str) {
    let (tokens, complete) = tokens(language, code);
    if !complete {
        walker.limited("inline code");
    }
    calls::patterns(walker, code);
    let mut evaluator = Evaluator { walker, language, tokens: &tokens, at: 0, variables: HashMap::new(), depth: 0 };
    while evaluator.at < tokens.len() {
        let before = evaluator.at;
        evaluator.statement();
        if evaluator.at == before {
            evaluator.at += 1;
        }
    }
}

pub(super) struct Evaluator<'w, 'a, 't> {
    pub walker: &'w mut Walker<'a>,
    pub language: Language,
    tokens: &'t [Token],
    at: usize,
    variables: HashMap<String, Value>,
    depth: usize,
}

impl Evaluator<'_, '_, '_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn punctuation(&self, c: char) -> bool {
        self.peek() == Some(&Token::Punctuation(c))
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.punctuation(c);
        if found {
            self.at += 1;
        }
        found
    }

    fn statement(&mut self) {
        // `name = expression`
        if let (Some(Token::Name(name)), Some(Token::Punctuation('='))) = (self.peek(), self.tokens.get(self.at + 1))
            && self.tokens.get(self.at + 2) != Some(&Token::Punctuation('='))
        {
            let name = name.clone();
            self.at += 2;
            let value = self.expression();
            let value = self.bounded(value);
            self.variables.insert(name, value);
            return;
        }
        self.expression();
    }

    fn expression(&mut self) -> Value {
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
                Some(Token::Punctuation('.')) => {
                    matches!(self.language, Language::Perl | Language::Php | Language::Lua)
                }
                Some(Token::Text(_)) => {
                    matches!(value, Value::Text(_)) && matches!(self.language, Language::Python | Language::Ruby)
                }
                Some(Token::Punctuation('*' | '%' | '/')) => {
                    self.at += 1;
                    self.repeat(&mut value);
                    continue;
                }
                _ => false,
            };
            if !joins {
                break;
            }
            if !matches!(self.peek(), Some(Token::Text(_))) {
                while matches!(self.peek(), Some(Token::Punctuation('+' | '.'))) {
                    self.at += 1;
                }
            }
            let right = self.operand();
            value = match (value, right) {
                (Value::Number(a), Value::Number(b)) => Value::Number(a.wrapping_add(b)),
                (Value::List(mut a), Value::List(b)) => {
                    a.extend(b);
                    Value::List(a)
                }
                (a, b) => Value::Text(a.text() + &b.text()),
            };
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
        let result = match (operator, &*value, right) {
            (Some(Token::Punctuation('/')), left, right) => Value::Text(format!("{}/{}", left.text(), right.text())),
            (Some(Token::Punctuation('%')), Value::Text(format), right) if format.contains("%s") => {
                Value::Text(format.replacen("%s", &right.text(), 1))
            }
            (Some(Token::Punctuation('*')), Value::Text(text), Value::Number(n)) if (0..100).contains(&n) => {
                let times = usize::try_from(n).unwrap_or(0);
                if text.len().saturating_mul(times) > limit {
                    self.walker.limited("inline values");
                    Value::Unknown
                } else {
                    Value::Text(text.repeat(times))
                }
            }
            _ => Value::Unknown,
        };
        *value = self.bounded(result);
    }

    fn operand(&mut self) -> Value {
        let Some(token) = self.peek().cloned() else { return Value::Unknown };
        self.at += 1;
        let value = match token {
            Token::Text(text) => Value::Text(text),
            Token::Number(number) => Value::Number(number),
            Token::Command(text) => {
                let printed = self.walker.subshell(|walker| walker.run_text(&text));
                Value::Text(printed)
            }
            Token::Name(name) => self.name(name),
            Token::Punctuation('[') => Value::List(self.items(']')),
            Token::Punctuation('{') => Value::List(self.items('}')),
            Token::Punctuation('(') => {
                let items = self.items(')');
                if let [single] = items.as_slice() { single.clone() } else { Value::List(items) }
            }
            Token::Punctuation(_) | Token::Newline => {
                return Value::Unknown;
            }
        };
        self.postfix(value)
    }

    fn name(&mut self, name: String) -> Value {
        if self.punctuation('(') {
            self.at += 1;
            let args = self.items(')');
            return calls::call(self.walker, self.language, &name, None, &args);
        }
        // Ruby and perl call without parentheses.
        if matches!(self.language, Language::Ruby | Language::Perl | Language::Php | Language::Lua)
            && calls::is_call(&name)
            && matches!(
                self.peek(),
                Some(Token::Text(_) | Token::Name(_) | Token::Command(_) | Token::Punctuation('['))
            )
        {
            let args = self.bare_arguments();
            return calls::call(self.walker, self.language, &name, None, &args);
        }
        // `key: value` and `key=value`.
        if matches!(self.peek(), Some(Token::Punctuation(':' | '=')))
            && self.tokens.get(self.at + 1) != Some(&Token::Punctuation('='))
        {
            let nested = self.depth > 1;
            if nested {
                self.at += 1;
                while matches!(self.peek(), Some(Token::Punctuation('>' | ':'))) {
                    self.at += 1;
                }
                let value = self.expression();
                return Value::Named(name, Box::new(value));
            }
        }
        if let Some(value) = self.variables.get(&name) {
            let value = value.clone();
            return self.bounded(value);
        }
        calls::constant(self.walker, &name)
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
            if !self.take(',') {
                return args;
            }
        }
    }

    /// Items up to a closing bracket.
    fn items(&mut self, close: char) -> Vec<Value> {
        let mut items = Vec::new();
        while let Some(token) = self.peek() {
            match token {
                Token::Punctuation(c) if *c == close => {
                    self.at += 1;
                    break;
                }
                Token::Punctuation(',' | ';') | Token::Newline => self.at += 1,
                Token::Punctuation(')' | ']' | '}') => break,
                _ => {
                    let before = self.at;
                    let value = self.expression();
                    items.push(value);
                    if self.at == before {
                        self.at += 1;
                    }
                }
            }
            if items.len() > 1000 {
                break;
            }
        }
        items
    }

    /// Methods and subscripts after a value.
    fn postfix(&mut self, mut value: Value) -> Value {
        loop {
            match self.peek() {
                Some(Token::Name(name)) if name.starts_with('.') || name.starts_with("->") => {
                    let method = name.trim_start_matches(['.', '-', '>']).to_owned();
                    self.at += 1;
                    let args = if self.take('(') { self.items(')') } else { Vec::new() };
                    value = calls::call(self.walker, self.language, &method, Some(&value), &args);
                }
                Some(Token::Punctuation('[')) => {
                    self.at += 1;
                    let reversed = self.tokens.get(self.at..self.at + 4)
                        == Some(&[
                            Token::Punctuation(':'),
                            Token::Punctuation(':'),
                            Token::Punctuation('-'),
                            Token::Number(1),
                        ]);
                    let items = self.items(']');
                    value = match (&value, items.as_slice()) {
                        (Value::Text(text), _) if reversed => Value::Text(text.chars().rev().collect()),
                        (Value::List(list), [Value::Number(n)]) => {
                            usize::try_from(*n).ok().and_then(|n| list.get(n)).cloned().unwrap_or(Value::Unknown)
                        }
                        _ => Value::Unknown,
                    };
                }
                Some(Token::Punctuation('(')) => {
                    self.at += 1;
                    self.items(')');
                    value = Value::Unknown;
                }
                _ => return value,
            }
        }
    }
}

fn tokens(language: Language, code: &str) -> (Vec<Token>, bool) {
    let mut lexer = Lexer { rest: code, language, tokens: Vec::new() };
    while !lexer.rest.is_empty() {
        if lexer.tokens.len() >= TOKENS {
            return (lexer.tokens, false);
        }
        lexer.token();
    }
    (lexer.tokens, true)
}

struct Lexer<'c> {
    rest: &'c str,
    language: Language,
    tokens: Vec<Token>,
}

impl<'c> Lexer<'c> {
    fn skip(&mut self, len: usize) -> &'c str {
        let (head, tail) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = tail;
        head
    }

    fn token(&mut self) {
        let Some(c) = self.rest.chars().next() else { return };
        let hash_comments = matches!(self.language, Language::Python | Language::Perl | Language::Ruby | Language::Php);
        match c {
            '\n' => {
                self.skip(1);
                self.tokens.push(Token::Newline);
            }
            _ if c.is_whitespace() => {
                self.skip(c.len_utf8());
            }
            '#' if hash_comments => self.line_comment(),
            '/' if matches!(self.language, Language::Node | Language::Php) && self.rest.starts_with("//") => {
                self.line_comment()
            }
            '/' if self.rest.starts_with("/*") => {
                let len = self.rest.find("*/").map_or(self.rest.len(), |at| at + 2);
                self.skip(len);
            }
            '-' if self.language == Language::Lua && self.rest.starts_with("--") => self.line_comment(),
            '"' | '\'' => self.string(c),
            '`' if self.language == Language::Node => self.string(c),
            '`' => {
                let text = self.delimited('`', '`');
                self.tokens.push(Token::Command(text));
            }
            '0'..='9' => self.number(),
            _ if c.is_alphabetic() || c == '_' || c == '$' || c == '@' => self.name(),
            '.' | '-' if self.member() => {}
            _ => {
                self.skip(c.len_utf8());
                self.tokens.push(Token::Punctuation(c));
            }
        }
    }

    fn line_comment(&mut self) {
        let len = self.rest.find('\n').unwrap_or(self.rest.len());
        self.skip(len);
    }

    fn number(&mut self) {
        let len = self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let text = self.skip(len).replace('_', "");
        let value = match text.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        };
        self.tokens.push(Token::Number(value.unwrap_or(0)));
    }

    fn string(&mut self, quote: char) {
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let raw =
            matches!(self.tokens.last(), Some(Token::Name(name)) if matches!(name.as_str(), "r" | "rb" | "br" | "R"));
        if matches!(self.tokens.last(), Some(Token::Name(name)) if matches!(name.as_str(), "r" | "b" | "f" | "u" | "rb" | "br" | "R" | "B" | "F"))
        {
            self.tokens.pop();
        }
        let text = if self.language == Language::Python && self.rest.starts_with(&triple) {
            self.skip(3);
            let len = self.rest.find(&triple).unwrap_or(self.rest.len());
            let text = self.skip(len).to_owned();
            self.skip(3);
            text
        } else {
            self.delimited(quote, quote)
        };
        let single_raw = quote == '\'' && matches!(self.language, Language::Perl | Language::Ruby | Language::Php);
        let text = if raw || single_raw { text } else { escapes(&text, true) };
        let text = if text.contains("#{") || text.contains("${") { interpolated(&text) } else { text };
        self.tokens.push(Token::Text(text));
    }

    /// The text between delimiters, escapes kept.
    fn delimited(&mut self, open: char, close: char) -> String {
        self.skip(open.len_utf8());
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        let mut depth = 0_usize;
        while let Some((i, c)) = chars.next() {
            if c == '\\' {
                text.push(c);
                text.extend(chars.next().map(|(_, c)| c));
            } else if c == close && depth == 0 {
                self.skip(i + c.len_utf8());
                return text;
            } else {
                if open != close && c == open {
                    depth += 1;
                } else if c == close {
                    depth -= 1;
                }
                text.push(c);
            }
        }
        self.rest = "";
        text
    }

    fn name(&mut self) {
        let len = self.name_len();
        let mut name = self.skip(len).to_owned();
        // Words of declarations say nothing here.
        if matches!(name.as_str(), "my" | "our" | "local" | "const" | "let" | "var" | "await" | "new" | "return") {
            return;
        }
        // Perl's and Ruby's quoting operators.
        if matches!(name.as_str(), "q" | "qq" | "qx" | "qw")
            || (name == "x" && self.tokens.last() == Some(&Token::Punctuation('%')))
        {
            let open = self.rest.trim_start().chars().next().unwrap_or(' ');
            let close = match open {
                '(' => ')',
                '[' => ']',
                '{' => '}',
                '<' => '>',
                other => other,
            };
            if !open.is_alphanumeric() && !matches!(open, ',' | ';' | '=' | ')' | ' ') {
                self.rest = self.rest.trim_start();
                let text = self.delimited(open, close);
                if name == "x" {
                    self.tokens.pop();
                }
                self.tokens.push(if name == "qx" || name == "x" { Token::Command(text) } else { Token::Text(text) });
                return;
            }
        }
        // A path of names is one name: `os.path.join`, `FileUtils::rm_rf`.
        loop {
            let divider = ["::", "->", "."].iter().find(|divider| self.rest.starts_with(**divider));
            let Some(divider) = divider else { break };
            let after = self.rest.get(divider.len()..).unwrap_or_default();
            if !after.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                break;
            }
            self.skip(divider.len());
            let len = self.name_len();
            name.push('.');
            name.push_str(self.skip(len));
        }
        self.tokens.push(Token::Name(name));
    }

    fn name_len(&self) -> usize {
        let head = self.rest.chars().take_while(|c| matches!(c, '$' | '@')).count();
        let tail = self.rest.get(head..).unwrap_or_default();
        head + tail.chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum::<usize>()
    }

    /// A method of the value before: `.read`, `->unlink`.
    fn member(&mut self) -> bool {
        let Some(divider) = ["->", "."].iter().find(|divider| self.rest.starts_with(**divider)) else { return false };
        let after = self.rest.get(divider.len()..).unwrap_or_default();
        let follows_value = matches!(self.tokens.last(), Some(Token::Punctuation(')' | ']' | '}') | Token::Text(_)));
        if !follows_value || !after.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return false;
        }
        self.skip(divider.len());
        let len = self.name_len();
        let name = self.skip(len);
        self.tokens.push(Token::Name(format!(".{name}")));
        true
    }
}

/// Interpolated parts of a string cannot be known.
fn interpolated(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("#{").or_else(|| rest.find("${")) {
        out.push_str(rest.get(..at).unwrap_or_default());
        out.push(UNKNOWN);
        let tail = rest.get(at..).unwrap_or_default();
        rest = tail.find('}').and_then(|end| tail.get(end + 1..)).unwrap_or_default();
    }
    out + rest
}

/// awk has its own shapes: `system(...)`, `cmd | getline`, `print | cmd`, `print > file`.
pub(super) fn awk(walker: &mut Walker<'_>, code: &str, variables: &[(String, String)]) {
    let (tokens, complete) = tokens(Language::Node, code);
    if !complete {
        walker.limited("inline code");
    }
    let value = |token: Option<&Token>| match token {
        Some(Token::Text(text)) => Some(text.clone()),
        Some(Token::Name(name)) => variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()),
        _ => None,
    };
    for (i, token) in tokens.iter().enumerate() {
        let text = match token {
            Token::Name(name) if name == "system" => value(tokens.get(i + 2)),
            Token::Punctuation('|') if matches!(tokens.get(i + 1), Some(Token::Name(name)) if name == "getline") => {
                value(tokens.get(i.wrapping_sub(1)))
            }
            Token::Punctuation('|') => value(tokens.get(i + 1)),
            Token::Punctuation('>') => {
                let path = match tokens.get(i + 1) {
                    Some(Token::Text(path)) => Some(path.clone()),
                    _ => None,
                };
                if let Some(path) = path {
                    let acts = super::programs::write_to(walker, &path, "overwrite");
                    walker.judge("awk", &[], &acts);
                }
                None
            }
            _ => None,
        };
        if let Some(text) = text {
            walker.subshell(|walker| walker.run_text(&text));
        }
    }
}
