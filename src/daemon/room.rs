//! Room for connections. When all of it is taken, the connection on which nothing is asked for the longest makes place,
//! so that clients that only hold connections keep nobody out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// A connection that is quiet for less may just not have been heard yet.
const HEARD: Duration = Duration::from_millis(500);
/// How often those that wait look whether another is quiet for long enough.
const LOOK: Duration = Duration::from_millis(50);

/// The connections of one listener.
pub(super) struct Room {
    most: usize,
    seats: Mutex<Seats>,
    left: Notify,
}

#[derive(Default)]
struct Seats {
    taken: HashMap<u64, Seat>,
    next: u64,
}

struct Seat {
    /// How many requests are being answered.
    asked: usize,
    quiet_since: Instant,
    leave: Arc<Notify>,
}

/// A connection that has a place until it is dropped.
pub(super) struct Guest {
    room: Arc<Room>,
    seat: u64,
    leave: Arc<Notify>,
}

/// A request that is being answered.
pub(super) struct Asking {
    guest: Arc<Guest>,
}

impl Room {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Room { most, seats: Mutex::default(), left: Notify::new() })
    }

    /// Takes a place, another connection's where need be. Waits where requests are being answered on all of them.
    pub async fn enter(self: &Arc<Self>) -> Arc<Guest> {
        loop {
            let left = self.left.notified();
            if let Some(guest) = self.try_enter() {
                return Arc::new(guest);
            }
            // Either way it is tried again.
            let _ = timeout(LOOK, left).await;
        }
    }

    fn try_enter(self: &Arc<Self>) -> Option<Guest> {
        let mut seats = self.seats();
        if seats.taken.len() >= self.most {
            let quiet = seats.taken.iter().filter(|(_, seat)| seat.asked == 0 && seat.quiet_since.elapsed() >= HEARD);
            let longest = quiet.min_by_key(|(_, seat)| seat.quiet_since).map(|(id, _)| *id)?;
            seats.taken.remove(&longest)?.leave.notify_one();
        }
        let (id, leave) = (seats.next, Arc::new(Notify::new()));
        seats.next += 1;
        seats.taken.insert(id, Seat { asked: 0, quiet_since: Instant::now(), leave: Arc::clone(&leave) });
        Some(Guest { room: Arc::clone(self), seat: id, leave })
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    /// Ready when the place was given to another connection.
    pub async fn told_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Keeps the place while a request is answered.
    pub fn asks(self: &Arc<Self>) -> Asking {
        if let Some(seat) = self.room.seats().taken.get_mut(&self.seat) {
            seat.asked += 1;
        }
        Asking { guest: Arc::clone(self) }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.room.seats().taken.remove(&self.seat);
        self.room.left.notify_one();
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let room = &self.guest.room;
        if let Some(seat) = room.seats().taken.get_mut(&self.guest.seat) {
            seat.asked = seat.asked.saturating_sub(1);
            seat.quiet_since = Instant::now();
        }
        // It can make place now.
        room.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn the_longest_quiet_makes_place_and_one_that_is_answered_does_not() {
        let room = Room::new(2);
        let first = room.enter().await;
        let second = room.enter().await;
        let asking = first.asks();
        assert!(timeout(HEARD / 2, room.enter()).await.is_err(), "one that was not heard yet was sent away");
        let third = timeout(SOON, room.enter()).await.map_err(drop).expect("the quiet one makes place");
        assert!(timeout(SOON, second.told_to_leave()).await.is_ok(), "it was not told");
        assert!(timeout(SOON, first.told_to_leave()).await.is_err(), "one that is answered was sent away");
        let busy = third.asks();
        assert!(timeout(SOON, room.enter()).await.is_err(), "there is no place");
        drop(second);
        assert!(timeout(SOON, room.enter()).await.is_err(), "a place that was given away was given away again");
        drop(asking);
        let _fourth = timeout(SOON, room.enter()).await.map_err(drop).expect("the first is quiet now");
        assert!(timeout(SOON, first.told_to_leave()).await.is_ok(), "it was not told");
        drop(busy);
    }

    #[tokio::test]
    async fn who_leaves_makes_place_for_who_waits() {
        let room = Room::new(1);
        let guest = room.enter().await;
        let asking = guest.asks();
        let waits = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.enter().await }
        });
        tokio::task::yield_now().await;
        drop(guest);
        drop(asking);
        assert!(timeout(SOON, waits).await.is_ok_and(|entered| entered.is_ok()), "nobody was let in");
    }
}
