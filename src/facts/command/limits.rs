//! The explicit bounds of an analysis. Each one that is hit is a finding of its own.

/// How much is analysed.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest command text, in bytes.
    pub bytes: usize,
    /// Nesting of the grammar and of text that runs as commands.
    pub depth: usize,
    /// Program calls that are looked at, loops and functions unrolled.
    pub sites: usize,
    /// Work of all kinds, about in nanoseconds of a usual machine: what bounds the time, whatever the input is made of.
    pub work: usize,
    /// Words that one expansion may give.
    pub words: usize,
    /// Words of all program calls together.
    pub words_in_all: usize,
    /// Longest text that an expansion or a substitution may give, in bytes.
    pub text: usize,
    /// Bytes that all expansions may give; after that only short texts are followed.
    pub text_in_all: usize,
    /// Bytes of nested scripts (`eval`, `sh -c`, decoded text) that are parsed in all.
    pub nested_bytes: usize,
    /// Findings that are kept.
    pub findings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            bytes: 256 * 1024,
            depth: 160,
            sites: 20_000,
            work: 12_000_000,
            words: 1_000,
            words_in_all: 100_000,
            text: 64 * 1024,
            text_in_all: 512 * 1024,
            nested_bytes: 192 * 1024,
            findings: 64,
        }
    }
}
