//! Words: quoting, expansions and substitutions, as the grammar sees them.

use std::rc::Rc;

use super::parse::{Parser, Problem, Result};
use super::syntax::{Parameter, Part, Word};
use crate::facts::command::words::text::{UNKNOWN, ansi_c};

/// Which quotes are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// All of them.
    Plain,
    /// Inside `"..."`.
    Double,
    /// The body of an unquoted heredoc: `"` and `'` are text.
    Heredoc,
}

/// The operators of `${name OP argument}`, longest first.
const OPERATORS: &[&str] = &[
    ":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", "-", "=", "?", "+", "#", "%", "/", "^", ",", "@",
    ":",
];

/// The text of parts that need no expansion.
pub(crate) fn unquoted_text(parts: &[Part], out: &mut String) {
    for part in parts {
        match part {
            Part::Literal(text) | Part::Quoted(text) => out.push_str(text),
            Part::Double(parts) => unquoted_text(parts, out),
            _ => {}
        }
    }
}

/// Collects literal text until another kind of part comes.
#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    literal: String,
    in_double: bool,
}

impl Parts {
    fn flush(&mut self) {
        if !self.literal.is_empty() {
            let text = std::mem::take(&mut self.literal);
            self.parts.push(if self.in_double { Part::Quoted(text) } else { Part::Literal(text) });
        }
    }

    fn push(&mut self, part: Part) {
        self.flush();
        self.parts.push(part);
    }
}

