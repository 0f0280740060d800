//! Stage 1: Cedar policies over the facts.
//!
//! [`Policies::load`] turns policy files into something that can decide, or says everything that is wrong with them;
//! [`judge`] puts one call to them. ASK is no word of Cedar's: it is the difference between what the policies answer
//! without an approval and what they answer with one.

mod diagnostic;
mod guard;
mod intake;
mod judge;
mod lint;
mod load;
mod reach;
mod request;
mod schema;
mod sets;
mod shape;
pub mod slice;
mod source;
mod standing;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use self::diagnostic::{PolicyError, Problem};
pub use self::intake::{MAX_DEPTH, MAX_FILE, MAX_POLICY};
pub use self::judge::judge;
pub use self::load::{Description, Loaded, Policies, Report, Summary, check, load};
pub use self::reach::could_allow;
pub use self::schema::STUB as SCHEMA_STUB;
pub use self::sets::PolicyFiles;
pub use self::source::{Source, Trust};
pub use self::standing::standing_level;
