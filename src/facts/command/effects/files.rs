//! Which files ordinary programs read and write, by the options and operands that name them. What is written here is data:
//! programs whose files depend on more than that have a function of their own in `programs` or below.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::programs::write_to;
use super::target::Kinds;
use crate::facts::command::notes::Act;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text;
use crate::facts::command::wrappers::options;
use crate::facts::path::Access;

/// What the operands of a program are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operands {
    /// No files.
    Other,
    /// Shown, sent on or kept in another form.
    Read,
    /// Looked into.
    Inspect,
    /// The first is a pattern or a program, the rest is looked into.
    PatternThenInspect,
    /// The first is a pattern or a program, the rest is shown.
    PatternThenRead,
    /// The first is a word of the program's own, the rest is shown.
    WordThenRead,
    /// The first is read, the second (or a name made of it) is written.
    ReadThenWrite,
    /// The first is written, the rest read.
    WriteThenRead,
    /// The first is a word of the program's own, the second is written, the rest read.
    WordThenWrite,
    /// The last is written; the others belong to options, or are read.
    LastWritten,
    /// The second and later ones are written.
    LaterWritten,
    /// Changed in place.
    Edit,
    /// The first is changed in place, the rest read.
    EditThenRead,
    /// Made where they are not there.
    Create,
}

/// The files of some programs.
struct Program {
    names: &'static str,
    /// Options with a value, each with a letter for what the value is before it: `w` a file that is written, `a` appended
    /// to, `d` a directory that files are written into, `r` a file that is read, `p` the pattern that is the first
    /// operand otherwise, `f` a file with such patterns, `v` something else, `2` a name and a value.
    options: &'static str,
    operands: Operands,
    /// Options are words after one dash (`-out FILE`), never clusters of letters.
    words: bool,
}

const fn program(names: &'static str, options: &'static str, operands: Operands) -> Program {
    Program { names, options, operands, words: false }
}

const fn wordy(names: &'static str, options: &'static str, operands: Operands) -> Program {
    Program { names, options, operands, words: true }
}

