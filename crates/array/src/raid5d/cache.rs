//! The stripe cache.
//!
//! Stripes that nobody uses stay in it with what they hold until their place is
//! taken, the longest unused first. They lie in eight lists by their number's
//! remainder (`NR_STRIPE_HASH_LOCKS`), and a stripe's place never changes its
//! list; so who takes stripes one after the other finds none while seven eighths
//! of the lists still have some.
//!
//! Who finds none sleeps, and from then on nobody gets a free one until fewer than
//! three quarters are in use (`R5_INACTIVE_BLOCKED`). Each time this happens the
//! cache grows by one stripe (`R5_ALLOC_MORE`, `grow_one_stripe`). Who drops the
//! kernel's caches takes these away again (`raid5_cache_scan`); a shortage of memory,
//! which does so too, is not modelled.

use super::stripe::Stripe;
use std::collections::{BTreeMap, VecDeque};

/// `NR_STRIPE_HASH_LOCKS`.
const LISTS: usize = 8;

/// The largest cache that md takes (`raid5_set_cache_size`).
const MOST_STRIPES: u64 = 32_768;

/// All stripes, and the list of those that wait for the thread.
#[derive(Debug)]
pub(super) struct Cache {
    stripes: BTreeMap<u64, Stripe>,
    /// Places that are free, with the stripe that they hold, if any.
    free: [VecDeque<Option<u64>>; LISTS],
    active: u64,
    places: u64,
    /// What it began with.
    least_places: u64,
    is_blocked: bool,
    wants_more: bool,
    ready: VecDeque<(u64, u64)>,
    next_ticket: u64,
}

fn list_of(number: u64) -> usize {
    usize::try_from(number % LISTS as u64).unwrap_or(0)
}

impl Cache {
    pub(super) fn new(places: usize) -> Self {
        let mut cache = Self {
            stripes: BTreeMap::new(),
            free: Default::default(),
            active: 0,
            places: 0,
            least_places: places as u64,
            is_blocked: false,
            wants_more: false,
            ready: VecDeque::new(),
            next_ticket: 0,
        };
        for _ in 0..places {
            cache.add_place();
        }
        cache
    }

    fn add_place(&mut self) {
        self.free[list_of(self.places)].push_back(None);
        self.places += 1;
    }

    /// Takes a stripe, which is then held once more; false: there is no place.
    pub(super) fn acquire(&mut self, number: u64) -> bool {
        let list = list_of(number);
        if let Some(stripe) = self.stripes.get_mut(&number) {
            if !stripe.is_active {
                stripe.is_active = true;
                self.active += 1;
                self.free[list].retain(|held| *held != Some(number));
            }
            // It leaves the thread's list, to come back at its end.
            stripe.ticket = None;
            stripe.references += 1;
            return true;
        }
        if self.is_blocked {
            return false;
        }
        let Some(place) = self.free[list].pop_front() else {
            self.wants_more = true;
            self.is_blocked = true;
            return false;
        };
        if let Some(old) = place {
            self.stripes.remove(&old);
        }
        self.active += 1;
        let stripe = Stripe {
            references: 1,
            is_active: true,
            ..Stripe::default()
        };
        self.stripes.insert(number, stripe);
        true
    }

    /// Whether somebody who sleeps for this stripe wakes (`is_inactive_blocked`).
    pub(super) fn wakes(&self, number: u64) -> bool {
        !self.free[list_of(number)].is_empty()
            && (!self.is_blocked || self.active * 4 < self.places * 3)
    }

    /// Somebody woke.
    pub(super) const fn unblock(&mut self) {
        self.is_blocked = false;
    }

    pub(super) fn find(&self, number: u64) -> Option<&Stripe> {
        self.stripes.get(&number)
    }

    /// A stripe that is held.
    pub(super) fn stripe(&mut self, number: u64) -> &mut Stripe {
        self.stripes
            .get_mut(&number)
            .expect("who holds a stripe finds it")
    }

    /// Lets a stripe go: to the thread, or to the free ones.
    pub(super) fn release(&mut self, number: u64) {
        let ticket = self.next_ticket;
        let stripe = self.stripe(number);
        stripe.references -= 1;
        if stripe.references > 0 {
            return;
        }
        if stripe.wants_handling {
            stripe.ticket = Some(ticket);
            self.next_ticket += 1;
            self.ready.push_back((number, ticket));
        } else {
            stripe.is_active = false;
            self.active -= 1;
            self.free[list_of(number)].push_back(Some(number));
        }
    }

    /// The next one for the thread, which then holds it.
    pub(super) fn next_ready(&mut self) -> Option<u64> {
        while let Some((number, ticket)) = self.ready.pop_front() {
            let stripe = self.stripes.get_mut(&number);
            if let Some(stripe) = stripe.filter(|it| it.ticket == Some(ticket)) {
                stripe.ticket = None;
                stripe.references += 1;
                return Some(number);
            }
        }
        None
    }

    pub(super) fn has_ready(&self) -> bool {
        self.ready.iter().any(|(number, ticket)| {
            let stripe = self.stripes.get(number);
            stripe.is_some_and(|it| it.ticket == Some(*ticket))
        })
    }

    /// The thread has come to an end.
    pub(super) fn grow_if_wanted(&mut self) {
        if std::mem::take(&mut self.wants_more) && self.places < MOST_STRIPES {
            self.add_place();
        }
    }

    /// Takes away by what it has grown, as far as that is free
    /// (`drop_one_stripe`).
    pub(super) fn shrink(&mut self) {
        while self.places > self.least_places {
            let Some(place) = self.free[list_of(self.places - 1)].pop_front() else {
                return;
            };
            if let Some(old) = place {
                self.stripes.remove(&old);
            }
            self.places -= 1;
        }
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.active == 0
    }

    /// For tests: what is in use.
    #[cfg(test)]
    pub(super) fn active(&self) -> Vec<(&u64, &Stripe)> {
        let stripes = self.stripes.iter();
        stripes.filter(|(_, stripe)| stripe.is_active).collect()
    }

    /// What a member held is not known any more: another one has its slot.
    pub(super) fn forget(&mut self, slot: raidlab_geometry::Slot) {
        for stripe in self.stripes.values_mut() {
            stripe.fresh = stripe.fresh.without(slot);
            stripe.refused = stripe.refused.without(slot);
            stripe.rewritten = stripe.rewritten.without(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, LISTS};

    #[test]
    fn what_has_grown_is_taken_away_again() {
        let mut cache = Cache::new(LISTS);
        assert!(cache.acquire(0));
        assert!(!cache.acquire(8), "its list has one place");
        cache.grow_if_wanted();
        assert!(cache.wakes(8));
        cache.unblock();
        assert!(cache.acquire(8));
        cache.shrink();
        assert_eq!(cache.places, 9, "both are in use");
        cache.release(0);
        cache.shrink();
        cache.shrink();
        assert_eq!(cache.places, 8);
        assert!(cache.find(0).is_none() && cache.find(8).is_some());
    }
}
