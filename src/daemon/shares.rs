//! What one agent may take of something that all share, so that none can take all of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A number of places, of which each agent has some at most.
pub struct Shares {
    each: usize,
    all: Arc<Semaphore>,
    // As many as there are agents in the configuration.
    of: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A place, until it is dropped.
pub struct Share {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Shares {
    pub fn new(all: usize, each: usize) -> Self {
        Shares { each, all: Arc::new(Semaphore::new(all)), of: Mutex::default() }
    }

    /// A place for the agent, where there is one now.
    pub fn try_take(&self, agent: &str) -> Option<Share> {
        let own = self.of(agent).try_acquire_owned().ok()?;
        Some(Share { _own: own, _all: Arc::clone(&self.all).try_acquire_owned().ok()? })
    }

    /// The same, waiting for it.
    pub async fn take(&self, agent: &str) -> Option<Share> {
        let own = self.of(agent).acquire_owned().await.ok()?;
        Some(Share { _own: own, _all: Arc::clone(&self.all).acquire_owned().await.ok()? })
    }

    /// How many places are free.
    pub fn free(&self) -> usize {
        self.all.available_permits()
    }

    fn of(&self, agent: &str) -> Arc<Semaphore> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let own = of.entry(agent.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.each)));
        Arc::clone(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_agent_takes_what_is_anothers() {
        let shares = Shares::new(3, 2);
        let mut greedy: Vec<_> = (0..4).filter_map(|_| shares.try_take("greedy")).collect();
        assert_eq!((greedy.len(), shares.free()), (2, 1));
        let other = shares.take("other").await.expect("there is room for another");
        assert!(shares.try_take("third").is_none(), "more than there is");
        drop(other);
        greedy.pop();
        assert!(shares.try_take("greedy").is_some() && shares.free() == 2, "what was given back is there again");
    }
}
