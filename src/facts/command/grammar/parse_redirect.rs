//! Redirects and heredocs.

use std::cell::OnceCell;
use std::rc::Rc;

use super::parse::{Parser, Result};
use super::parse_word::Quoting;
use super::syntax::{Part, Redirect, RedirectOperator, Word};

/// A heredoc whose body starts at the next line.
pub(crate) struct Pending {
    pub delimiter: String,
    pub quoted: bool,
    pub strip_tabs: bool,
    pub body: Rc<OnceCell<Word>>,
}

impl Parser<'_> {
    pub(crate) fn heredoc_body(&mut self, pending: &Pending) -> Result<()> {
        let start = self.pos;
        let mut body = String::new();
        while let Some(rest) = self.text.get(self.pos..).filter(|rest| !rest.is_empty()) {
            let (line, len) = match rest.split_once('\n') {
                Some((line, _)) => (line, line.len() + 1),
                None => (rest, rest.len()),
            };
            self.work(len)?;
            let line_end = self.pos + line.len();
            self.pos += len;
            let line = if pending.strip_tabs { line.trim_start_matches('\t') } else { line };
            if self.closing > 0
                && let Some(tail) = line.strip_prefix(pending.delimiter.as_str())
                && tail.contains(')')
            {
                // What follows the delimiter is read again.
                self.pos = line_end - tail.len();
                break;
            }
            if line == pending.delimiter {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        let span = self.span(start);
        let word = if pending.quoted {
            Word { parts: vec![Part::Quoted(body)], span }
        } else {
            let mut inner = self.inner(&body, start);
            inner.fixed = Some(span);
            let word = inner.nested(|p| p.word_until(Quoting::Heredoc, |_| false));
            self.fuel = inner.fuel;
            word?
        };
        let _ = pending.body.set(word);
        Ok(())
    }

    pub(crate) fn redirect(&mut self) -> Result<Option<Redirect>> {
        let start = self.pos;
        let fd = self.redirect_fd();
        let Some(operator) = self.redirect_operator(fd.is_some()) else {
            self.pos = start;
            return Ok(None);
        };
        let (operator, heredoc) = match operator {
            ("<<", _) => (RedirectOperator::HereDocument, Some(false)),
            ("<<-", _) => (RedirectOperator::HereDocument, Some(true)),
            (_, operator) => (operator, None),
        };
        self.blanks();
        let word_start = self.pos;
        if matches!(operator, RedirectOperator::DuplicateInput | RedirectOperator::DuplicateOutput) && self.eat("-") {
            let target = Rc::new(OnceCell::from(Word {
                parts: vec![Part::Literal("-".to_owned())],
                span: self.span(word_start),
            }));
            return Ok(Some(Redirect { fd: fd.flatten(), operator, target, span: self.span(start) }));
        }
        let Some(word) = self.word()? else { return self.error("a redirection needs a target") };
        let target = Rc::new(OnceCell::new());
        match heredoc {
            Some(strip_tabs) => {
                let (delimiter, quoted) = self.delimiter(&word, word_start);
                self.pending.push(Pending { delimiter, quoted, strip_tabs, body: Rc::clone(&target) });
            }
            None => {
                let _ = target.set(word);
            }
        }
        Ok(Some(Redirect { fd: fd.flatten(), operator, target, span: self.span(start) }))
    }

    /// `3` or `{name}` directly before `<` or `>`.
    fn redirect_fd(&mut self) -> Option<Option<u32>> {
        self.peek();
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let len = if digits > 0 {
            digits
        } else if rest.first() == Some(&b'{') {
            1 + rest.iter().skip(1).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count() + 1
        } else {
            return None;
        };
        let closed = digits > 0 || (len > 2 && rest.get(len - 1) == Some(&b'}'));
        if !closed || !matches!(rest.get(len), Some(b'<' | b'>')) {
            return None;
        }
        let fd = self.text.get(self.pos..self.pos + len).and_then(|text| text.parse().ok());
        self.pos += len;
        Some(fd)
    }

    fn redirect_operator(&mut self, has_fd: bool) -> Option<(&'static str, RedirectOperator)> {
        use RedirectOperator as R;
        if !matches!(self.peek(), Some(b'<' | b'>' | b'&')) {
            return None;
        }
        if !has_fd && (self.ahead("<(") || self.ahead(">(")) {
            return None;
        }
        const OPERATORS: &[(&str, RedirectOperator)] = &[
            ("&>>", R::Both),
            ("&>", R::Both),
            ("<<<", R::HereString),
            ("<<-", R::HereDocument),
            ("<<", R::HereDocument),
            ("<&", R::DuplicateInput),
            ("<>", R::ReadWrite),
            ("<", R::Read),
            (">>", R::Append),
            (">&", R::DuplicateOutput),
            (">|", R::Write),
            (">", R::Write),
        ];
        OPERATORS.iter().find(|(text, _)| self.eat(text)).copied()
    }

    /// A heredoc's delimiter after quote removal, and whether anything of it was quoted.
    fn delimiter(&self, word: &Word, start: usize) -> (String, bool) {
        let raw = self.text.get(start..self.pos).unwrap_or_default();
        let quoted = raw.contains(['\'', '"', '\\']);
        let mut text = String::new();
        super::parse_word::unquoted_text(&word.parts, &mut text);
        if text.is_empty() || !quoted {
            text = raw.replace(['\'', '"', '\\'], "");
        }
        (text, quoted)
    }
}