impl Parser<'_> {
    /// The word that starts here, if one does.
    pub(crate) fn word(&mut self) -> Result<Option<Word>> {
        self.peek();
        let start = self.pos;
        let assignable = self.take_assignable();
        let mut out = Parts::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'[' if assignable && out.parts.is_empty() && is_name(&out.literal) => self.subscript(&mut out)?,
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' => break,
                b'<' | b'>' => {
                    if !self.process_substitution(&mut out)? {
                        break;
                    }
                }
                b'(' if out.literal.ends_with('=') && assignment_head(&out) => {
                    let array = self.nested(Self::array)?;
                    out.push(Part::Array(Rc::new(array)));
                }
                // `!(` where a command starts is a negated subshell: there `!` never gets here.
                b'(' if out.literal.ends_with(['?', '*', '+', '@', '!']) => {
                    self.extended_glob(&mut out)?;
                }
                b'(' => break,
                _ => self.part(byte, Quoting::Plain, &mut out)?,
            }
        }
        out.flush();
        if self.pos == start || (out.parts.is_empty()) {
            return Ok(None);
        }
        Ok(Some(Word { parts: out.parts, span: self.span(start) }))
    }

    /// `[...]` after a name where an assignment may stand: blanks belong to it. Without an end it is text.
    fn subscript(&mut self, out: &mut Parts) -> Result<()> {
        let open = self.pos;
        self.pos += 1;
        out.literal.push('[');
        match self.nested(|p| p.arithmetic(b']')) {
            Ok(index) if self.byte(0) == Some(b']') => {
                for part in index.parts {
                    match part {
                        Part::Literal(text) => out.literal.push_str(&text),
                        part => out.push(part),
                    }
                }
                // Where a document in it ends, versions of bash disagree.
                if self.text.get(open..self.pos).is_some_and(|raw| raw.contains("<<") && raw.contains('\n')) {
                    let unknown = Parameter { operator: "?unknown", ..Parameter::default() };
                    out.push(Part::Parameter(Rc::new(unknown)));
                }
            }
            Err(limit @ (Problem::TooDeep { .. } | Problem::TooMuchWork { .. })) => return Err(limit),
            _ => self.pos = open + 1,
        }
        Ok(())
    }

    /// Parts up to an unquoted byte that `stop` names, or to the end of the text.
    pub(crate) fn word_until(&mut self, quoting: Quoting, stop: fn(u8) -> bool) -> Result<Word> {
        self.word_until_with(quoting, stop, false)
    }

    fn word_until_with(&mut self, quoting: Quoting, stop: fn(u8) -> bool, ansi: bool) -> Result<Word> {
        let start = self.pos;
        let mut out = Parts { in_double: quoting != Quoting::Plain, ..Parts::default() };
        while let Some(byte) = self.peek() {
            if stop(byte) {
                break;
            }
            if ansi && self.ahead("'$'") {
                // Quotes that are text.
                out.literal.push_str("'$'");
                self.pos += 3;
                continue;
            }
            if ansi && byte == b'$' && self.byte(1) == Some(b'\'') {
                self.pos += 1;
                self.ansi_quoted(&mut out)?;
                continue;
            }
            self.part(byte, quoting, &mut out)?;
        }
        out.flush();
        Ok(Word { parts: out.parts, span: self.span(start) })
    }

    fn part(&mut self, byte: u8, quoting: Quoting, out: &mut Parts) -> Result<()> {
        self.work(1)?;
        match byte {
            b'\'' if quoting == Quoting::Plain => self.single_quoted(out),
            b'"' if quoting != Quoting::Heredoc => {
                self.pos += 1;
                let inner = self.nested(|p| p.word_until(Quoting::Double, |b| b == b'"'))?;
                if !self.eat_raw(b'"') {
                    return self.error("`\"` is not closed");
                }
                out.push(Part::Double(inner.parts));
                Ok(())
            }
            b'\\' => self.escape(quoting, out),
            b'$' => self.dollar(quoting, out),
            b'`' => self.backticks(quoting, out),
            _ => {
                if let Some(c) = self.char() {
                    out.literal.push(c);
                    self.pos += c.len_utf8();
                }
                Ok(())
            }
        }
    }

    fn eat_raw(&mut self, byte: u8) -> bool {
        let found = self.byte(0) == Some(byte);
        if found {
            self.pos += 1;
        }
        found
    }

    fn single_quoted(&mut self, out: &mut Parts) -> Result<()> {
        let rest = self.text.get(self.pos + 1..).unwrap_or_default();
        let Some(len) = rest.find('\'') else { return self.error("`'` is not closed") };
        self.work(len)?;
        out.push(Part::Quoted(rest.get(..len).unwrap_or_default().to_owned()));
        self.pos += len + 2;
        Ok(())
    }

    fn escape(&mut self, quoting: Quoting, out: &mut Parts) -> Result<()> {
        self.pos += 1;
        let Some(c) = self.char() else {
            out.literal.push('\\');
            return Ok(());
        };
        self.pos += c.len_utf8();
        let special = match quoting {
            Quoting::Plain => true,
            Quoting::Double => matches!(c, '$' | '`' | '"' | '\\'),
            Quoting::Heredoc => matches!(c, '$' | '`' | '\\'),
        };
        if !special {
            out.literal.push('\\');
            out.literal.push(c);
        } else if quoting == Quoting::Plain {
            // Within `$( )` some versions of bash make a blank of a tab in an array.
            let blank = c == '\t' && self.arrays > 0 && self.closing > 0;
            out.push(Part::Quoted(if blank { UNKNOWN } else { c }.to_string()));
        } else {
            out.literal.push(c);
        }
        Ok(())
    }

    fn dollar(&mut self, quoting: Quoting, out: &mut Parts) -> Result<()> {
        let start = self.pos;
        self.pos += 1;
        match self.peek() {
            Some(b'\'') if quoting == Quoting::Plain => self.ansi_quoted(out),
            // `$"..."` is translated text: the same as `"..."`.
            Some(b'"') if quoting == Quoting::Plain => Ok(()),
            Some(b'(') => {
                let part = self.nested(|p| p.dollar_paren(start))?;
                out.push(part);
                Ok(())
            }
            Some(b'[') => {
                self.pos += 1;
                let word = self.nested(|p| p.arithmetic(b']'))?;
                if !self.eat("]") {
                    return self.error("`$[` is not closed");
                }
                out.push(Part::Arithmetic(Rc::new(word)));
                Ok(())
            }
            Some(b'{') => {
                self.pos += 1;
                let parameter = self.nested(|p| p.braced(quoting))?;
                out.push(Part::Parameter(Rc::new(parameter)));
                Ok(())
            }
            Some(c) if c.is_ascii_alphabetic() || c == b'_' => {
                let name = self.name();
                out.push(Part::Parameter(Rc::new(Parameter { name, bare: true, ..Parameter::default() })));
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || b"@*#?-$!".contains(&c) => {
                self.pos += 1;
                let name = char::from(c).to_string();
                out.push(Part::Parameter(Rc::new(Parameter { name, ..Parameter::default() })));
                Ok(())
            }
            _ => {
                out.literal.push('$');
                Ok(())
            }
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(byte) = self.peek() {
            if !(byte.is_ascii_alphanumeric() || byte == b'_') {
                break;
            }
            name.push(char::from(byte));
            self.pos += 1;
        }
        name
    }

    fn ansi_quoted(&mut self, out: &mut Parts) -> Result<()> {
        self.pos += 1;
        let start = self.pos;
        loop {
            match self.byte(0) {
                None => return self.error("`$'` is not closed"),
                Some(b'\'') => break,
                Some(b'\\') => self.pos += 2,
                Some(_) => self.pos += 1,
            }
        }
        let raw = self.text.get(start..self.pos).unwrap_or_default();
        out.push(Part::Quoted(ansi_c(raw)));
        self.pos += 1;
        Ok(())
    }

    /// `$(( ))` where it closes as arithmetic, otherwise `$( )`.
    fn dollar_paren(&mut self, start: usize) -> Result<Part> {
        let open = self.pos;
        if self.eat("((") {
            match self.arithmetic(b')') {
                Ok(word) if self.eat("))") => {
                    // Where a `case` in it closes its patterns, bash takes them for the end: nobody knows the value.
                    if self.text.get(open..self.pos).is_some_and(|text| text.contains("esac")) {
                        let argument = Some(word);
                        let open = Parameter { operator: "?unknown", argument, ..Parameter::default() };
                        return Ok(Part::Parameter(Rc::new(open)));
                    }
                    return Ok(Part::Arithmetic(Rc::new(word)));
                }
                Err(limit @ (Problem::TooDeep { .. } | Problem::TooMuchWork { .. })) => return Err(limit),
                _ => self.pos = open,
            }
        }
        self.eat("(");
        self.closing += 1;
        let list = self.list();
        self.closing -= 1;
        let list = list?;
        if !self.eat(")") {
            self.pos = start;
            return self.error("`$(` is not closed");
        }
        Ok(Part::Substitution(Rc::new(list)))
    }

    /// An arithmetic expression up to its unnested `close`, which is not taken.
    pub(crate) fn arithmetic(&mut self, close: u8) -> Result<Word> {
        let start = self.pos;
        let mut out = Parts::default();
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' | b'[' => open += 1,
                _ if byte == close && open == 0 => break,
                b')' | b']' => {
                    if open == 0 {
                        return self.error("unexpected bracket in arithmetic");
                    }
                    open -= 1;
                }
                _ => {}
            }
            self.part(byte, Quoting::Plain, &mut out)?;
        }
        out.flush();
        Ok(Word { parts: out.parts, span: self.span(start) })
    }

    fn backticks(&mut self, quoting: Quoting, out: &mut Parts) -> Result<()> {
        let start = self.pos;
        self.pos += 1;
        let mut text = String::new();
        loop {
            let Some(c) = self.char() else { return self.error("a backtick is not closed") };
            self.pos += c.len_utf8();
            match (c, self.char()) {
                ('`', _) => break,
                ('\\', Some(next))
                    if matches!(next, '`' | '\\' | '$') || (next == '"' && quoting == Quoting::Double) =>
                {
                    self.pos += next.len_utf8();
                    text.push(next);
                }
                _ => text.push(c),
            }
        }
        self.work(text.len())?;
        let mut inner = self.inner(&text, start);
        let list = inner.nested(|p| {
            let list = p.list()?;
            p.newlines()?;
            if p.byte(0).is_some() { p.error("unexpected token between backticks") } else { Ok(list) }
        });
        let fuel = inner.fuel_left();
        self.set_fuel(fuel);
        out.push(Part::Substitution(Rc::new(list?)));
        Ok(())
    }

    fn process_substitution(&mut self, out: &mut Parts) -> Result<bool> {
        let reads = if self.ahead("<(") {
            true
        } else if self.ahead(">(") {
            false
        } else {
            return Ok(false);
        };
        self.peek();
        self.pos += 1;
        self.peek();
        self.pos += 1;
        self.closing += 1;
        let list = self.nested(Self::list);
        self.closing -= 1;
        let list = list?;
        if !self.eat(")") {
            return self.error("`<(` is not closed");
        }
        out.push(Part::Process { list: Rc::new(list), reads });
        Ok(true)
    }

    fn array(&mut self) -> Result<Vec<Word>> {
        self.eat("(");
        self.arrays += 1;
        let words = self.items();
        self.arrays -= 1;
        words
    }

    fn items(&mut self) -> Result<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.newlines()?;
            if self.eat(")") {
                return Ok(words);
            }
            match self.word()? {
                Some(word) => words.push(word),
                None => return self.error("an array is not closed"),
            }
        }
    }

    /// `@(a|b)` and its like match some text: which, is left open.
    fn extended_glob(&mut self, out: &mut Parts) -> Result<()> {
        out.literal.pop();
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            self.work(1)?;
            match byte {
                b'(' => {
                    open += 1;
                    self.pos += 1;
                }
                b')' => {
                    open -= 1;
                    self.pos += 1;
                    if open == 0 {
                        // The empty text marks a pattern that is less than `*`.
                        out.literal.push('*');
                        out.push(Part::Quoted(String::new()));
                        return Ok(());
                    }
                }
                b'|' | b' ' | b'<' | b'>' | b'&' | b';' => self.pos += 1,
                b'\n' => break,
                _ => {
                    // Substitutions inside are command sites: keep those, drop the text.
                    let mut inner = Parts::default();
                    self.part(byte, Quoting::Plain, &mut inner)?;
                    for part in inner.parts {
                        if matches!(part, Part::Substitution(_) | Part::Process { .. }) {
                            out.push(part);
                        }
                    }
                }
            }
        }
        self.error("an extended glob is not closed")
    }

    /// The right side of `=~`: blanks and operators are text inside parentheses.
    pub(crate) fn regex_word(&mut self) -> Result<Word> {
        let start = self.pos;
        let mut out = Parts::default();
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => open += 1,
                b')' if open == 0 => break,
                b')' => open -= 1,
                b' ' | b'\t' | b'\n' if open == 0 => break,
                _ => {}
            }
            self.part(byte, Quoting::Plain, &mut out)?;
        }
        out.flush();
        Ok(Word { parts: out.parts, span: self.span(start) })
    }

    /// What follows `${`, up to and with `}`.
    fn braced(&mut self, quoting: Quoting) -> Result<Parameter> {
        let mut parameter = Parameter::default();
        match self.peek() {
            Some(b'#') if !matches!(self.byte(1), Some(b'}' | b':' | b'-' | b'=' | b'?' | b'+' | b'%' | b'/')) => {
                self.pos += 1;
                parameter.length = true;
            }
            Some(b'!') if self.byte(1) != Some(b'}') => {
                self.pos += 1;
                parameter.indirect = true;
            }
            _ => {}
        }
        parameter.name = match self.peek() {
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => self.name(),
            Some(byte) if b"@*#?-$!".contains(&byte) => {
                self.pos += 1;
                char::from(byte).to_string()
            }
            _ => String::new(),
        };
        if self.eat("[") {
            parameter.index = Some(self.word_until(Quoting::Plain, |b| b == b']')?);
            if !self.eat("]") {
                return self.error("a subscript is not closed");
            }
        }
        self.peek();
        if let Some(operator) = OPERATORS.iter().find(|operator| self.eat(operator)) {
            parameter.operator = operator;
            self.operands(&mut parameter, quoting)?;
        }
        if !parameter.name.is_empty() && self.eat("}") {
            return Ok(parameter);
        }
        // Something this grammar does not know: its substitutions still run.
        parameter.operator = "?unknown";
        parameter.argument = Some(self.word_until(inner_quoting(quoting), |b| b == b'}')?);
        if self.eat("}") { Ok(parameter) } else { self.error("`${` is not closed") }
    }

    fn operands(&mut self, parameter: &mut Parameter, quoting: Quoting) -> Result<()> {
        // `$'...'` is read there even in double quotes.
        let ansi = quoting == Quoting::Double;
        let quoting = inner_quoting(quoting);
        let (stop, divider): (fn(u8) -> bool, Option<&str>) = match parameter.operator {
            "/" | "//" | "/#" | "/%" => (|b| b == b'}' || b == b'/', Some("/")),
            ":" => (|b| b == b'}' || b == b':', Some(":")),
            _ => (|b| b == b'}', None),
        };
        // A pattern is alive in double quotes too: `"${x%.*}"`.
        let pattern = matches!(parameter.operator.as_bytes().first(), Some(b'#' | b'%' | b'/' | b'^' | b','));
        // An offset has quotes of its own.
        let argument = if pattern || parameter.operator == ":" { Quoting::Plain } else { quoting };
        let start = self.pos;
        let mut word = self.word_until_with(argument, stop, ansi && !pattern)?;
        // Single quotes are text there, and still keep a `}` from being the end.
        while ansi
            && argument != Quoting::Plain
            && self.text.get(start..self.pos).is_some_and(|raw| raw.matches('\'').count() % 2 == 1)
        {
            parameter.operator = "?unknown";
            let quoted = self.word_until(argument, |b| b == b'\'')?;
            if !self.eat_raw(b'\'') {
                return self.error("`'` is not closed");
            }
            let rest = self.word_until_with(argument, stop, true)?;
            word.parts.extend(quoted.parts.into_iter().chain(rest.parts));
        }
        parameter.argument = Some(word);
        let raw = self.text.get(start..self.pos).unwrap_or_default();
        let braces = pattern && raw.contains("\"{") && raw.contains([',', '.']);
        if ansi && (braces || !pattern && raw.contains(['{', '\'']) && is_odd(raw)) {
            parameter.operator = "?unknown";
        }
        if let Some(divider) = divider
            && self.eat(divider)
        {
            parameter.second = Some(self.word_until(argument, |b| b == b'}')?);
        }
        Ok(())
    }
}

