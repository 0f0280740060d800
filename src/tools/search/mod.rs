//! Finding files by name and by content. Every search walks from the directory that was judged.

mod glob;
mod grep;
mod report;

pub use self::glob::glob;
pub use self::grep::grep;

use globset::{GlobBuilder, GlobMatcher};

use crate::registry::ToolError;
use crate::tools::failed;

/// Compiles a pattern as ignore files mean it: without a `/` it is for names at any depth.
fn name_pattern(pattern: &str) -> Result<GlobMatcher, ToolError> {
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err(failed(format!(
            "the pattern `{pattern}` leads outside: give a relative one, and a directory as `path`"
        )));
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let anywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    GlobBuilder::new(&anywhere)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| failed(format!("the pattern `{pattern}` cannot be used: {}", error.kind())))
}