const PROGRAMS: &[Program] = &[
    // What shows files.
    program(
        "cat tac rev bat batcat most zcat bzcat xzcat zstdcat lz4cat gzcat zless zmore source lp lpr expand unexpand asc \
         fold fmt pr column tsort rview look qrencode-read cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum \
         b2sum b3sum sum shasum",
        "v-w v-t v-s v-c v-P v-d v-a v-n",
        Operands::Read,
    ),
    program("less more", "w-o w-O w--log-file v-p v-t v-k v-b v-h v-j v-x v-y v-z", Operands::Read),
    program("nl", "v-b v-d v-f v-h v-i v-l v-n v-s v-v v-w", Operands::Read),
    program("head tail", "v-n v-c v-s v--lines v--bytes v--pid v--sleep-interval", Operands::Read),
    program("od", "v-A v-t v-j v-N v-w v-S", Operands::Read),
    program("hexdump hd", "v-e v-n v-s r-f", Operands::Read),
    program("strings", "v-n v-t v-e v-T v-s v--bytes v--radix v--encoding", Operands::Read),
    program("base64 base32 basenc", "v-w v--wrap r-i w-o w--output", Operands::Read),
    program("cut", "v-d v-f v-c v-b", Operands::Read),
    program("paste", "v-d v--delimiters", Operands::Read),
    program("comm", "v--output-delimiter", Operands::Read),
    program("join", "v-1 v-2 v-j v-a v-v v-e v-o v-t", Operands::Read),
    program("shuf", "w-o w--output v-i v-n v--head-count r--random-source", Operands::Read),
    program(
        "sort",
        "w-o w--output v-k v-S v-t v-T v--key v--buffer-size v--field-separator r--files0-from",
        Operands::Read,
    ),
    program("iconv", "v-f v-t v--from-code v--to-code w-o w--output", Operands::Read),
    program(
        "jq yq xq gojq jaq",
        "2--arg 2--argjson 2--slurpfile 2--rawfile f-f f--from-file v--indent",
        Operands::PatternThenRead,
    ),
    program("wc file nm objdump readelf size ldd", "v-c v-f v-m r--files0-from v-j", Operands::Inspect),
    program(
        "diff sdiff diff3 cmp colordiff wdiff",
        "v-U v-C v-x v-X v-I v-W v-n v-i w-o w--output v-F",
        Operands::Inspect,
    ),
    program("vi vim nvim view nano emacs micro", "v-c v-T", Operands::Inspect),
    program(
        "grep egrep fgrep zgrep pgrep-files rg ag ack ugrep",
        "p-e p--regexp f-f f--file v-m v-A v-B v-C v-d v-D v-g v-t v-T v-M v--include v--exclude v--exclude-dir v--color \
         v--glob v--type v--max-count v--context",
        Operands::PatternThenInspect,
    ),
    program("awk gawk mawk nawk", "v-F v-v f-f f--file v--assign", Operands::PatternThenInspect),
    // Texts in, texts out.
    program("uniq", "v-f v-s v-w", Operands::ReadThenWrite),
    program("xxd", "v-c v-g v-l v-n v-s v-o", Operands::ReadThenWrite),
    program(
        "split",
        "v-b v-l v-n v-a v-C v-t v--bytes v--lines v--number v--additional-suffix",
        Operands::ReadThenWrite,
    ),
    program("csplit", "w-f w--prefix v-b v-n v--suffix-format v--digits", Operands::Read),
    program(
        "patch",
        "w-o w--output r-i r--input d-d d--directory w-r w--reject-file v-p v-F v-D v-V v-z v-B v-Y v-g v--strip",
        Operands::EditThenRead,
    ),
    program("dos2unix unix2dos recode", "v-c v-o", Operands::Edit),
    program("touch", "v-d v-t r-r v--date r--reference", Operands::Create),
    program("mkdir", "v-m v--mode", Operands::Create),
    program("mkfifo mknod", "v-m v--mode v-Z", Operands::Create),
    program("fallocate", "v-l v-o v--length v--offset", Operands::Edit),
    // Compilers and what goes with them.
    wordy(
        "gcc g++ cc c++ clang clang++ gfortran tcc ld gold lld as nasm yasm nvcc ghc ocamlc ocamlopt dmd gdc ldc2 fpc bison \
         yacc flex lex swiftc kotlinc emcc mpicc",
        "w-o w--output d-outdir",
        Operands::Other,
    ),
    wordy("rustc", "w-o d--out-dir", Operands::Other),
    wordy("go", "w-o", Operands::Other),
    wordy("javac scalac kotlinc-jvm", "d-d", Operands::Other),
    program("tsc", "d--outDir w--outFile", Operands::Other),
    program("esbuild", "w--outfile d--outdir", Operands::Other),
    program("strip", "w-o v-R v-K v-N", Operands::Edit),
    program("objcopy", "v-I v-O v-B v-j v-R v-F", Operands::ReadThenWrite),
    program("ar gcc-ar llvm-ar", "", Operands::WordThenWrite),
    program("protoc", "d--cpp_out d--python_out d--java_out d--go_out w-o w--descriptor_set_out", Operands::Other),
    // Keys and ciphers.
    wordy(
        "openssl",
        "r-in w-out w-keyout r-inkey r-key r-CAkey r-signkey w-writerand r-sign w-signature-out r-rand r-kfile r-inform-file",
        Operands::WordThenRead,
    ),
    program("gpg gpg2", "w-o w--output v-r v-u v--recipient v--homedir v--local-user v--passphrase", Operands::Read),
    program("age rage", "w-o w--output r-i r--identity v-r r-R", Operands::Read),
    // Archives. `tar` and `cpio` have functions of their own.
    program("zip", "v-b v-t v-x v-i v-P v-n", Operands::WriteThenRead),
    program("mksquashfs", "", Operands::LastWritten),
    program("mkisofs genisoimage xorrisofs", "w-o", Operands::Read),
    // Documents and media.
    wordy("ffmpeg avconv", "r-i", Operands::LastWritten),
    wordy("convert magick sox composite montage", "", Operands::LastWritten),
    wordy("mogrify", "d-path", Operands::Edit),
    program(
        "pandoc asciidoctor rsvg-convert dot neato plantuml mmdc xsltproc inkscape wkhtmltopdf-file",
        "w-o w--output v-f v-t v-T v-s v--from v--to r-H r-B r-A v-V v-M",
        Operands::Read,
    ),
    program("qpdf wkhtmltopdf sphinx-build cwebp-file", "v-b v-d v-c", Operands::LastWritten),
    program("cwebp qrencode", "w-o", Operands::Other),
    // What looks at programs and networks.
    program("tcpdump tshark dumpcap", "w-w r-r v-i v-c v-s v-C v-G v-W", Operands::Other),
    program("pg_dump pg_dumpall", "w-f w--file v-h v-p v-U v-d v-n v-t", Operands::Other),
    program("mysqldump mariadb-dump", "w-r w--result-file d-T d--tab v-u v-h v-P", Operands::Other),
    program("mongodump mongoexport", "d-o d--out w--archive v-d v-c", Operands::Other),
    program("psql", "w-o w--output r-f r--file w-L w--log-file v-c v-d v-h v-p v-U v-v", Operands::Other),
    // Over the network; who is told what is read in `network`.
    program(
        "curl",
        "w-o w--output w-D w--dump-header w-c w--cookie-jar w--trace w--trace-ascii w--stderr w--libcurl w--etag-save \
         w--hsts w--alt-svc d--output-dir r-T r--upload-file r-K r--config r-E r--cert r--key r--netrc-file v-d v-F v-H v-X \
         v-A v-e v-u v-x v-m v-w v-r v-y v-Y v-z v-C v-P v-Q v-t v-U v-b",
        Operands::Other,
    ),
    program(
        "wget wget2",
        "w-O w--output-document a-a a--append-output w-o w--output-file d-P d--directory-prefix r--post-file r--body-file \
         w--save-cookies r--load-cookies r-i r--input-file r--certificate r--private-key v-U v-e v-t v-T v-w v-Q v-l v-A v-R v-D",
        Operands::Other,
    ),
    program("aria2c", "d-d d--dir w-o w--out w-l w--log r-i r--input-file v-x v-s v-j v-k", Operands::Other),
    program("axel lftp-get httrack", "w-o w--output v-n", Operands::Other),
    program("yt-dlp youtube-dl", "w-o w--output d-P d--paths v-f r-a", Operands::Other),
    program("http https xh", "w-o w--output", Operands::Other),
    // Wrappers: what they write themselves.
    program("strace ltrace", "w-o w--output v-e v-p v-E v-u v-s v-a v-O v-S v-P v-I v-X", Operands::Other),
    program("time gtime", "w-o w--output v-f v--format", Operands::Other),
    program(
        "script",
        "v-c v--command w-O w--log-out w-B w--log-io w-I w-T w--log-timing v-m v-E v-o",
        Operands::Create,
    ),
    program("valgrind", "w--log-file w--xml-file", Operands::Other),
    program("parallel", "r-a r--arg-file r--joblog v-j v-I", Operands::Other),
    // Copies of disks and images.
    program("ddrescue dd_rescue", "v-b v-s v-i v-o v-r v-c", Operands::LaterWritten),
    program("ntfsclone", "w-O w--overwrite w-o w--output", Operands::Other),
    program("ditto", "v--arch", Operands::LastWritten),
];

