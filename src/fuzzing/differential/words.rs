//! Ways to write a word, and places for it in a command.

use crate::fuzzing::random::Random;

/// A way to write a text: what has to run before, and the word.
pub(super) struct Spelled {
    pub before: String,
    pub word: String,
}

/// Writes a text as a word.
type Spell = fn(&str, &mut Random) -> Spelled;

/// How a text is written as a word of bash. The names are the rows of the table.
pub(super) const QUOTINGS: &[(&str, Spell)] = &[
    ("plain", |text, _| word(plain(text))),
    ("single quotes", |text, _| word(single(text))),
    ("double quotes", |text, _| word(format!("\"{}\"", double(text)))),
    ("backslashes", |text, _| word(backslashed(text))),
    ("$'hexadecimal'", |text, _| word(coded(text, |byte| format!("\\x{byte:02x}")))),
    ("$'octal'", |text, _| word(coded(text, |byte| format!("\\{byte:03o}")))),
    ("mixed", mixed),
    ("variable", |text, _| after(format!("v={}", single(text)), "$v")),
    ("quoted variable", |text, _| after(format!("v={}", single(text)), "\"$v\"")),
    ("parts of variables", parts),
    ("default", |text, _| word(format!("\"${{unset:-{}}}\"", double(text)))),
    ("assigned default", |text, _| word(format!("${{unset:={}}}", plain(text)))),
    ("alternative", |text, _| after("v=1".into(), &format!("${{v:+{}}}", plain(text)))),
    ("cut prefix", |text, _| after(format!("v=x.{}", single(text)), "\"${v#x.}\"")),
    ("cut suffix", |text, _| after(format!("v={}.x", single(text)), "\"${v%.*}\"")),
    ("replaced", |text, _| after(format!("v=@@{}", single(text)), "\"${v//@/}\"")),
    ("slice", |text, _| after(format!("v=12{}", single(text)), "\"${v:2}\"")),
    ("@P", |text, _| after(format!("v={}", single(&text.replace('\\', "\\\\"))), "\"${v@P}\"")),
    ("@E", |text, _| after(format!("v={}", single(&text.replace('\\', "\\\\"))), "\"${v@E}\"")),
    ("substitution", |text, _| word(format!("\"$(printf %s {})\"", single(text)))),
    ("split substitution", |text, _| word(format!("$(echo {})", single(text)))),
    ("backticks", |text, _| word(format!("`printf %s {}`", single(text).replace('\\', "\\\\").replace('`', "\\`")))),
    ("decoded", |text, _| {
        word(format!("\"$(printf {} | cat)\"", single(&text.bytes().map(|b| format!("\\{b:03o}")).collect::<String>())))
    }),
    ("braces", |text, random| word(format!("{}{{,.{}}}", plain(text), random.below(9)))),
    ("brace sequence", |text, _| word(format!("{}{{1..2}}", plain(text)))),
    ("array item", |text, _| after(format!("a=(z {})", single(text)), "\"${a[1]}\"")),
    ("whole array", |text, _| after(format!("a=({} 'k l')", single(text)), "\"${a[@]}\"")),
    ("joined array", |text, _| after(format!("a=({} k)", single(text)), "\"${a[*]}\"")),
    ("associative array", |text, _| after(format!("declare -A m; m[k]={}", single(text)), "\"${m[k]}\"")),
    ("indirection", |text, _| after(format!("v={} n=v", single(text)), "\"${!n}\"")),
    ("reference", |text, _| after(format!("v={}; declare -n n=v", single(text)), "\"$n\"")),
    ("positional", |text, _| after(format!("set -- z {}", single(text)), "\"$2\"")),
    ("all positional", |text, _| after(format!("set -- {}", single(text)), "\"$@\"")),
    ("printf -v", |text, _| after(format!("printf -v v %s {}", single(text)), "\"$v\"")),
    ("read", |text, _| after(format!("IFS= read -r v <<< {}", single(text)), "\"$v\"")),
    ("appended", |text, _| {
        let at = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        after(format!("v={}; v+={}", single(&text[..at]), single(&text[at..])), "\"$v\"")
    }),
    ("empty parts", |text, _| word(format!("''{}\"\"$unset", plain(text)))),
    ("arithmetic", |text, random| word(format!("{}$((1+{}))", plain(text), random.below(9)))),
    ("length", |text, _| after("v=abc".into(), &format!("{}${{#v}}", plain(text)))),
    ("glob", |text, _| word(format!("{}*", plain(text)))),
    ("glob of files", |_, random| word(random.pick(&["*.txt", "?.txt", "sub/*", "[ab].*", "s[u]b/e*"]).to_owned())),
    ("home", |text, random| word(format!("{}/{}", random.pick(&["~", "$HOME", "\"${HOME}\""]), plain(text)))),
    ("continued line", |text, _| {
        word(
            text.char_indices()
                .map(|(i, c)| if i == 1 { format!("\\\n{}", plain(&c.to_string())) } else { plain(&c.to_string()) })
                .collect(),
        )
    }),
];

