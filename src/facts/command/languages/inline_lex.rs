//! Tokens of inline code, alike enough in all its languages.

use super::inline::Language;
use crate::facts::command::words::text::escapes;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A name, with its path: `os.path.join`, `FileUtils.rm_rf`, `$fs->unlink`, `IO::popen`. A leading dot: a member of the
    /// value before.
    Name(String),
    Text(String),
    /// A text with code in it.
    Template(Vec<Piece>),
    Number(i64),
    /// A command in backticks, `%x()` or `qx()`.
    Command(Vec<Piece>),
    Punctuation(char),
    /// The end of a line, with the indentation of the next.
    Newline(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Code(Vec<Token>),
}

/// The most tokens that are looked at.
const TOKENS: usize = 20_000;
/// How deep code in texts in code is followed.
const NESTING: usize = 6;
/// How often a text's brackets may turn out not to be code.
const TRIES: usize = 64;

/// The tokens of a code, and whether these are all.
pub(crate) fn tokens(language: Language, code: &str) -> (Vec<Token>, bool) {
    let mut left = TOKENS;
    let tokens = nested(language, code, 0, &mut left);
    (tokens, left > 0)
}

fn nested(language: Language, code: &str, depth: usize, left: &mut usize) -> Vec<Token> {
    let mut lexer = Lexer { rest: code, language, tokens: Vec::new(), depth, left };
    while !lexer.rest.is_empty() && *lexer.left > 0 {
        let before = lexer.tokens.len();
        lexer.token();
        *lexer.left = lexer.left.saturating_sub(lexer.tokens.len().saturating_sub(before).max(1));
    }
    lexer.tokens
}

struct Lexer<'c, 'l> {
    rest: &'c str,
    language: Language,
    tokens: Vec<Token>,
    depth: usize,
    left: &'l mut usize,
}