/// Programs that run another one after their own options, so that only those are theirs.
const WRAPPERS: &[&str] = &["strace", "ltrace", "time", "gtime", "script", "valgrind"];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Program>> = LazyLock::new(|| {
    PROGRAMS.iter().flat_map(|program| program.names.split_whitespace().map(move |name| (name, program))).collect()
});

/// What options and operands name.
#[derive(Debug, Default)]
struct Named {
    /// Uses of option values, by the letters of the table.
    values: Vec<(char, String)>,
    operands: Vec<String>,
    /// The pattern was given as an option.
    pattern: bool,
}

impl Program {
    /// The use of an option's value, by its exact name, or the one abbreviation that getopt(3) would take it for.
    fn option(&self, given: &str) -> Option<char> {
        if given.is_empty() || given.contains(char::is_whitespace) {
            return None;
        }
        let mut abbreviated = None;
        for (at, _) in self.options.match_indices(given) {
            let (before, after) = (self.options.get(..at)?, self.options.get(at + given.len()..)?);
            // An entry is the letter of its kind, and the name.
            let mut before = before.chars();
            let Some(kind) = before.next_back().filter(|kind| !kind.is_whitespace()) else { continue };
            if before.next_back().is_some_and(|c| !c.is_whitespace()) {
                continue;
            }
            if after.chars().next().is_none_or(char::is_whitespace) {
                return Some(kind);
            }
            if given.len() > 4 && given.starts_with("--") {
                abbreviated.get_or_insert(kind);
            }
        }
        abbreviated
    }

