//! Stage: command. The findings of the command's analysis are the stage's findings; nothing is judged twice here.

use crate::call::Call;
use crate::facts::Facts;
use crate::verdict::Finding;

/// Maps the facts of a command to findings. A tool without a command has none.
pub(super) fn judge(_call: &Call, facts: &Facts) -> Vec<Finding> {
    facts.command.as_ref().map(|command| command.findings.clone()).unwrap_or_default()
}
