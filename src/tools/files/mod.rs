//! Reading, writing, editing and listing files. Every tool works on the handle that was judged.

mod edit;
mod list;
mod read;
mod write;

pub use self::edit::edit;
pub use self::list::list_dir;
pub use self::read::read;
pub use self::write::write;

/// Files beyond this are read in parts, and not edited, in bytes.
const LARGE: u64 = 10 * 1024 * 1024;
/// What tells a binary file: a NUL among this many bytes at its start.
const PROBE: usize = 8 * 1024;

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(PROBE).any(|byte| *byte == 0)
}