    fn read(&self, args: &[String], wrapper: bool) -> Named {
        let mut named = Named::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--" {
                named.operands.extend(args.cloned());
                break;
            }
            if arg.len() < 2 || !arg.starts_with('-') {
                if wrapper {
                    break;
                }
                named.operands.push(arg.clone());
                continue;
            }
            let Some((kind, attached)) = self.valued(arg) else { continue };
            let mut value = attached.or_else(|| args.next().cloned()).unwrap_or_default();
            if kind == '2' {
                value = args.next().cloned().unwrap_or_default();
            }
            named.pattern |= kind == 'p' || kind == 'f';
            named.values.push((kind, value));
        }
        named
    }

    /// The use of the value that an argument with a dash takes, and the value where it is attached.
    fn valued(&self, arg: &str) -> Option<(char, Option<String>)> {
        if arg.starts_with("--") || (self.words && arg.contains('=')) {
            let (name, value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (arg, None),
            };
            return Some((self.option(name)?, value));
        }
        if arg.chars().count() > 2
            && let Some(kind) = self.option(arg)
        {
            return Some((kind, None));
        }
        for (at, c) in arg.char_indices().skip(1) {
            if let Some(kind) = self.option(&format!("-{c}")) {
                let rest = arg.get(at + c.len_utf8()..).unwrap_or_default();
                return Some((kind, (!rest.is_empty()).then(|| rest.to_owned())));
            }
            if self.words {
                break;
            }
        }
        None
    }
}

/// The files that a program's arguments name, as effects.
pub(crate) fn acts(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    let Some(program) = BY_NAME.get(name) else { return Vec::new() };
    let named = program.read(args, false);
    let mut acts = values(walker, &named);
    acts.extend(operands(walker, program.operands, &named));
    acts
}

/// The files that a wrapper writes itself, whatever it runs.
pub(crate) fn of_wrapper(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    if !WRAPPERS.contains(&name) {
        return Vec::new();
    }
    let Some(program) = BY_NAME.get(name) else { return Vec::new() };
    // The operand of `script` is its file, not a command.
    let mut named = program.read(args, name != "script");
    named.operands.truncate(1);
    let mut acts = values(walker, &named);
    if name == "script" {
        acts.extend(writes(walker, &named.operands));
    }
    acts
}

fn values(walker: &mut Walker<'_>, named: &Named) -> Vec<Act> {
    let mut acts = Vec::new();
    for (kind, value) in &named.values {
        if value.is_empty() || value == "-" {
            continue;
        }
        let one = std::slice::from_ref(value);
        match kind {
            'w' => acts.extend(write_to(walker, value, "overwrite")),
            'a' => acts.extend(write_to(walker, value, "append")),
            'd' => acts.extend(walker.acts("unpack", one, false, Access::Write)),
            'r' | 'f' => acts.extend(reads(walker, "read", one)),
            _ => {}
        }
    }
    acts
}

