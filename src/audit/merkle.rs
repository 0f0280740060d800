//! The Merkle tree over the lines of the log (RFC 6962, section 2): its root names all of them, a short proof shows that
//! one is among them, and another that a later tree only added to an earlier one.

use sha2::{Digest as _, Sha256};

use crate::call::Digest;

/// The hash of a leaf: a line without its newline.
pub fn leaf(line: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::new().chain_update([0]).chain_update(line).finalize().into())
}

/// The hash of an inner node.
fn node(left: Digest, right: Digest) -> Digest {
    let hash = Sha256::new().chain_update([1]).chain_update(left.as_bytes()).chain_update(right.as_bytes());
    Digest::from_bytes(hash.finalize().into())
}

/// A tree that grows, without its leaves: the roots of the complete subtrees that it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    size: u64,
    /// One for each bit that is set in `size`, the largest first.
    peaks: Vec<Digest>,
}

impl Tree {
    /// A tree of which only the peaks are known. Absent where they are not those of such a size.
    pub fn from_peaks(size: u64, peaks: Vec<Digest>) -> Option<Self> {
        // No log has more lines than this.
        let possible = size < 1 << 62;
        (possible && peaks.len() == size.count_ones() as usize).then_some(Tree { size, peaks })
    }

    /// How many leaves it has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// See [`Tree::from_peaks`].
    pub fn peaks(&self) -> &[Digest] {
        &self.peaks
    }

    /// Adds a leaf.
    pub fn push(&mut self, leaf: Digest) {
        let mut hash = leaf;
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                hash = node(left, hash);
            }
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    /// What names all the leaves.
    pub fn root(&self) -> Digest {
        self.peaks.iter().rev().copied().reduce(|right, left| node(left, right)).unwrap_or_else(|| Digest::of(""))
    }
}

/// A tree with its leaves, of which the first may be known by their peaks alone.
#[derive(Debug, Default)]
pub struct Leaves {
    base: Tree,
    leaves: Vec<Digest>,
}

impl Leaves {
    /// Begins with a tree whose leaves are gone.
    pub fn after(base: Tree) -> Self {
        Leaves { base, leaves: Vec::new() }
    }

    pub fn push(&mut self, leaf: Digest) {
        self.leaves.push(leaf);
    }

    pub fn size(&self) -> u64 {
        self.base.size + self.leaves.len() as u64
    }

    /// The hash of a leaf that is there.
    pub fn get(&self, index: u64) -> Option<Digest> {
        let at = usize::try_from(index.checked_sub(self.base.size)?).ok()?;
        self.leaves.get(at).copied()
    }

    /// The root of the first `size` leaves.
    pub fn root(&self, size: u64) -> Option<Digest> {
        if size == 0 { Some(Digest::of("")) } else { self.hash(0, size) }
    }

    /// The audit path of a leaf in the tree of the first `size` leaves, from the leaf up (RFC 6962, section 2.1.1).
    /// Absent where there is no such leaf, or what the proof needs is gone.
    pub fn inclusion(&self, index: u64, size: u64) -> Option<Vec<Digest>> {
        if index >= size || size > self.size() {
            return None;
        }
        let (mut start, mut end) = (0, size);
        let mut path = Vec::new();
        while end - start > 1 {
            let middle = start + split(end - start);
            if index < middle {
                path.push(self.hash(middle, end)?);
                end = middle;
            } else {
                path.push(self.hash(start, middle)?);
                start = middle;
            }
        }
        path.reverse();
        Some(path)
    }

    /// The proof that the tree of the first `size` leaves only added to the tree of the first `old` (RFC 6962, section
    /// 2.1.2).
    pub fn consistency(&self, old: u64, size: u64) -> Option<Vec<Digest>> {
        if old > size || size > self.size() {
            return None;
        }
        let (mut start, mut end, mut path) = (0, size, Vec::new());
        if old == 0 || old == size {
            return Some(path);
        }
        while old != end {
            let middle = start + split(end - start);
            if old <= middle {
                path.push(self.hash(middle, end)?);
                end = middle;
            } else {
                path.push(self.hash(start, middle)?);
                start = middle;
            }
        }
        // Where the old tree is a subtree of the new one, its root is known.
        if start > 0 {
            path.push(self.hash(start, end)?);
        }
        path.reverse();
        Some(path)
    }

    /// The root of the subtree over the leaves `start..end`.
    fn hash(&self, start: u64, end: u64) -> Option<Digest> {
        if end <= self.base.size {
            return self.peak(start, end);
        }
        if end - start == 1 {
            return self.get(start);
        }
        let middle = start + split(end - start);
        Some(node(self.hash(start, middle)?, self.hash(middle, end)?))
    }

    /// A subtree whose leaves are gone: known where it is made of whole peaks.
    fn peak(&self, start: u64, end: u64) -> Option<Digest> {
        let mut at = 0;
        let mut known = None;
        let mut bits = self.base.size;
        let mut hashes = Vec::new();
        for peak in &self.base.peaks {
            let width = 1_u64.checked_shl(63 - bits.leading_zeros())?;
            bits &= !width;
            if at >= start && at + width <= end {
                hashes.push(*peak);
                known = Some((known.map_or(at, |(first, _)| first), at + width));
            }
            at += width;
        }
        (known == Some((start, end))).then(|| hashes.into_iter().rev().reduce(|right, left| node(left, right)))?
    }
}

