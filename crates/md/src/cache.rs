//! The stripe cache.
//!
//! Stripes that are not in use stay in the cache with their blocks until their place is taken, the
//! longest unused first. They lie in eight lists by their number's remainder
//! (`NR_STRIPE_HASH_LOCKS`), and a stripe's place never changes its list; so a request that takes
//! stripes one after the other fails while seven eighths of the lists still have some.
//!
//! Stripes are looked up in a hash table of 512 chains, however many there are (`__find_stripe`).
//!
//! A process that finds no stripe sleeps, and from then on no process gets a free one until
//! fewer than three quarters are in use (`R5_INACTIVE_BLOCKED`). Each time this happens the
//! cache grows by one stripe (`R5_ALLOC_MORE`, `grow_one_stripe`). Dropping the kernel's caches
//! removes these again, though seldom at once (`raid5_cache_scan`); a shortage of memory, which
//! does so too, is not modelled.

use super::stripe::{Stripe, SyncStage};
use raidlab_array::{Mix, StripeWork};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// The number of lists of free places (`NR_STRIPE_HASH_LOCKS`). A list that begins without a place
/// would never get one.
pub(super) const LISTS: usize = 8;

/// The number of chains of the table in which stripes are looked up: a page of pointers
/// (`NR_HASH` in drivers/md/raid5.h).
const CHAINS: usize = 512;

/// The largest number of stripes that md takes (`raid5_set_cache_size`).
const MOST_STRIPES: u64 = 32_768;

/// The cost of reloading an object dropped from a cache, in seeks, as the kernel's shrinkers assume
/// (`DEFAULT_SEEKS` of include/linux/shrinker.h); md takes a multiple of it.
const DEFAULT_SEEKS: u64 = 2;

/// Stripes that md's shrinker is asked to free at a time (`conf->shrinker->batch`, which
/// `setup_conf` sets).
const SHRINK_BATCH: u64 = 128;

/// The stripe cache, with the list of stripes that wait for the thread.
#[derive(Debug)]
pub(super) struct Cache {
    /// The stripes by number; one that the thread is handling is with it.
    stripes: HashMap<u64, Option<Box<Stripe>>, BuildHasherDefault<Neighbours>>,
    /// The number of stripes in each chain of md's table.
    chains: Box<[u32]>,
    /// Free places, with the stripe that they still contain, if any.
    free: [VecDeque<Option<u64>>; LISTS],
    active: u64,
    places: u64,
    /// The number of places at the start; the cache never becomes smaller.
    least_places: u64,
    /// Places that earlier drops were to remove and did not (`nr_deferred`).
    owed: u64,
    is_blocked: bool,
    wants_more: bool,
    ready: VecDeque<(u64, u64)>,
    /// The number of entries of `ready` that still wait: the others have left the list.
    waiting: usize,
    next_ticket: u64,
    /// The work done on stripes since it was last taken.
    pub(super) work: StripeWork,
}

/// A hash of stripes' numbers under which 64 of them in a row lie side by side: a stream or a sync,
/// which has tens of thousands of them in work, finds the next one in the processor's own cache.
#[derive(Debug, Default)]
struct Neighbours(u64);