fn operands(walker: &mut Walker<'_>, operands: Operands, named: &Named) -> Vec<Act> {
    let all = named.operands.as_slice();
    let after = |count: usize| all.get(count..).unwrap_or_default();
    let first = |count: usize| all.get(..count.min(all.len())).unwrap_or_default();
    match operands {
        Operands::Other => Vec::new(),
        Operands::Read => reads(walker, "read", all),
        Operands::Inspect => reads(walker, "inspect", all),
        Operands::PatternThenInspect => reads(walker, "inspect", after(usize::from(!named.pattern))),
        Operands::PatternThenRead => reads(walker, "read", after(usize::from(!named.pattern))),
        Operands::WordThenRead => reads(walker, "read", after(1)),
        Operands::ReadThenWrite => {
            let mut acts = reads(walker, "read", first(1));
            acts.extend(writes(walker, after(1)));
            acts
        }
        Operands::WriteThenRead => {
            let mut acts = writes(walker, first(1));
            acts.extend(reads(walker, "read", after(1)));
            acts
        }
        Operands::WordThenWrite => {
            let mut acts = writes(walker, all.get(1..2).unwrap_or_default());
            acts.extend(reads(walker, "inspect", after(2)));
            acts
        }
        Operands::LastWritten => writes(walker, after(all.len().saturating_sub(1))),
        Operands::LaterWritten => writes(walker, after(1)),
        Operands::Edit => writes_as(walker, "edit", all),
        Operands::EditThenRead => {
            let mut acts = writes_as(walker, "edit", first(1));
            acts.extend(reads(walker, "read", after(1)));
            acts
        }
        Operands::Create => walker.acts("create", all, false, Access::Write),
    }
}

/// Reading: what is not known by name at all is only an effect, never a path.
pub(crate) fn reads(walker: &mut Walker<'_>, effect: &'static str, paths: &[String]) -> Vec<Act> {
    let mut acts = Vec::new();
    for path in paths.iter().filter(|path| !path.is_empty() && *path != "-") {
        let target = walker.target(path);
        if text::has_unknown(path) && !target.is_known() {
            acts.push(Act::new(effect, target.kinds));
            continue;
        }
        let span = walker.span.clone();
        walker.notes.path(&target, Access::Read, span);
        acts.push(Act::new(effect, target.kinds));
    }
    acts
}

fn writes(walker: &mut Walker<'_>, paths: &[String]) -> Vec<Act> {
    writes_as(walker, "overwrite", paths)
}

fn writes_as(walker: &mut Walker<'_>, effect: &'static str, paths: &[String]) -> Vec<Act> {
    paths.iter().filter(|path| *path != "-").flat_map(|path| write_to(walker, path, effect)).collect()
}

/// Programs that pack one file into another in its place.
pub(crate) fn compress(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = options::Options::read(args, "SDo", &["suffix", "output"]);
    let mut acts = reads(walker, "read", &options.operands);
    let keeps = ['c', 'k', 't', 'l'].iter().any(|c| options.has(*c))
        || ["stdout", "to-stdout", "keep", "test", "list"].iter().any(|name| options.has_long(name, 4));
    if !keeps {
        acts.extend(writes_as(walker, "edit", &options.operands));
    }
    acts.extend(writes(walker, &options.values('o')));
    acts
}

/// unzip(1), 7z and unrar: what lands where.
pub(crate) fn unpack(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    if name == "unzip" {
        let options = options::Options::read(args, "dxP", &[]);
        let looks = ['l', 't', 'p', 'v', 'Z', 'z'].iter().any(|c| options.has(*c));
        let mut acts = reads(walker, "inspect", options.operands.get(..1).unwrap_or_default());
        if !looks {
            let mut into = options.values('d');
            walker.unpacks(options.operands.get(..1).unwrap_or_default(), into.first().map(String::as_str));
            if into.is_empty() {
                into.push(".".to_owned());
            }
            acts.extend(walker.acts("unpack", &into, false, Access::Write));
        }
        return acts;
    }
    let Some((word, rest)) = args.split_first() else { return Vec::new() };
    let operands: Vec<String> = rest.iter().filter(|arg| !arg.starts_with('-')).cloned().collect();
    match word.as_str() {
        "a" | "u" => {
            let mut acts = writes(walker, operands.get(..1).unwrap_or_default());
            acts.extend(reads(walker, "read", operands.get(1..).unwrap_or_default()));
            acts
        }
        "x" | "e" => {
            let into: Vec<String> = rest.iter().filter_map(|arg| arg.strip_prefix("-o")).map(str::to_owned).collect();
            walker.unpacks(operands.get(..1).unwrap_or_default(), into.first().map(String::as_str));
            walker.acts("unpack", &into, false, Access::Write)
        }
        _ => Vec::new(),
    }
}

