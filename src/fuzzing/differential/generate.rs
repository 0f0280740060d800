//! Scripts, by number: each number is a cell of construct, position and quoting, so that every cell gets its share.

use super::constructs::CONSTRUCTS;
use super::corpus::harmless;
use super::words::{POSITIONS, QUOTINGS, double, single, text_for};
use crate::fuzzing::random::Random;

/// One in so many scripts is a line of a corpus.
const CORPUS: u64 = 25;

/// A prime that divides no number of cells.
const STRIDE: u64 = 1_000_003;

/// What a script was made of, for the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    /// Places in the lists of constructs, positions and quotings.
    Made(usize, usize, usize),
    Corpus,
}

/// How many cells there are.
pub(super) fn cells() -> usize {
    CONSTRUCTS.len() * POSITIONS.len() * QUOTINGS.len()
}

pub(super) struct Generator<'l> {
    pub seed: u64,
    pub lines: &'l [String],
}

impl Generator<'_> {
    /// The script of a number, the same each time.
    pub fn script(&self, number: u64) -> (Cell, String) {
        let mut random = Random::new(self.seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        if number.is_multiple_of(CORPUS)
            && !self.lines.is_empty()
            && let Some(line) = harmless(&self.lines[random.below(self.lines.len())], &mut random)
        {
            let script = if random.once_in(3) { filled(&line, &mut random) } else { line };
            return (Cell::Corpus, script);
        }
        // Each cell comes once before any comes again, and neighbours have little in common.
        let turn = self.seed.wrapping_mul(7919).wrapping_add(number - number / CORPUS) % cells() as u64;
        let number = usize::try_from(turn.wrapping_mul(STRIDE) % cells() as u64).unwrap_or(0);
        // The lists' lengths may have divisors in common: count like a clock.
        let (construct, rest) = (number % CONSTRUCTS.len(), number / CONSTRUCTS.len());
        let (position, quoting) = (rest % POSITIONS.len(), rest / POSITIONS.len());
        let (_, kind, forms) = POSITIONS[position];
        let spelled = QUOTINGS[quoting].1(text_for(kind, &mut random), &mut random);
        let command = random.pick(forms).replace('□', &spelled.word);
        let mut script = if random.once_in(2) {
            inserted(construct, &joined(&spelled.before, &command), &mut random)
        } else {
            joined(&spelled.before, &inserted(construct, &command, &mut random))
        };
        if random.once_in(4) {
            script = filled(&script, &mut random);
        }
        (Cell::Made(construct, position, quoting), script)
    }
}

fn joined(before: &str, command: &str) -> String {
    if before.is_empty() { command.to_owned() } else { format!("{before}\n{command}") }
}

/// How a command is put into a slot of a template.
type Fill = fn(&str) -> String;

/// A command in some construct.
fn filled(command: &str, random: &mut Random) -> String {
    inserted(random.below(CONSTRUCTS.len()), command, random)
}

fn inserted(construct: usize, command: &str, random: &mut Random) -> String {
    let template = random.pick(CONSTRUCTS[construct].1);
    let mut out = String::new();
    let mut rest = template;
    let slots: [(&str, Fill); 5] = [
        ("{}", str::to_owned),
        ("{q}", single),
        ("{Q}", |text| single(&single(text))),
        ("{d}", double),
        ("{b}", |text| text.replace('\\', "\\\\").replace('`', "\\`")),
    ];
    while let Some((at, (slot, fill))) =
        slots.iter().filter_map(|slot| rest.find(slot.0).map(|at| (at, slot))).min_by_key(|(at, _)| *at)
    {
        out.push_str(&rest[..at]);
        out.push_str(&fill(command));
        rest = &rest[at + slot.len()..];
    }
    out + rest
}