impl Hasher for Neighbours {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mut row = Mix::default();
        row.write_u64(self.0 ^ (number / 64));
        // Tables take their place by the lowest bits, and tell entries of a place apart by the
        // seven highest.
        let row = (row.finish() & !63) & (u64::MAX >> 7);
        self.0 = row | (number % 64) | (number << 57);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn list_of(number: u64) -> usize {
    usize::try_from(number % LISTS as u64).unwrap_or(0)
}

fn chain_of(number: u64) -> usize {
    usize::try_from(number % CHAINS as u64).unwrap_or(0)
}

impl Cache {
    pub(super) fn new(places: usize) -> Self {
        let mut cache = Self {
            stripes: HashMap::default(),
            chains: vec![0; CHAINS].into(),
            free: Default::default(),
            active: 0,
            places: 0,
            least_places: places as u64,
            owed: 0,
            is_blocked: false,
            wants_more: false,
            ready: VecDeque::new(),
            waiting: 0,
            next_ticket: 0,
            work: StripeWork::default(),
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

    /// Takes a reference to a stripe; returns false if there is no place for it.
    pub(super) fn acquire(&mut self, number: u64) -> bool {
        let list = list_of(number);
        let chain = self.chains[chain_of(number)];
        self.work.found += 1;
        if let Some(Some(stripe)) = self.stripes.get_mut(&number) {
            // On average the stripe is found half way through its chain.
            self.work.chained += chain.div_ceil(2);
            if !stripe.is_active {
                stripe.is_active = true;
                self.active += 1;
                self.free[list].retain(|held| *held != Some(number));
            }
            // The stripe leaves the thread's list, and returns at its end.
            self.waiting -= usize::from(stripe.ticket.take().is_some());
            stripe.references += 1;
            return true;
        }
        self.work.chained += chain;
        if self.is_blocked {
            return false;
        }
        let Some(place) = self.free[list].pop_front() else {
            self.wants_more = true;
            self.is_blocked = true;
            return false;
        };
        let mut stripe = place.and_then(|old| self.remove(old)).unwrap_or_default();
        self.active += 1;
        *stripe = Stripe {
            references: 1,
            is_active: true,
            ..Stripe::default()
        };
        self.stripes.insert(number, Some(stripe));
        self.chains[chain_of(number)] += 1;
        true
    }

    /// Forgets a stripe; returns its memory.
    fn remove(&mut self, number: u64) -> Option<Box<Stripe>> {
        let stripe = self.stripes.remove(&number)?;
        self.chains[chain_of(number)] -= 1;
        stripe
    }

    /// Whether a process that sleeps for this stripe wakes (`is_inactive_blocked`).
    pub(super) fn wakes(&self, number: u64) -> bool {
        !self.free[list_of(number)].is_empty()
            && (!self.is_blocked || self.active * 4 < self.places * 3)
    }

    /// Allows free stripes to be taken again, once a process that slept for one woke.
    pub(super) const fn unblock(&mut self) {
        self.is_blocked = false;
    }

    pub(super) fn find(&self, number: u64) -> Option<&Stripe> {
        self.stripes.get(&number)?.as_deref()
    }

    /// Returns a stripe that is in the cache.
    pub(super) fn stripe(&mut self, number: u64) -> &mut Stripe {
        let stripe = self.stripes.get_mut(&number);
        stripe
            .and_then(Option::as_deref_mut)
            .expect("who holds a stripe finds it")
    }

    /// Takes out a stripe that is in the cache, to be handled.
    pub(super) fn take(&mut self, number: u64) -> Box<Stripe> {
        let stripe = self.stripes.get_mut(&number);
        stripe
            .and_then(Option::take)
            .expect("who holds a stripe finds it")
    }

    /// Puts back a stripe that was taken out.
    pub(super) fn put_back(&mut self, number: u64, stripe: Box<Stripe>) {
        self.stripes.insert(number, Some(stripe));
    }

    /// Drops a reference to a stripe; after the last one it goes to the thread or to the free ones.
    pub(super) fn release(&mut self, number: u64) {
        let ticket = self.next_ticket;
        let stripe = self.stripe(number);
        stripe.references -= 1;
        if stripe.references > 0 {
            return;
        }
        // `do_release_stripe`: a sync may have requested it while it was in a batch.
        if stripe.wants_handling || stripe.sync == SyncStage::Requested {
            stripe.ticket = Some(ticket);
            self.work.released += 1;
            self.next_ticket += 1;
            self.waiting += 1;
            self.ready.push_back((number, ticket));
        } else {
            stripe.is_active = false;
            self.active -= 1;
            self.work.freed += 1;
            self.free[list_of(number)].push_back(Some(number));
        }
    }

    /// Returns the next stripe for the thread, with a reference to it.
    pub(super) fn next_ready(&mut self) -> Option<u64> {
        while let Some((number, ticket)) = self.ready.pop_front() {
            if let Some(Some(stripe)) = self.stripes.get_mut(&number)
                && stripe.ticket == Some(ticket)
            {
                stripe.ticket = None;
                stripe.references += 1;
                self.waiting -= 1;
                return Some(number);
            }
        }
        None
    }

    pub(super) const fn has_ready(&self) -> bool {
        self.waiting > 0
    }

    /// Adds a place if one is wanted, at the end of the thread's run.
    pub(super) fn grow_if_wanted(&mut self) {
        if std::mem::take(&mut self.wants_more) && self.places < MOST_STRIPES {
            self.add_place();
        }
    }

    /// Returns the number of stripes in use at the moment.
    pub(super) const fn in_use(&self) -> u64 {
        self.active
    }

    pub(super) const fn places(&self) -> u64 {
        self.places
    }

    /// Grows the cache for a sync that leapt over `leapt` stripes, at the rate of the `seen`
    /// stripes before, during which the cache grew from `before` places. A place is added each time
    /// the sync has used up the free ones, a share of all places; so the square of the number of
    /// places grows evenly.
    pub(super) fn grow_unseen(&mut self, before: u64, seen: u64, leapt: u64) {
        let square = |number: u64| u128::from(number) * u128::from(number);
        let grown = square(self.places) - square(before.min(self.places));
        let unseen = grown * u128::from(leapt) / u128::from(seen.max(1));
        let places = (square(self.places) + unseen).isqrt();
        let places = u64::try_from(places).unwrap_or(MOST_STRIPES);
        while self.places < places.min(MOST_STRIPES) {
            self.add_place();
        }
    }

    /// Drops the kernel's caches (`drop_slab`): pass after pass, the second one because of what
    /// others have freed in the first, more as long as enough is freed.
    pub(super) fn drop_caches(&mut self, members: usize) {
        let mut shift = 0;
        loop {
            let freed = self.shrinker_pass(members);
            if shift > 0 && freed >> shift <= 1 {
                return;
            }
            shift += 1;
        }
    }

    /// Runs one pass of the shrinker. A cache with few removable places defers them until there are
    /// enough (`do_shrink_slab`, with the numbers of md's `setup_conf`).
    fn shrinker_pass(&mut self, members: usize) -> u64 {
        let freeable = self.places - self.least_places;
        if freeable == 0 {
            return 0;
        }
        let seeks = DEFAULT_SEEKS * 4 * members as u64;
        let owed = self.owed + freeable * 4 / seeks;
        let mut due = owed.min(2 * freeable);
        let (mut scanned, mut freed) = (0, 0);
        while due >= SHRINK_BATCH || due >= freeable {
            let batch = due.min(SHRINK_BATCH);
            freed += self.shrink(batch);
            scanned += batch;
            due -= batch;
        }
        self.owed = owed.saturating_sub(scanned).min(2 * freeable);
        freed
    }

    /// Removes up to `most` of the places by which the cache has grown, if they
    /// are free (`drop_one_stripe`).
    fn shrink(&mut self, most: u64) -> u64 {
        let mut taken = 0;
        while self.places > self.least_places && taken < most {
            let Some(place) = self.free[list_of(self.places - 1)].pop_front() else {
                break;
            };
            place.and_then(|old| self.remove(old));
            self.places -= 1;
            taken += 1;
        }
        taken
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.active == 0
    }

    /// Returns the stripes in use, for tests.
    #[cfg(test)]
    pub(super) fn active(&self) -> Vec<(&u64, &Stripe)> {
        let stripes = self.stripes.iter();
        let held = stripes.filter_map(|(number, stripe)| Some((number, stripe.as_deref()?)));
        held.filter(|(_, stripe)| stripe.is_active).collect()
    }

    /// Forgets the blocks of a slot's member, as another one has its slot.
    pub(super) fn forget(&mut self, slot: raidlab_geometry::Slot) {
        for stripe in self.stripes.values_mut().flatten() {
            stripe.fresh = stripe.fresh.without(slot);
            stripe.refused = stripe.refused.without(slot);
            stripe.rewritten = stripe.rewritten.without(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, LISTS};

    fn grown(by: u64) -> Cache {
        let mut cache = Cache::new(LISTS);
        for _ in 0..by {
            cache.wants_more = true;
            cache.grow_if_wanted();
        }
        assert_eq!(cache.places, LISTS as u64 + by);
        cache
    }

    /// Linux drivers/md/raid5.c, `__find_stripe`, with a table of 512 chains (`NR_HASH`): a
    /// stripe that is not there is looked for in all of its chain.
    #[test]
    fn a_lookup_goes_through_a_chain() {
        let mut cache = Cache::new(4 * super::CHAINS);
        let mut passed = |number| {
            cache.work.chained = 0;
            assert!(cache.acquire(number));
            cache.work.chained
        };
        assert_eq!([0, 512, 1024, 1].map(&mut passed), [0, 1, 2, 0]);
        assert_eq!(passed(512), 2, "half of three");
        let mut cache = Cache::new(LISTS);
        for number in [0, 512, 1024] {
            assert!(cache.acquire(number), "the place of the one before");
            cache.release(number);
        }
        assert_eq!((cache.work.chained, cache.chains[0]), (2, 1));
    }

    /// From 200 to 256 places over 1000 stripes: 56 x 456 of the square; over 10,000 more
    /// ten times as much.
    #[test]
    fn what_a_leap_passes_over_makes_the_cache_grow_as_before() {
        let mut cache = grown(248);
        cache.grow_unseen(200, 1000, 10_000);
        assert_eq!(cache.places, 566);
        cache.grow_unseen(566, 1000, 10_000);
        assert_eq!(cache.places, 566, "it did not grow in what was seen");
        cache.grow_unseen(500, 1, u64::from(u32::MAX));
        assert_eq!(cache.places, super::MOST_STRIPES);
    }

    /// Of 16 places a pass over four members owes 16 x 4 / 32, and a drop makes two.
    #[test]
    fn what_has_grown_is_taken_away_when_enough_is_owed() {
        let mut cache = grown(16);
        for _ in 0..3 {
            cache.drop_caches(4);
            assert_eq!(cache.places, 24);
        }
        cache.drop_caches(4);
        assert_eq!(cache.places, 8);
    }

    #[test]
    fn a_few_places_are_never_missed() {
        let mut cache = grown(7);
        for _ in 0..100 {
            cache.drop_caches(4);
        }
        assert_eq!(cache.places, 15);
    }

    #[test]
    fn what_is_in_use_stays() {
        let mut cache = grown(2000);
        for number in 0..16 {
            assert!(cache.acquire(number));
        }
        for _ in 0..200 {
            cache.drop_caches(4);
        }
        assert!((16..24).contains(&cache.places), "{}", cache.places);
        assert_eq!(cache.active().len(), 16);
        cache.release(0);
        assert!(cache.find(0).is_some(), "it is free, and not forgotten");
    }
}