/// cpio(1): out of a list, into a directory, or from place to place.
pub(crate) fn cpio(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = options::Options::read(args, "DFIOHCEMRW", &["directory", "file", "format", "pattern-file", "owner"]);
    let into: Vec<String> = options.values('D').into_iter().chain(options.long_values("directory")).collect();
    let mut acts = Vec::new();
    if options.has('i') || options.has_long("extract", 3) {
        acts.extend(walker.acts("unpack", &into, false, Access::Write));
    }
    if options.has('p') || options.has_long("pass-through", 4) {
        acts.extend(walker.acts("unpack", &options.operands, false, Access::Write));
    }
    if options.has('o') || options.has_long("create", 3) {
        acts.extend(writes(walker, &options.values('O')));
    }
    acts
}

/// ssh-keygen(1): makes a key where `-f` says, or works on the one that lies there.
pub(crate) fn keygen(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = options::Options::read(args, "abCDEFfIJjKMmNnOPRrSsTtVWwYZz", &[]);
    let files = options.values('f');
    if ['y', 'p', 'c'].iter().any(|c| options.has(*c)) {
        return reads(walker, "read", &files);
    }
    if ['l', 'L', 'B', 'e', 'i', 'F', 'Y', 'H', 'R'].iter().any(|c| options.has(*c)) {
        return reads(walker, "inspect", &files);
    }
    writes(walker, &files)
}

/// qemu-img(1): the image that a subcommand makes or changes.
pub(crate) fn image(walker: &mut Walker<'_>, args: &[String]) -> Vec<Act> {
    let options = options::Options::read(args, "fOoBbTtSFml", &["object", "target-format"]);
    let Some((word, files)) = options.operands.split_first() else { return Vec::new() };
    match word.as_str() {
        "convert" => writes(walker, files.get(files.len().saturating_sub(1)..).unwrap_or_default()),
        "create" | "resize" | "rebase" | "commit" | "amend" | "snapshot" => {
            writes(walker, files.get(..1).unwrap_or_default())
        }
        _ => Vec::new(),
    }
}

/// What git's own commands write outside the repository, and read by name.
pub(crate) fn git(walker: &mut Walker<'_>, command: &str, args: &[String]) -> Vec<Act> {
    let outputs = |short: &str, long: &[&str]| {
        let options = options::Options::read(args, short, long);
        let mut files: Vec<String> = short.chars().flat_map(|c| options.values(c)).collect();
        files.extend(long.iter().flat_map(|name| options.long_values(name)));
        (files, options.operands)
    };
    match command {
        "archive" => {
            let (files, _) = outputs("o", &["output"]);
            writes(walker, &files)
        }
        "format-patch" => {
            let (files, _) = outputs("o", &["output-directory"]);
            walker.acts("unpack", &files, false, Access::Write)
        }
        "diff" | "log" | "show" | "diff-tree" | "diff-index" | "stash" => {
            let (files, operands) = outputs("", &["output"]);
            let mut acts = writes(walker, &files);
            if args.iter().any(|arg| arg == "--no-index") {
                acts.extend(reads(walker, "read", &operands));
            }
            acts
        }
        "bundle" => {
            writes(walker, &args.iter().skip_while(|arg| *arg != "create").skip(1).take(1).cloned().collect::<Vec<_>>())
        }
        "config" => {
            let (files, _) = outputs("f", &["file"]);
            if args.iter().any(|arg| matches!(arg.as_str(), "-l" | "--list") || arg.starts_with("--get")) {
                reads(walker, "inspect", &files)
            } else {
                writes_as(walker, "edit", &files)
            }
        }
        "hash-object" => reads(walker, "read", &outputs("t", &["path"]).1),
        "clone" => {
            let operands = outputs("boucj", &[]).1;
            let mut acts = walker.acts("unpack", operands.get(1..).unwrap_or_default(), false, Access::Write);
            acts.push(Act::new("fetch", Kinds::default()));
            acts
        }
        "fetch" | "pull" | "ls-remote" | "remote-update" => vec![Act::new("fetch", Kinds::default())],
        "push" | "send-email" => vec![Act::new("send", Kinds::default())],
        "rebase" => vec![Act::new("history-rewrite", Kinds::default())],
        "commit" if args.iter().any(|arg| arg == "--amend") => vec![Act::new("history-rewrite", Kinds::default())],
        _ => Vec::new(),
    }
}
