//! A recursive-descent parser of bash, total and linear: nesting and work are bounded while parsing, spans are bytes of
//! the command text, and complete lines before a syntax error are kept, because bash runs those.

use std::rc::Rc;

use super::parse_redirect::Pending;
use super::syntax::{Arm, Command, Connector, Item, Kind, List, Next, Part, Pipeline, Span, Word};
use crate::facts::command::limits::Limits;

/// What could be parsed, and what stopped the parser.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The commands of every complete line.
    pub list: List,
    /// Set where something was left out.
    pub problem: Option<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    Syntax { what: &'static str, at: usize },
    TooDeep { at: usize },
    TooMuchWork { at: usize },
}

pub(crate) type Result<T> = std::result::Result<T, Problem>;

/// Lines after a syntax error that are still looked at (bash would not run them; a reader of the verdict wants to know).
const RESUMPTIONS: usize = 8;

/// Parses a script. `fixed` is the span that all nodes get where the text is not the command text itself (an argument
/// of `eval`, decoded text).
pub(crate) fn parse(text: &str, fixed: Option<Span>, limits: &Limits) -> Parsed {
    let mut parser = Parser::new(text, fixed, limits);
    let mut list = List::new();
    let mut problem = None;
    let mut resumptions = 0;
    loop {
        match parser.complete_line(&mut list) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                let fatal = !matches!(error, Problem::Syntax { .. });
                problem.get_or_insert(error);
                resumptions += 1;
                if fatal || resumptions > RESUMPTIONS || !parser.resume() {
                    break;
                }
            }
        }
    }
    Parsed { list, problem }
}

pub(crate) struct Parser<'s> {
    pub(crate) text: &'s str,
    pub(crate) bytes: &'s [u8],
    pub(crate) pos: usize,
    depth: usize,
    max_depth: usize,
    /// Work left; parsing the same bytes twice costs twice.
    pub(crate) fuel: usize,
    pub(crate) fixed: Option<Span>,
    pub(crate) pending: Vec<Pending>,
    line_start: usize,
    /// Substitutions in parentheses that are open: there `)` may follow a heredoc's delimiter.
    pub(crate) closing: usize,
    /// How many arrays are open here.
    pub(crate) arrays: usize,
    /// An assignment may stand here: a subscript may hold blanks.
    assignable: bool,
}