/// A word in `"${x:-...}"` that bash reads more than once: braces that are not a parameter's are expanded before all else,
/// and what `$'...'` stands for is expanded again.
fn is_odd(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let brace = |at: usize| bytes.get(at) == Some(&b'{') && (at == 0 || bytes.get(at - 1) != Some(&b'$'));
    let again = |coded: &str| ansi_c(coded.split('\'').next().unwrap_or_default()).contains(['`', '$', '\\', '"']);
    // Quotes that are text, beside some that are not.
    let mixed = || raw.contains("$'") && raw.matches('\'').count() > 2 * raw.matches("$'").count();
    (0..bytes.len()).any(brace) || mixed() || raw.split("$'").skip(1).any(again)
}

fn inner_quoting(quoting: Quoting) -> Quoting {
    // In `"${x:-'a'}"` the single quotes are text, in `${x:-'a'}` they are quotes.
    if quoting == Quoting::Heredoc { Quoting::Double } else { quoting }
}

/// Whether what was read so far is `NAME=`, `NAME+=` or `NAME[...]=`.
fn assignment_head(out: &Parts) -> bool {
    let head = match out.parts.first() {
        None => out.literal.as_str(),
        Some(Part::Literal(text)) => text,
        Some(_) => return false,
    };
    let name = head.trim_end_matches('=').trim_end_matches('+');
    let name = name.split('[').next().unwrap_or_default();
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
