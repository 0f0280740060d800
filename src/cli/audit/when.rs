//! Times as people write them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Unit};

use crate::cli::Failure;

/// A date or a time, here where it names no zone, or how long ago.
pub(super) fn when(text: &str) -> Result<Timestamp, Failure> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let here = |time: DateTime| TimeZone::system().to_timestamp(time);
    if let Ok(time) = text.parse::<DateTime>().and_then(here) {
        return Ok(time);
    }
    let seconds = |span: Span| span.abs().total((Unit::Second, SpanRelativeTo::days_are_24_hours()));
    let ago = text.parse::<Span>().and_then(seconds).and_then(SignedDuration::try_from_secs_f64);
    let ago = ago.and_then(|ago| Timestamp::now().checked_sub(ago));
    ago.map_err(|_| {
        Failure::usage(format!("`{text}` is no time: write a date as 2026-11-30, a time, or how long ago as 30d or 2h"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = Timestamp::now();
        for (text, seconds) in [("30d", 30 * 86_400), ("2h", 7200), ("90m", 5400)] {
            let ago = now.duration_since(when(text).unwrap()).as_secs();
            // A change of summer time may lie in between.
            assert!((ago - seconds).abs() <= 3601, "{text} is {ago} s ago");
        }
        assert_eq!(when("2026-11-30T01:02:03Z").unwrap().to_string(), "2026-11-30T01:02:03Z");
        assert!(when("2026-11-30").is_ok() && when("2026-11-30T10:00").is_ok());
        assert!(when("yesterday").unwrap_err().message.contains("30d"));
    }
}
