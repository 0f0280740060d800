//! Constant arithmetic: enough of it to know the offsets and numbers that scripts compute.

/// The value of an expression of integers, variables, `+ - * / % ( )`; `None` where it is anything else.
pub(super) fn evaluate(text: &str, variable: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut parser = Arithmetic { rest: text.trim(), variable, depth: 0 };
    let value = parser.sum()?;
    parser.rest.trim().is_empty().then_some(value)
}

struct Arithmetic<'a> {
    rest: &'a str,
    variable: &'a dyn Fn(&str) -> Option<i64>,
    depth: u8,
}

impl Arithmetic<'_> {
    fn take(&mut self, operator: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(operator) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value = value.checked_add(self.product()?)?;
            } else if self.take('-') {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.atom()?;
        loop {
            if self.take('*') {
                value = value.checked_mul(self.atom()?)?;
            } else if self.take('/') {
                value = value.checked_div(self.atom()?)?;
            } else if self.take('%') {
                value = value.checked_rem(self.atom()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn atom(&mut self) -> Option<i64> {
        self.depth = self.depth.checked_add(1).filter(|depth| *depth < 64)?;
        let value = if self.take('(') {
            let value = self.sum()?;
            self.take(')').then_some(value)?
        } else if self.take('-') {
            self.atom()?.checked_neg()?
        } else {
            self.number()?
        };
        self.depth -= 1;
        Some(value)
    }

    fn number(&mut self) -> Option<i64> {
        let len = self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'#').count();
        let (word, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        if let Some((base, digits)) = word.split_once('#') {
            let base: u32 = base.parse().ok()?;
            return (2..=36).contains(&base).then(|| i64::from_str_radix(digits, base).ok())?;
        }
        if let Some(digits) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            return i64::from_str_radix(digits, 16).ok();
        }
        if word.len() > 1 && word.starts_with('0') {
            return i64::from_str_radix(word, 8).ok();
        }
        word.parse().ok().or_else(|| (self.variable)(word))
    }
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn constants() {
        let x = |name: &str| (name == "x").then_some(5);
        assert_eq!(evaluate("1 + 2 * (x - 3)", &x), Some(5));
        assert_eq!(evaluate("16#ff + 010 + 0x10", &x), Some(279));
        assert_eq!(evaluate("y + 1", &x), None);
        assert_eq!(evaluate("1 / 0", &x), None);
        assert_eq!(evaluate(&"(".repeat(5000), &x), None);
    }
}
