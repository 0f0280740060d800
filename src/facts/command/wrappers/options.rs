//! Options of programs, read as getopt(3) does.
//!
//! Lists of long options with a value may hold `!name`: an option without one, told apart from those that it starts.

/// Arguments told apart.
#[derive(Debug, Default)]
pub(crate) struct Options {
    short: Vec<(char, Option<String>)>,
    long: Vec<(String, Option<String>)>,
    pub operands: Vec<String>,
    /// The index of the first operand.
    first: Option<usize>,
}

impl Options {
    /// Reads arguments. `valued` are the short options with a value, `long_valued` the long ones whose value may be the
    /// next argument. Operands may stand between options, as GNU programs take them.
    pub fn read(args: &[String], valued: &str, long_valued: &[&str]) -> Self {
        let mut options = Options::default();
        let mut i = 0;
        while let Some(arg) = args.get(i) {
            i += 1;
            if arg == "--" {
                if options.first.is_none() && i < args.len() {
                    options.first = Some(i);
                }
                options.operands.extend(args.iter().skip(i).cloned());
                break;
            }
            if let Some(long) = arg.strip_prefix("--") {
                let (name, mut value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                let valued = valued_name(name, long_valued);
                if value.is_none() && valued.is_some() {
                    value = args.get(i).cloned();
                    i += 1;
                }
                options.long.push((valued.unwrap_or(name).to_owned(), value));
            } else if arg.len() > 1 && arg.starts_with('-') {
                i += options.cluster(arg, valued, args.get(i));
            } else {
                options.first.get_or_insert(i - 1);
                options.operands.push(arg.clone());
            }
        }
        options
    }

    /// Reads `-abc`; gives how many further arguments it took.
    fn cluster(&mut self, arg: &str, valued: &str, next: Option<&String>) -> usize {
        let mut chars = arg.chars().skip(1);
        while let Some(c) = chars.next() {
            if !valued.contains(c) {
                self.short.push((c, None));
                continue;
            }
            let attached: String = chars.collect();
            if attached.is_empty() {
                self.short.push((c, next.cloned()));
                return 1;
            }
            self.short.push((c, Some(attached)));
            return 0;
        }
        0
    }

    pub fn has(&self, short: char) -> bool {
        self.short.iter().any(|(c, _)| *c == short)
    }

    /// A long option, by its name or an abbreviation of at least `least` characters.
    pub fn has_long(&self, name: &str, least: usize) -> bool {
        self.long.iter().any(|(given, _)| given == name || (given.len() >= least && name.starts_with(given.as_str())))
    }

    pub fn values(&self, short: char) -> Vec<String> {
        self.short.iter().filter(|(c, _)| *c == short).filter_map(|(_, value)| value.clone()).collect()
    }

    pub fn long_values(&self, name: &str) -> Vec<String> {
        self.long.iter().filter(|(given, _)| given == name).filter_map(|(_, value)| value.clone()).collect()
    }

    /// All arguments from the first operand on: the command that a wrapper runs.
    pub fn operands_from_first(&self, args: &[String]) -> Vec<String> {
        self.first.and_then(|first| args.get(first..)).unwrap_or_default().to_vec()
    }
}

/// The option with a value that a long option is, in full or abbreviated (getopt_long(3)).
fn valued_name<'l>(given: &str, valued: &[&'l str]) -> Option<&'l str> {
    if let Some(name) = valued.iter().find(|name| **name == given) {
        return Some(name);
    }
    if given.is_empty() || valued.iter().any(|name| name.strip_prefix('!') == Some(given)) {
        return None;
    }
    valued.iter().find(|name| name.starts_with(given)).copied()
}

/// Splits a wrapper's own options from the command it runs: options end at the first operand.
pub(crate) fn command_after<'a>(
    args: &'a [String],
    valued: &str,
    long_valued: &[&str],
    mut operands: usize,
    assignments: bool,
) -> (Vec<(String, String)>, &'a [String]) {
    let mut found = Vec::new();
    let mut i = 0;
    let mut options = true;
    while let Some(arg) = args.get(i) {
        if options && arg == "--" {
            options = false;
        } else if options && let Some(long) = arg.strip_prefix("--") {
            if !long.contains('=') && valued_name(long, long_valued).is_some() {
                i += 1;
            }
        } else if options && arg.len() > 1 && arg.starts_with('-') {
            // The first letter with a value ends the cluster; the value is the rest of it, or else the next argument.
            let position = arg.chars().skip(1).position(|c| valued.contains(c));
            if position.is_some_and(|at| at + 2 == arg.chars().count()) {
                i += 1;
            }
        } else if assignments && let Some((name, value)) = assignment(arg) {
            found.push((name, value));
        } else if operands > 0 {
            operands -= 1;
        } else {
            return (found, args.get(i..).unwrap_or_default());
        }
        i += 1;
    }
    (found, &[])
}

fn assignment(arg: &str) -> Option<(String, String)> {
    let (name, value) = arg.split_once('=')?;
    let valid = !name.is_empty() && !name.starts_with('/');
    valid.then(|| (name.to_owned(), value.to_owned()))
}

/// The words of a text as quotes and backslashes keep them together, for programs that split a text themselves.
pub(crate) fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    #[test]
    fn wrappers_options_end_where_the_command_starts() {
        for (args, valued, operands, want) in [
            (vec!["-Hu", "root", "rm", "-rf"], "u", 0, vec!["rm", "-rf"]),
            (vec!["-uroot", "rm"], "u", 0, vec!["rm"]),
            (vec!["-k", "5", "60", "npm", "test"], "k", 1, vec!["npm", "test"]),
            (vec!["--", "-x"], "", 0, vec!["-x"]),
        ] {
            let args = texts(&args);
            let (_, rest) = command_after(&args, valued, &[], operands, false);
            assert_eq!(rest, texts(&want), "{args:?}");
        }
        let args = texts(&["-i", "-u", "FOO", "A=b", "rm"]);
        let (assignments, rest) = command_after(&args, "uCS", &[], 0, true);
        assert_eq!((assignments.len(), rest.len()), (1, 1));
    }
}