/// Words that end a list where a command could start.
const CLOSERS: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl<'s> Parser<'s> {
    pub(crate) fn new(text: &'s str, fixed: Option<Span>, limits: &Limits) -> Self {
        Parser {
            text,
            bytes: text.as_bytes(),
            pos: 0,
            depth: 0,
            max_depth: limits.depth,
            fuel: text.len().saturating_mul(6).saturating_add(4096),
            fixed,
            pending: Vec::new(),
            line_start: 0,
            closing: 0,
            arrays: 0,
            assignable: false,
        }
    }

    // Bytes.

    /// The next byte, past line continuations.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while self.byte(0) == Some(b'\\') && self.byte(1) == Some(b'\n') {
            self.pos += 2;
        }
        self.byte(0)
    }

    /// A byte ahead, continuations included.
    pub(crate) fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.pos + ahead).copied()
    }

    pub(crate) fn char(&self) -> Option<char> {
        self.text.get(self.pos..).and_then(|rest| rest.chars().next())
    }

    /// Takes an operator, which continuations may split.
    pub(crate) fn eat(&mut self, operator: &str) -> bool {
        let start = self.pos;
        for byte in operator.bytes() {
            if self.peek() != Some(byte) {
                self.pos = start;
                return false;
            }
            self.pos += 1;
        }
        true
    }

    pub(crate) fn ahead(&mut self, operator: &str) -> bool {
        let start = self.pos;
        let found = self.eat(operator);
        self.pos = start;
        found
    }

    pub(crate) fn span(&self, start: usize) -> Span {
        self.fixed.clone().unwrap_or(start..self.pos.min(self.text.len()))
    }

    /// The span for nested text (backticks), whose own offsets mean nothing.
    pub(crate) fn nested_span(&self, start: usize) -> Option<Span> {
        Some(self.span(start))
    }

    pub(crate) fn error<T>(&self, what: &'static str) -> Result<T> {
        Err(Problem::Syntax { what, at: self.here() })
    }

    /// This place in the command text.
    fn here(&self) -> usize {
        self.fixed.as_ref().map_or(self.pos.min(self.text.len()), |span| span.start)
    }

    /// One level deeper; every recursion of the grammar passes here.
    pub(crate) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= self.max_depth {
            return Err(Problem::TooDeep { at: self.here() });
        }
        self.depth += 1;
        let result = stacker::maybe_grow(96 * 1024, 1024 * 1024, || parse(self));
        self.depth -= 1;
        result
    }

    pub(crate) fn work(&mut self, amount: usize) -> Result<()> {
        match self.fuel.checked_sub(amount) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => Err(Problem::TooMuchWork { at: self.here() }),
        }
    }

    /// A parser for text inside this one's (backticks), with what is left of its bounds.
    pub(crate) fn inner<'t>(&self, text: &'t str, start: usize) -> Parser<'t> {
        let mut inner = Parser::new(text, self.nested_span(start), &Limits::default());
        inner.depth = self.depth;
        inner.max_depth = self.max_depth;
        inner.fuel = self.fuel;
        inner
    }

    /// Whether an assignment may stand here; words inside the one that is read are none.
    pub(crate) fn take_assignable(&mut self) -> bool {
        std::mem::take(&mut self.assignable)
    }

    pub(crate) fn fuel_left(&self) -> usize {
        self.fuel
    }

    pub(crate) fn set_fuel(&mut self, fuel: usize) {
        self.fuel = fuel;
    }

    // Blank space and lines.

    /// Skips blanks and a comment; stops at a newline.
    pub(crate) fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.pos += 1;
        }
        if self.byte(0) == Some(b'#') {
            while !matches!(self.byte(0), None | Some(b'\n')) {
                self.pos += 1;
            }
        }
    }

    /// Skips blanks, comments and newlines. Heredoc bodies that are due are read.
    pub(crate) fn newlines(&mut self) -> Result<()> {
        loop {
            self.blanks();
            if self.byte(0) != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    fn newline(&mut self) -> Result<()> {
        self.pos += 1;
        self.line_start = self.pos;
        for pending in std::mem::take(&mut self.pending) {
            self.heredoc_body(&pending)?;
        }
        Ok(())
    }

    // Lists.

    /// One complete line of commands; false at the end of the text.
    fn complete_line(&mut self, list: &mut List) -> Result<bool> {
        self.newlines()?;
        if self.byte(0).is_none() {
            return Ok(false);
        }
        let before = list.len();
        self.line_start = self.pos;
        loop {
            match self.line_item(list) {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(error) => {
                    // A syntax error keeps bash from running anything of this line.
                    if matches!(error, Problem::Syntax { .. }) {
                        list.truncate(before);
                    }
                    return Err(error);
                }
            }
        }
    }

    fn line_item(&mut self, list: &mut List) -> Result<bool> {
        let item = self.item()?;
        list.push(item);
        self.blanks();
        match self.byte(0) {
            None => {
                self.finish_heredocs()?;
                Ok(false)
            }
            Some(b'\n') => {
                self.newline()?;
                Ok(false)
            }
            Some(_) if matches!(list.last(), Some(item) if item.background) => Ok(true),
            Some(b';') if !self.ahead(";;") => {
                self.pos += 1;
                self.blanks();
                match self.byte(0) {
                    Some(b'\n') => self.newline().map(|()| false),
                    None => self.finish_heredocs().map(|()| false),
                    Some(_) => Ok(true),
                }
            }
            Some(_) => self.error("unexpected token"),
        }
    }

    fn finish_heredocs(&mut self) -> Result<()> {
        for pending in std::mem::take(&mut self.pending) {
            self.heredoc_body(&pending)?;
        }
        Ok(())
    }

    /// Moves to the line after the one that failed.
    fn resume(&mut self) -> bool {
        self.pending.clear();
        self.depth = 0;
        let from = self.line_start;
        match self.text.get(from..).and_then(|rest| rest.find('\n')) {
            Some(newline) => {
                self.pos = from + newline + 1;
                self.line_start = self.pos;
                true
            }
            None => false,
        }
    }

    /// Commands up to something that closes the construct they are in.
    pub(crate) fn list(&mut self) -> Result<List> {
        let mut list = List::new();
        loop {
            self.newlines()?;
            match self.peek() {
                None | Some(b')') => return Ok(list),
                Some(b';') if self.ahead(";;") || self.ahead(";&") => return Ok(list),
                _ if self.closer() => return Ok(list),
                _ => {}
            }
            let item = self.item()?;
            let background = item.background;
            list.push(item);
            self.blanks();
            match self.peek() {
                Some(b';') if self.ahead(";;") || self.ahead(";&") => {}
                Some(b';') => self.pos += 1,
                Some(b'\n' | b')') | None => {}
                Some(_) if background => {}
                // After a compound command what closes the one around it needs no `;`.
                Some(_) if list.last().is_some_and(ends_compound) && self.closer() => {}
                Some(_) => return self.error("unexpected token"),
            }
        }
    }

    fn closer(&mut self) -> bool {
        let word = self.reserved();
        CLOSERS.contains(&word)
    }

    fn item(&mut self) -> Result<Item> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.blanks();
            let connector = if self.eat("&&") {
                Connector::And
            } else if self.eat("||") {
                Connector::Or
            } else {
                break;
            };
            self.newlines()?;
            rest.push((connector, self.pipeline()?));
        }
        let background = !self.ahead("&>") && self.eat("&");
        Ok(Item { first, rest, background })
    }

    fn pipeline(&mut self) -> Result<Pipeline> {
        let mut commands = Vec::new();
        let start = self.pos;
        let negated = self.pipeline_prefix();
        // `!` and `time` may stand alone.
        if self.text.get(start..self.pos).is_some_and(|prefix| !prefix.trim().is_empty())
            && matches!(self.peek(), None | Some(b'\n' | b';' | b'&' | b')'))
        {
            return Ok(Pipeline { commands, negated });
        }
        loop {
            commands.push(self.command()?);
            self.blanks();
            if self.ahead("||") || !(self.eat("|&") || self.eat("|")) {
                return Ok(Pipeline { commands, negated });
            }
            self.newlines()?;
            // `a | ! b` is accepted by newer shells.
            self.pipeline_prefix();
        }
    }

    /// `!` and `time`; whether the status is turned round.
    fn pipeline_prefix(&mut self) -> bool {
        let mut negated = false;
        loop {
            self.blanks();
            match self.reserved() {
                "!" => {
                    self.pos += 1;
                    negated = !negated;
                }
                "time" => {
                    self.pos += 4;
                    self.blanks();
                    for option in ["-p", "--"] {
                        let end = self.pos + option.len();
                        if self.text.get(self.pos..end) == Some(option)
                            && matches!(self.bytes.get(end), None | Some(b' ' | b'\t' | b'\n'))
                        {
                            self.pos = end;
                            self.blanks();
                        }
                    }
                }
                _ => return negated,
            }
        }
    }

    // Commands.

    /// The reserved word that starts here, or an empty text.
    fn reserved(&mut self) -> &'s str {
        self.peek();
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let len = rest
            .iter()
            .take_while(|b| !matches!(b, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' | b'\\'))
            .take(9)
            .count();
        let word = self.text.get(self.pos..self.pos + len).unwrap_or_default();
        match word {
            "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "for" | "select" | "case"
            | "esac" | "function" | "time" | "coproc" | "{" | "}" | "!" | "[[" => word,
            _ => "",
        }
    }

    fn expect_word(&mut self, word: &'static str) -> Result<()> {
        if self.reserved() == word {
            self.pos += word.len();
            Ok(())
        } else {
            self.error("a compound command is not closed")
        }
    }

    pub(crate) fn command(&mut self) -> Result<Command> {
        self.nested(Self::command_unbounded)
    }

    fn command_unbounded(&mut self) -> Result<Command> {
        self.blanks();
        self.work(1)?;
        let start = self.pos;
        if self.peek() == Some(b'(') {
            let kind = if self.ahead("((") { self.double_paren()? } else { self.subshell()? };
            return self.compound(kind, start);
        }
        let word = self.reserved();
        if word.is_empty() {
            return self.simple(start);
        }
        self.pos += word.len();
        let kind = match word {
            "{" => {
                let list = self.list()?;
                self.expect_word("}")?;
                Kind::Group(list)
            }
            "if" => self.if_clause()?,
            "while" | "until" => {
                let condition = self.list()?;
                Kind::While { until: word == "until", condition, body: self.do_group()? }
            }
            "for" => self.for_clause(false)?,
            "select" => self.for_clause(true)?,
            "case" => self.case_clause()?,
            "function" => self.function_keyword()?,
            "[[" => Kind::Test(self.test_words()?),
            "coproc" => Kind::Coprocess(Box::new(self.coprocess()?)),
            _ => return self.error("unexpected reserved word"),
        };
        self.compound(kind, start)
    }

    fn compound(&mut self, kind: Kind, start: usize) -> Result<Command> {
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(Command { kind, redirects, span: self.span(start) }),
            }
        }
    }

    fn subshell(&mut self) -> Result<Kind> {
        self.pos += 1;
        let list = self.list()?;
        if !self.eat(")") {
            return self.error("`(` is not closed");
        }
        Ok(Kind::Subshell(list))
    }

    /// `((` is arithmetic where it closes with `))`, and otherwise two subshells.
    fn double_paren(&mut self) -> Result<Kind> {
        let start = self.pos;
        self.eat("((");
        match self.arithmetic(b')') {
            Ok(word) if self.eat("))") => Ok(Kind::Arithmetic(word)),
            Err(limit @ (Problem::TooDeep { .. } | Problem::TooMuchWork { .. })) => Err(limit),
            _ => {
                self.pos = start;
                self.subshell()
            }
        }
    }

    fn if_clause(&mut self) -> Result<Kind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.list()?;
            self.expect_word("then")?;
            branches.push((condition, self.list()?));
            match self.reserved() {
                "elif" => self.pos += 4,
                "else" => {
                    self.pos += 4;
                    let otherwise = Some(self.list()?);
                    self.expect_word("fi")?;
                    return Ok(Kind::If { branches, otherwise });
                }
                _ => {
                    self.expect_word("fi")?;
                    return Ok(Kind::If { branches, otherwise: None });
                }
            }
        }
    }

    fn do_group(&mut self) -> Result<List> {
        self.newlines()?;
        if self.reserved() == "{" {
            self.pos += 1;
            let list = self.list()?;
            self.expect_word("}")?;
            return Ok(list);
        }
        self.expect_word("do")?;
        let list = self.list()?;
        self.expect_word("done")?;
        Ok(list)
    }

    fn for_clause(&mut self, chosen: bool) -> Result<Kind> {
        self.blanks();
        if self.eat("((") {
            let header = self.arithmetic(b')')?;
            if !self.eat("))") {
                return self.error("`((` is not closed");
            }
            self.blanks();
            self.eat(";");
            return Ok(Kind::ArithmeticFor { header, body: self.do_group()? });
        }
        let Some(name) = self.word()? else { return self.error("`for` needs a name") };
        let name = name.literal().unwrap_or_default().to_owned();
        self.newlines()?;
        let mut words = None;
        if self.keyword("in") {
            let mut list = Vec::new();
            loop {
                self.blanks();
                match self.word()? {
                    Some(word) => list.push(word),
                    None => break,
                }
            }
            words = Some(list);
        }
        self.blanks();
        self.eat(";");
        Ok(Kind::For { name, words, chosen, body: self.do_group()? })
    }

    /// A word that is reserved only in its place (`in`).
    fn keyword(&mut self, keyword: &str) -> bool {
        self.peek();
        let end = self.pos + keyword.len();
        let found = self.text.get(self.pos..end) == Some(keyword)
            && matches!(self.bytes.get(end), None | Some(b' ' | b'\t' | b'\n' | b';' | b'\\'));
        if found {
            self.pos = end;
        }
        found
    }

    fn case_clause(&mut self) -> Result<Kind> {
        self.blanks();
        let Some(subject) = self.word()? else { return self.error("`case` needs a word") };
        self.newlines()?;
        if !self.keyword("in") {
            return self.error("`case` needs `in`");
        }
        let mut arms = Vec::new();
        loop {
            self.newlines()?;
            if self.reserved() == "esac" {
                self.pos += 4;
                return Ok(Kind::Case { subject, arms });
            }
            self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                match self.word()? {
                    Some(word) => patterns.push(word),
                    None => return self.error("`case` needs a pattern"),
                }
                self.blanks();
                if !self.eat("|") {
                    break;
                }
            }
            if !self.eat(")") {
                return self.error("a pattern of `case` is not closed");
            }
            let list = self.list()?;
            self.newlines()?;
            let next = if self.eat(";;&") {
                Next::Test
            } else if self.eat(";;") {
                Next::End
            } else if self.eat(";&") {
                Next::Run
            } else if self.reserved() == "esac" {
                Next::End
            } else {
                return self.error("`case` is not closed");
            };
            arms.push(Arm { patterns, list, next });
        }
    }

    fn function_keyword(&mut self) -> Result<Kind> {
        self.blanks();
        let Some(name) = self.word()? else { return self.error("`function` needs a name") };
        self.blanks();
        let start = self.pos;
        if self.eat("(") {
            self.blanks();
            if !self.eat(")") {
                // The body is a subshell.
                self.pos = start;
            }
        }
        self.function_body(name.literal().unwrap_or_default())
    }

    fn function_body(&mut self, name: &str) -> Result<Kind> {
        self.newlines()?;
        let body = Rc::new(self.command()?);
        Ok(Kind::Function { name: name.to_owned(), body })
    }

    fn coprocess(&mut self) -> Result<Command> {
        self.blanks();
        let start = self.pos;
        // `coproc NAME { ...; }`: a name counts only before a compound command.
        if self.reserved().is_empty() && self.peek() != Some(b'(') {
            let named = self.word()?.is_some() && {
                self.blanks();
                !self.reserved().is_empty() || self.byte(0) == Some(b'(')
            };
            if !named {
                self.pos = start;
            }
        }
        self.command()
    }

    fn test_words(&mut self) -> Result<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.newlines()?;
            self.work(1)?;
            if self.keyword("]]") || self.ahead("]])") && self.eat("]]") || self.ahead("]]&") && self.eat("]]") {
                return Ok(words);
            }
            let start = self.pos;
            if self.keyword("=~") {
                words.push(Word { parts: vec![Part::Literal("=~".to_owned())], span: self.span(start) });
                self.blanks();
                words.push(self.regex_word()?);
                continue;
            }
            match self.word()? {
                Some(word) => words.push(word),
                None => {
                    const OPERATORS: &[&str] = &["&&", "||", "(", ")", "<", ">"];
                    let start = self.pos;
                    let Some(operator) = OPERATORS.iter().find(|operator| self.eat(operator)) else {
                        return self.error("`[[` is not closed");
                    };
                    words.push(Word { parts: vec![Part::Literal((*operator).to_owned())], span: self.span(start) });
                }
            }
        }
    }

    fn simple(&mut self, start: usize) -> Result<Command> {
        let mut assignments = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            self.work(1)?;
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if self.peek() == Some(b'(') && words.len() == 1 && assignments.is_empty() && redirects.is_empty() {
                self.pos += 1;
                self.blanks();
                if !self.eat(")") {
                    return self.error("unexpected `(`");
                }
                let name = words.first().and_then(Word::literal).unwrap_or_default().to_owned();
                let kind = self.function_body(&name)?;
                return Ok(Command { kind, redirects, span: self.span(start) });
            }
            self.assignable = words.is_empty() && redirects.is_empty();
            let word = self.word();
            self.assignable = false;
            let Some(word) = word? else { break };
            match if words.is_empty() { word.as_assignment() } else { None } {
                Some(assignment) => assignments.push(assignment),
                None => words.push(word),
            }
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return self.error("a command is missing");
        }
        Ok(Command { kind: Kind::Simple { assignments, words }, redirects, span: self.span(start) })
    }
}

/// Whether an and-or list ends with a compound command.
fn ends_compound(item: &Item) -> bool {
    let pipeline = item.rest.last().map_or(&item.first, |(_, pipeline)| pipeline);
    pipeline.commands.last().is_some_and(|command| !matches!(command.kind, Kind::Simple { .. }))
}
