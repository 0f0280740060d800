//! What a principal's mode grants in advance.

use crate::call::{Mode, Principal};

/// The level of approval that a principal has without asking: 1 in `bypass`, otherwise 0.
///
/// It is no policy. The firewall applies it to the combined verdict, where it answers ASK(1) and nothing more: not ASK(2),
/// not DENY, and not a finding that is fatal or says that a required confinement is missing.
pub fn standing_level(principal: &Principal) -> u8 {
    match principal.mode {
        Mode::Bypass => 1,
        Mode::Plan | Mode::Default | Mode::AcceptEdits => 0,
    }
}