fn word(word: String) -> Spelled {
    Spelled { before: String::new(), word }
}

fn after(before: String, word: &str) -> Spelled {
    Spelled { before, word: word.to_owned() }
}

/// As a word in single quotes.
pub(super) fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// As the inside of double quotes.
pub(super) fn double(text: &str) -> String {
    text.chars().flat_map(|c| "\"\\$`".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

fn is_ordinary(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:,@%+=".contains(c)
}

fn plain(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_ordinary) { text.to_owned() } else { single(text) }
}

fn backslashed(text: &str) -> String {
    match text {
        "" => "''".to_owned(),
        _ if text.contains('\n') => single(text),
        _ => text.chars().flat_map(|c| ['\\', c]).collect(),
    }
}

fn coded(text: &str, code: fn(u8) -> String) -> String {
    format!("$'{}'", text.bytes().map(code).collect::<String>())
}

fn mixed(text: &str, random: &mut Random) -> Spelled {
    let mut out = String::new();
    for c in text.chars() {
        let piece = c.to_string();
        out += &match random.below(5) {
            0 => single(&piece),
            1 => format!("\"{}\"", double(&piece)),
            2 => coded(&piece, |byte| format!("\\x{byte:x}")),
            3 => backslashed(&piece),
            _ => plain(&piece),
        };
    }
    word(if out.is_empty() { "\"\"''".into() } else { out })
}

fn parts(text: &str, random: &mut Random) -> Spelled {
    let at = random.below(text.chars().count() + 1);
    let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
    after(format!("v={} w={}", single(&text[..at]), single(&text[at..])), "\"${v}\"\"$w\"")
}

/// What a word is in its command: `□` is the word. What kind of text goes there: `c` a program, `f` a file, `d` a
/// directory, `a` any argument, `n` a number.
pub(super) const POSITIONS: &[(&str, char, &[&str])] = &[
    ("command", 'c', &["□ k", "□", "K=k □ \"k l\"", "□ -x < a.txt"]),
    ("argument", 'a', &["pa □", "pa k □ l", "pa -o □ -- □", "pa k=□", "pa □/□"]),
    ("options", 'a', &["pa --name=□ -v□", "pa -- □ z"]),
    ("written file", 'f', &["pa > □", "pa k >□ l", "> □ pa", "pa >| □", "pa 1> □"]),
    ("appended file", 'f', &["pa >> □", "echo k >> □; pa", "pa 2>> □ >> □"]),
    ("other redirects", 'f', &["pa &> □", "pa >& □", "pa 2> □", "pa &>> □", "pa <> □", "pa 3> □ >&3"]),
    ("read file", 'f', &["pa < □", "pa < a.txt > □", "cat □ | pa"]),
    ("environment", 'a', &["V=□ bash -c 'pa \"$V\"'", "export V=□; sh -c 'pa $V'", "V=□ pa \"$V\""]),
    (
        "for words",
        'a',
        &[
            "for i in □ z; do pa \"$i\"; done",
            "for i in □; do pa $i; done",
            "for i in □ □; do pa \"k$i\" > /dev/null; done",
        ],
    ),
    ("case subject", 'a', &["case □ in k*) pa 1;; *) pb 2;; esac", "case □ in -*|k) pa;; [a-z]*) pb;; *) pc; esac"]),
    ("case pattern", 'a', &["case k in □) pa;; *) pb;; esac", "case -f in z|□) pa;; esac; pb"]),
    ("heredoc to shell", 'a', &["sh <<E\npa □\nE", "bash <<'E'\npa □\nE", "sh <<-\"E\"\n\tpa □\n\tE"]),
    ("here-string", 'a', &["read -r x y <<< □; pa \"$x\" \"$y\"", "bash <<< \"pa k\"□", "cat <<< □ | xargs pa"]),
    (
        "array",
        'a',
        &[
            "l=(□ z); pa \"${l[@]}\"",
            "l=(k); l+=(□); pa \"${l[1]}\"",
            "l[2]=□; pa \"${l[2]}\"",
            "declare -A m=([k]=□); pa \"${m[k]}\"",
        ],
    ),
    ("assignment", 'a', &["x=□; pa \"$x\"", "x=□; pa $x", "x=□; y=\"$x\"; pa \"${y}z\"", "x=k; x+=□; pa \"$x\""]),
    (
        "declaration",
        'a',
        &[
            "declare x=□; pa \"$x\"",
            "export x=□; pa \"$x\"",
            "f() { local x=□; pa \"$x\"; }; f",
            "readonly x=□; pa \"$x\"",
        ],
    ),
    (
        "directory",
        'd',
        &["cd □ && pa", "cd □; pa > out", "(cd □ && pa); pb", "pushd □ && pa; popd; pb", "cd □ || pb; pa"],
    ),
    (
        "condition",
        'a',
        &[
            "[[ □ == k* ]] && pa",
            "[ □ = k ] || pa",
            "test -n □ && pa",
            "[[ -e □ ]] && pa || pb",
            "if [[ □ =~ ^- ]]; then pa; else pb; fi",
        ],
    ),
    (
        "function argument",
        'a',
        &["f() { pa \"$1\" \"$@\"; }; f □ z", "f() { shift; pa $1; }; f z □", "f() { pa \"${1:-d}\" $#; }; f □"],
    ),
    ("set", 'a', &["set -- □ z; pa \"$2\" \"$1\"", "set -- k □; shift; pa \"$@\"", "set -- □; pa $#"]),
    ("eval", 'a', &["eval pa □", "eval \"pa\" k □", "eval 'pa k' □"]),
    (
        "shell argument",
        'a',
        &["sh -c 'pa \"$0\" \"$@\"' □ z", "bash -c 'pa $1' k □", "bash -c 'for i; do pa \"$i\"; done' k □ z"],
    ),
    ("shell text", 'a', &["bash -c \"pa k \"□", "sh -c pa\\ □"]),
    (
        "xargs",
        'a',
        &[
            "printf '%s\\n' □ | xargs pa",
            "printf '%s\\n' □ k | xargs -I{} pa x{}",
            "echo □ | xargs -n1 pa",
            "xargs pa □ < /dev/null",
            "printf '%s\\0' □ | xargs -0 pa",
        ],
    ),
    ("default value", 'a', &["pa \"${u:-□}\"", "pa ${u-□}", ": ${u:=□}; pa \"$u\"", "v=1; pa ${v:+□}"]),
    ("pattern", 'a', &["x=k-z; pa \"${x#□}\" \"${x%%□}\"", "x=kfk; pa \"${x//□/z}\"", "x=k; pa \"${x/k/□}\""]),
    ("printf", 'a', &["printf -v y '%s' □; pa \"$y\"", "pa \"$(printf '%s|' □ z)\"", "pa $(echo □)"]),
    (
        "redirected group",
        'f',
        &["{ pa; pb; } > □", "( pa ) >> □ 2>&1", "for i in 1; do pa; done > □", "exec > □; pa", "f() { pa; }; f > □"],
    ),
    ("trap", 'a', &["trap 'pa '□ EXIT", "x=□; trap 'pa \"$x\"' EXIT; x=z"]),
    (
        "number",
        'n',
        &[
            "pa $((□ + 1))",
            "a=(k l m n); pa ${a[□]}",
            "x=abcdef; pa ${x:□:2}",
            "((□ > 2)) && pa || pb",
            "set -- k l m; shift □; pa \"$@\"",
        ],
    ),
    ("wrapped", 'a', &["env K=□ pa □", "timeout 5 pa □", "nice -n 1 pa □ z", "env -u K pa □", "nohup pa □"]),
    (
        "command of wrapper",
        'c',
        &["env □ k", "timeout 5 □ k", "command □ k", "exec □ k", "echo k | xargs □", "sh -c □", "eval □ k"],
    ),
];

/// Texts for a position.
pub(super) fn text_for(kind: char, random: &mut Random) -> &'static str {
    let of: &[&str] = match kind {
        'c' => &["pa", "pb", "pc", "p-q", "p.x", "pf", "po"],
        'f' => &["out", "sub/out", "o p", "a.txt", "sub/deep/n", "./x", "sub/../y", "-"],
        'd' => &["sub", "sub/deep", "nope", ".", "..", "sub/..", "h"],
        'n' => &["0", "1", "2", "3", "1+1", "07", "-1"],
        _ => &[
            "k", "k", "-f", "-rf", "k l", "it's", "a;b", "#k", "k*", "[x]", "$HOME", "~", "{k,l}", "a\\b", "\"", "",
            " k ", "!k", "a&b", "k|l", "(x)", "é", "/abs/k", "a=b", "%s", "-n", "k\nl", "a\tb", "..", "`k`", "a.txt",
            "*.txt",
        ],
    };
    of[random.below(of.len())]
}