impl<'c> Lexer<'c, '_> {
    fn skip(&mut self, len: usize) -> &'c str {
        let (head, tail) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = tail;
        head
    }

    fn token(&mut self) {
        let Some(c) = self.rest.chars().next() else { return };
        let comment = self.language.comment().iter().any(|mark| self.rest.starts_with(mark));
        match c {
            '\n' => {
                self.skip(1);
                let indent = self.rest.chars().take_while(|c| matches!(c, ' ' | '\t')).count();
                self.tokens.push(Token::Newline(indent));
            }
            _ if c.is_whitespace() => {
                let len = self.rest.find(|c: char| !c.is_whitespace() || c == '\n').unwrap_or(self.rest.len());
                self.skip(len);
            }
            _ if comment => {
                let len = self.rest.find('\n').unwrap_or(self.rest.len());
                self.skip(len);
            }
            '/' if self.rest.starts_with("/*") => {
                let len = self.rest.find("*/").map_or(self.rest.len(), |at| at + 2);
                self.skip(len);
            }
            '/' if self.pattern_follows() => {
                self.delimited('/', '/');
                self.tokens.push(Token::Text(String::new()));
            }
            '"' | '\'' => self.string(c),
            '`' if self.language.backticks_run() => {
                let text = self.delimited('`', '`');
                let pieces = self.pieces(&text);
                self.tokens.push(Token::Command(pieces));
            }
            '`' => {
                let text = self.delimited('`', '`');
                self.template(&escapes(&text, true));
            }
            '0'..='9' => self.number(),
            ':' if self.symbol() => {}
            '<' if self.language == Language::Perl && self.perl_glob() => {}
            _ if c.is_alphabetic() || c == '_' || c == '$' || c == '@' => self.name(),
            '.' | '-' | '?' | '&' | ':' if self.member() => {}
            _ => {
                self.skip(c.len_utf8());
                self.tokens.push(Token::Punctuation(c));
            }
        }
    }

    /// A regular expression in slashes, where a value may start.
    fn pattern_follows(&self) -> bool {
        let slashes = matches!(self.language, Language::Node | Language::Ruby | Language::Perl | Language::Awk);
        let starts = match self.tokens.last() {
            None | Some(Token::Newline(_)) => true,
            Some(Token::Punctuation(c)) => !matches!(c, ')' | ']' | '}'),
            Some(Token::Name(name)) => {
                matches!(name.as_str(), "return" | "if" | "and" | "or" | "not" | "split" | "unless")
            }
            _ => false,
        };
        slashes
            && starts
            && self.rest.get(1..).and_then(|rest| rest.split('\n').next()).is_some_and(|line| line.contains('/'))
    }

    fn number(&mut self) {
        let len = self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let text = self.skip(len).replace('_', "");
        let value = match text.get(..2) {
            Some("0x" | "0X") => i64::from_str_radix(text.get(2..).unwrap_or_default(), 16).ok(),
            Some("0o" | "0O") => i64::from_str_radix(text.get(2..).unwrap_or_default(), 8).ok(),
            Some("0b" | "0B") => i64::from_str_radix(text.get(2..).unwrap_or_default(), 2).ok(),
            _ => text.parse().ok(),
        };
        self.tokens.push(Token::Number(value.unwrap_or(0)));
    }

    fn string(&mut self, quote: char) {
        let prefix = match self.tokens.last() {
            Some(Token::Name(name)) if name.len() <= 3 => name.clone(),
            _ => String::new(),
        };
        let prefixes = matches!(
            prefix.to_ascii_lowercase().as_str(),
            "r" | "b" | "f" | "u" | "rb" | "br" | "fr" | "rf" | "s" | "raw" | "c"
        );
        let prefixed = prefixes && matches!(self.language, Language::Python | Language::Curly | Language::Julia);
        if prefixed {
            self.tokens.pop();
        }
        let prefix = if prefixed { prefix.to_ascii_lowercase() } else { String::new() };
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let triples = matches!(self.language, Language::Python | Language::Curly | Language::Julia | Language::Elixir);
        let text = if triples && self.rest.starts_with(&triple) {
            self.skip(3);
            let len = self.rest.find(&triple).unwrap_or(self.rest.len());
            let text = self.skip(len).to_owned();
            self.skip(3);
            text
        } else {
            self.delimited(quote, quote)
        };
        let single = quote == '\'';
        if single && self.language.raw_single() {
            self.tokens.push(Token::Text(text.replace("\\'", "'").replace("\\\\", "\\")));
            return;
        }
        let text = if prefix.contains('r') { text } else { escapes(&text, true) };
        let plain = single && !matches!(self.language, Language::Python)
            || (self.language == Language::Python && !prefix.contains('f'));
        if plain { self.tokens.push(Token::Text(text)) } else { self.template(&text) }
    }

    fn template(&mut self, text: &str) {
        let mut pieces = self.pieces(text);
        let token = match pieces.as_mut_slice() {
            [] => Token::Text(String::new()),
            [Piece::Text(only)] => Token::Text(std::mem::take(only)),
            _ => Token::Template(pieces),
        };
        self.tokens.push(token);
    }

    /// Splits a text where code stands in it.
    fn pieces(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        // Brackets that nothing closes are looked for only so often.
        let mut tries = TRIES;
        while let Some(c) = rest.chars().next() {
            let starts = matches!(c, '{' | '#' | '$' | '@' | '\\') && tries > 0 && !rest.starts_with("{{");
            let found = if starts { interpolation(self.language, rest) } else { None };
            let Some((code, after)) = found else {
                tries -= usize::from(starts);
                plain.push(c);
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
                continue;
            };
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            let tokens =
                if self.depth < NESTING { nested(self.language, code, self.depth + 1, self.left) } else { Vec::new() };
            pieces.push(Piece::Code(tokens));
            rest = after;
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        pieces
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
        if len == 0 {
            let c = self.rest.chars().next().map_or(1, char::len_utf8);
            self.skip(c);
            return;
        }
        let mut name = self.skip(len).to_owned();
        // Words of declarations say nothing here.
        if matches!(
            name.as_str(),
            "my" | "our" | "local" | "const" | "let" | "var" | "val" | "await" | "new" | "return" | "try" | "throw"
        ) && self.language != Language::Vim
        {
            return;
        }
        if self.quoting(&name) {
            return;
        }
        // A path of names is one name: `os.path.join`, `FileUtils::rm_rf`.
        loop {
            let divider = ["::", "->", "?.", "&.", ".", ":"].iter().find(|divider| self.rest.starts_with(**divider));
            let Some(divider) = divider.filter(|divider| self.divides(divider)) else { break };
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

    /// Whether this joins names in this language.
    fn divides(&self, divider: &str) -> bool {
        match divider {
            // `os:cmd(...)`; elsewhere a colon parts keys from values.
            ":" => self.language == Language::Erlang,
            "?." => self.language == Language::Node || self.language == Language::Curly,
            "&." => self.language == Language::Ruby,
            _ => true,
        }
    }

    /// Perl's and Ruby's quoting operators.
    fn quoting(&mut self, name: &str) -> bool {
        let percent = self.language == Language::Ruby && self.tokens.last() == Some(&Token::Punctuation('%'));
        let perl = self.language == Language::Perl;
        let quotes = (perl && matches!(name, "q" | "qq" | "qx" | "qw" | "m" | "qr" | "s" | "tr" | "y"))
            || (percent && matches!(name, "x" | "w" | "W" | "q" | "Q" | "i"));
        let trimmed = self.rest.trim_start();
        let open = trimmed.chars().next().unwrap_or(' ');
        if !quotes || open.is_alphanumeric() || matches!(open, ',' | ';' | '=' | ')' | ' ' | '_') {
            return false;
        }
        let close = match open {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            '<' => '>',
            other => other,
        };
        self.rest = trimmed;
        let text = self.delimited(open, close);
        if percent {
            self.tokens.pop();
        }
        match name {
            "qx" | "x" => {
                let pieces = self.pieces(&text);
                self.tokens.push(Token::Command(pieces));
            }
            "qw" | "w" | "W" | "i" => self.words(&text),
            "q" if !percent => self.tokens.push(Token::Text(text)),
            "q" | "qq" | "Q" => self.template(&text),
            "s" | "tr" | "y" => self.substitution(name, open, close),
            _ => self.tokens.push(Token::Text(String::new())),
        }
        true
    }

    /// A list of words.
    fn words(&mut self, text: &str) {
        self.tokens.push(Token::Punctuation('['));
        for word in text.split_whitespace() {
            self.tokens.push(Token::Text(word.to_owned()));
            self.tokens.push(Token::Punctuation(','));
        }
        self.tokens.push(Token::Punctuation(']'));
    }

    /// The replacement of `s///` is code where a flag says so.
    fn substitution(&mut self, name: &str, open: char, close: char) {
        let replacement = if open == close {
            // The delimiter in the middle is taken already.
            self.until(close)
        } else {
            self.rest = self.rest.trim_start();
            self.delimited(open, close)
        };
        let len = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let flags = self.skip(len);
        if name == "s" && flags.contains('e') && self.depth < NESTING {
            let code = replacement.replace(&format!("\\{close}"), &close.to_string());
            let inner = nested(self.language, &code, self.depth + 1, self.left);
            self.tokens.push(Token::Punctuation(';'));
            self.tokens.extend(inner);
            self.tokens.push(Token::Punctuation(';'));
        } else {
            self.tokens.push(Token::Text(String::new()));
        }
    }

    /// The text up to a delimiter, escapes kept.
    fn until(&mut self, close: char) -> String {
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((i, c)) = chars.next() {
            if c == '\\' {
                text.push(c);
                text.extend(chars.next().map(|(_, c)| c));
            } else if c == close {
                self.skip(i + c.len_utf8());
                return text;
            } else {
                text.push(c);
            }
        }
        self.rest = "";
        text
    }

    /// `</*>` of perl.
    fn perl_glob(&mut self) -> bool {
        let Some(end) = self.rest.find('>') else { return false };
        let inner = self.rest.get(1..end).unwrap_or_default();
        let input = inner.is_empty() || inner.chars().all(|c| c.is_ascii_uppercase() || c == '$');
        let pattern = inner.contains(['*', '/']) && !inner.contains([' ', ';', '=', '(']);
        if !input && !pattern {
            return false;
        }
        let inner = inner.to_owned();
        self.skip(end + 1);
        if input {
            self.tokens.push(Token::Name("STDIN.readline".to_owned()));
            self.tokens.push(Token::Punctuation('('));
        } else {
            self.tokens.push(Token::Name("glob".to_owned()));
            self.tokens.push(Token::Punctuation('('));
            self.tokens.push(Token::Text(inner));
        }
        self.tokens.push(Token::Punctuation(')'));
        true
    }

    /// `:name` of Ruby and Elixir, as a text; a module where a call follows (`:os.cmd`).
    fn symbol(&mut self) -> bool {
        if !matches!(self.language, Language::Ruby | Language::Elixir) || self.rest.starts_with("::") {
            return false;
        }
        let after = self.rest.get(1..).unwrap_or_default();
        let len = after.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let follows_name =
            matches!(self.tokens.last(), Some(Token::Name(_) | Token::Text(_))) && !after.starts_with('"');
        if len == 0 || follows_name && self.language == Language::Elixir && after.starts_with(' ') {
            return false;
        }
        self.skip(1);
        if after.get(len..).unwrap_or_default().starts_with('.') {
            self.name();
        } else {
            let text = self.skip(len).to_owned();
            self.tokens.push(Token::Text(text));
        }
        true
    }

    fn name_len(&self) -> usize {
        let head = self.rest.chars().take_while(|c| matches!(c, '$' | '@')).count();
        let tail = self.rest.get(head..).unwrap_or_default();
        let len = tail.chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum::<usize>();
        let after = tail.get(len..).unwrap_or_default();
        // `File.rm_rf!`, `exist?`.
        let marked = matches!(self.language, Language::Ruby | Language::Elixir)
            && after.starts_with(['!', '?'])
            && !after.starts_with("!=")
            && !after.starts_with("?.");
        // `$_`, `$0`, `$$`, `$!` and their kin are names too.
        head + len + usize::from(marked && len > 0)
    }

    /// A method of the value before: `.read`, `->unlink`.
    fn member(&mut self) -> bool {
        let dividers = ["->", "?.", "&.", ".", ":"];
        let Some(divider) = dividers.iter().find(|divider| self.rest.starts_with(**divider)) else { return false };
        if *divider == ":" && self.language != Language::Lua {
            return false;
        }
        let after = self.rest.get(divider.len()..).unwrap_or_default();
        let follows_value = matches!(
            self.tokens.last(),
            Some(Token::Punctuation(')' | ']' | '}') | Token::Text(_) | Token::Template(_) | Token::Command(_))
        );
        if !follows_value || !after.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$') {
            return false;
        }
        // In languages where a dot joins texts, it is a method only after an arrow.
        if *divider == "." && self.language.joins('.') && self.language != Language::Lua {
            return false;
        }
        self.skip(divider.len());
        let len = self.name_len();
        let name = self.skip(len);
        self.tokens.push(Token::Name(format!(".{name}")));
        true
    }
}

/// The code that stands at the start of a text's rest, and what follows it.
fn interpolation(language: Language, rest: &str) -> Option<(&str, &str)> {
    use Language as L;
    let braced: &[(&str, char)] = match language {
        L::Python => &[("{", '}')],
        L::Ruby | L::Elixir => &[("#{", '}')],
        L::Node => &[("${", '}')],
        L::Perl => &[("@{[", ']'), ("${", '}')],
        L::Php => &[("{$", '}'), ("${", '}')],
        L::Julia => &[("$(", ')')],
        L::Curly => &[("${", '}'), ("\\(", ')')],
        _ => &[],
    };
    for (open, close) in braced {
        let Some(body) = rest.strip_prefix(open) else { continue };
        let end = closing(body, *close)?;
        let mut code = body.get(..end)?;
        let after = body.get(end + close.len_utf8()..).unwrap_or_default();
        match (language, *open) {
            (L::Python, _) => code = code.split(['!', ':']).next().unwrap_or_default().trim_end_matches('='),
            // The sign belongs to the name.
            (L::Php, "{$") => code = rest.get(1..=end + 1)?,
            (L::Perl, "@{[") => return Some((code, after.strip_prefix('}').unwrap_or(after))),
            _ => {}
        }
        return Some((code, after));
    }
    let named = matches!(language, L::Perl | L::Php | L::Julia | L::Curly);
    let name = rest.strip_prefix('$').filter(|_| named)?;
    let len = name.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    if len == 0 {
        return None;
    }
    let keeps = matches!(language, L::Perl | L::Php);
    let code = if keeps { rest.get(..=len)? } else { name.get(..len)? };
    // `$h{key}`, `$a[0]`.
    let tail = name.get(len..).unwrap_or_default();
    if keeps
        && let Some(close) = tail.chars().next().and_then(|c| match c {
            '{' => Some('}'),
            '[' => Some(']'),
            _ => None,
        })
        && let Some(end) = tail.get(1..).and_then(|body| closing(body, close))
    {
        return Some((rest.get(..len + end + 3)?, tail.get(end + 2..)?));
    }
    Some((code, tail))
}

/// Where the bracket that is open before a text closes.
fn closing(text: &str, close: char) -> Option<usize> {
    let open = match close {
        '}' => '{',
        ')' => '(',
        _ => '[',
    };
    let mut depth = 0_usize;
    for (i, c) in text.char_indices().take(4096) {
        if c == close && depth == 0 {
            return Some(i);
        }
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
        }
    }
    None
}