/// The largest power of two below `n`, which is 2 or more.
fn split(n: u64) -> u64 {
    1 << (63 - (n - 1).leading_zeros().min(63))
}

/// Whether a leaf is at its place in the tree with this root (RFC 9162, section 2.1.3.2).
pub fn included(leaf: Digest, index: u64, size: u64, path: &[Digest], root: Digest) -> bool {
    if index >= size {
        return false;
    }
    let (mut at, mut last, mut hash) = (index, size - 1, leaf);
    for step in path {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            hash = node(*step, hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = node(hash, *step);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && hash == root
}

/// Whether the tree with the root `new` only added to the one with the root `old` (RFC 9162, section 2.1.4.2).
pub fn consistent(old_size: u64, old: Digest, new_size: u64, new: Digest, path: &[Digest]) -> bool {
    if old_size > new_size {
        return false;
    }
    if old_size == new_size {
        return path.is_empty() && old == new;
    }
    if old_size == 0 {
        return path.is_empty() && old == Digest::of("");
    }
    let (mut at, mut last) = (old_size - 1, new_size - 1);
    while at & 1 == 1 {
        at >>= 1;
        last >>= 1;
    }
    let mut steps = path.iter().copied();
    let start = if old_size.is_power_of_two() { Some(old) } else { steps.next() };
    let Some(start) = start else { return false };
    let (mut was, mut is) = (start, start);
    for step in steps {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            was = node(step, was);
            is = node(step, is);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            is = node(is, step);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && was == old && is == new
}

#[cfg(test)]
mod tests {
    use ct_merkle::mem_backed_tree::MemoryBackedTree;
    use proptest::prelude::*;

    use super::*;

    /// The same leaves in ours and in an independent implementation.
    fn both(lines: &[Vec<u8>]) -> (Leaves, MemoryBackedTree<Sha256, Vec<u8>>) {
        let (mut ours, mut theirs) = (Leaves::default(), MemoryBackedTree::new());
        for line in lines {
            ours.push(leaf(line));
            theirs.push(line.clone());
        }
        (ours, theirs)
    }

    fn flat(path: &[Digest]) -> Vec<u8> {
        path.iter().flat_map(|digest| *digest.as_bytes()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_independent_implementation_agrees_on_roots_and_proofs(
            lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..8), 1..70),
            gone in 0..70_usize,
        ) {
            // No two alike, so that no proof is good for two places.
            let lines: Vec<Vec<u8>> = (0_u8..).zip(lines).map(|(at, line)| [vec![at], line].concat()).collect();
            let (ours, theirs) = both(&lines);
            let size = ours.size();
            let root = ours.root(size).unwrap();
            let mut grown = Tree::default();
            lines.iter().for_each(|line| grown.push(leaf(line)));
            prop_assert_eq!(grown.root(), root);
            let independent = theirs.root();
            prop_assert_eq!(root.as_bytes().as_slice(), independent.as_bytes().as_slice());

            // The same tree, whose first leaves are gone.
            let gone = gone % lines.len();
            let mut base = Tree::default();
            lines[..gone].iter().for_each(|line| base.push(leaf(line)));
            let mut rest = Leaves::after(base);
            lines[gone..].iter().for_each(|line| rest.push(leaf(line)));
            prop_assert_eq!(rest.root(size), Some(root));

            for (at, line) in lines.iter().enumerate() {
                let path = ours.inclusion(at as u64, size).unwrap();
                let proof = theirs.prove_inclusion(at);
                prop_assert_eq!(flat(&path), proof.as_bytes());
                prop_assert!(included(leaf(line), at as u64, size, &path, root));
                prop_assert!(!included(leaf(b"another line"), at as u64, size, &path, root));
                prop_assert!(!included(leaf(line), at as u64 + 1, size, &path, root) || path.is_empty());
                if at >= gone {
                    prop_assert_eq!(rest.inclusion(at as u64, size), Some(path));
                }
            }
            for old in 1..size {
                let path = ours.consistency(old, size).unwrap();
                let proof = theirs.prove_consistency(usize::try_from(size - old).unwrap());
                prop_assert_eq!(flat(&path), proof.as_bytes());
                let was = ours.root(old).unwrap();
                prop_assert!(consistent(old, was, size, root, &path));
                prop_assert!(!consistent(old, leaf(b"another root"), size, root, &path));
                prop_assert!(!consistent(old, was, size, leaf(b"another root"), &path));
            }
        }

        #[test]
        fn i2_any_proof_is_answered(
            index in any::<u64>(), size in any::<u64>(), path in proptest::collection::vec(any::<[u8; 32]>(), 0..70),
        ) {
            let path: Vec<Digest> = path.into_iter().map(Digest::from_bytes).collect();
            prop_assert!(!included(leaf(b"a"), index, size, &path, leaf(b"b")));
            prop_assert!(!consistent(index, leaf(b"a"), size, leaf(b"b"), &path));
        }
    }
}
