//! What a tool's answer looks like when it leaves the gateway.

/// Ends an error's text, for the model.
pub const ERROR_HINT: &str = "[Analyze the error above and try a different approach.]";

const MARK: &str = "\n(truncated)";

/// Cuts a text to at most `max` bytes, the mark included, between two characters.
pub fn clip(mut text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    text.truncate(text.floor_char_boundary(max.saturating_sub(MARK.len())));
    text.push_str(MARK.get(..MARK.len().min(max)).unwrap_or_default());
    text
}

/// An error's text with the hint below it.
pub fn with_hint(error: &str) -> String {
    format!("{}\n\n{ERROR_HINT}", error.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        assert_eq!(clip("short".into(), 5), "short");
        assert_eq!(clip("ä".repeat(20), 17), format!("ää{MARK}"), "17 - 12 = 5 bytes hold two whole characters");
        for max in 0..40 {
            assert!(clip("aä€🦀".repeat(9), max).len() <= max, "at most {max} bytes");
        }
    }

    #[test]
    fn an_error_ends_with_the_hint() {
        assert_eq!(with_hint("no such file\n"), format!("no such file\n\n{ERROR_HINT}"));
    }
}
