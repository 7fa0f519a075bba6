//! What every store must do, whichever it is.
//!
//! A store under test comes with a way to let its time pass. All cases use keys of their own and
//! periods of a second or less, so that a store whose clock cannot be moved can be waited for.

use std::{sync::Arc, time::Duration};

use tollgate_core::{Decision, Limit, Patience, Rate, Unit, Wait};
use tollgate_store::{Charge, Mode, NamedLimit, Store, Take};

/// A store and its time.
pub trait Subject {
    /// The store under test.
    fn store(&self) -> Arc<dyn Store>;

    /// Lets this much time pass for the store.
    fn pass(&self, time: Duration) -> impl Future<Output = ()>;

    /// How the limits are decided.
    fn mode(&self) -> Mode {
        Mode::Exact
    }
}

/// Runs every case.
pub async fn check<S: Subject>(subject: &S) {
    Case::new(subject, "new key").a_new_key_is_full().await;
    Case::new(subject, "refusal").a_refusal_takes_nothing().await;
    Case::new(subject, "several").several_limits_take_all_or_nothing().await;
    Case::new(subject, "twice").the_same_key_twice_in_a_request_counts_twice().await;
    Case::new(subject, "look").a_look_changes_nothing().await;
    Case::new(subject, "refund").a_refund_never_exceeds_what_was_taken().await;
    Case::new(subject, "reset").a_reset_key_is_new().await;
    Case::new(subject, "apart").keys_and_policies_are_apart().await;
    Case::new(subject, "never").a_cost_above_the_capacity_never_passes().await;
    Case::new(subject, "zero").a_limit_of_zero_refuses_everything().await;
    Case::new(subject, "honest").whoever_waits_as_told_is_admitted().await;
    Case::new(subject, "turns").patient_callers_get_turns_in_order().await;
    Case::new(subject, "places").places_in_flight_come_back().await;
    Case::new(subject, "changed").levels_survive_a_change_of_numbers().await;
    Case::new(subject, "charged").refusals_are_charged_where_asked().await;
    Case::new(subject, "odd keys").any_bytes_are_a_key().await;
}

struct Case<'a, S> {
    subject: &'a S,
    name: &'static str,
}

impl<'a, S: Subject> Case<'a, S> {
    const fn new(subject: &'a S, name: &'static str) -> Self {
        Self { subject, name }
    }

    fn limit(&self, position: usize, limit: Limit) -> NamedLimit {
        let policy = format!("contract {}", self.name);
        NamedLimit::new(policy, position, limit).in_mode(self.subject.mode())
    }

    /// Every algorithm with a capacity of three and a period of a second.
    fn threes(&self) -> Vec<NamedLimit> {
        let rate = Rate::per(3, Unit::Second);
        let limits = [
            Limit::token_bucket(rate, 3),
            Limit::leaky_bucket(rate, 3),
            Limit::fixed_window(rate),
            Limit::sliding_log(rate),
            Limit::sliding_counter(rate),
            Limit::sliding_window(rate),
            Limit::concurrency(3, Duration::from_secs(1)),
        ];
        limits.into_iter().enumerate().map(|(at, limit)| self.limit(at, limit.unwrap())).collect()
    }

    async fn take(&self, limit: &NamedLimit, key: &str, cost: u64) -> Decision {
        let charge = Charge { limit, key: key.as_bytes(), cost };
        self.subject.store().take(Take::now(&[charge])).await.unwrap()
    }

    /// To the beginning of a second, so that no window ends within a case.
    async fn align(&self) {
        let into = self.subject.store().now().as_micros() % 1_000_000;
        self.subject.pass(Duration::from_micros(1_000_000 - into)).await;
    }

    async fn a_new_key_is_full(&self) {
        for limit in &self.threes() {
            self.align().await;
            for remaining in [2, 1, 0] {
                let decision = self.take(limit, "ann", 1).await;
                assert!(decision.allowed, "{limit:?}");
                assert_eq!((decision.limit, decision.remaining), (3, remaining), "{limit:?}");
            }
            assert!(!self.take(limit, "ann", 1).await.allowed, "{limit:?}");
        }
    }

    async fn a_refusal_takes_nothing(&self) {
        for limit in &self.threes() {
            self.align().await;
            assert!(self.take(limit, "ann", 2).await.allowed);
            for _ in 0..5 {
                assert!(!self.take(limit, "ann", 2).await.allowed, "{limit:?}");
            }
            assert!(self.take(limit, "ann", 1).await.allowed, "{limit:?}");
        }
    }

    async fn several_limits_take_all_or_nothing(&self) {
        let wide = self.limit(0, Limit::token_bucket(Rate::per(1, Unit::Hour), 10).unwrap());
        let narrow = self.limit(1, Limit::fixed_window(Rate::per(2, Unit::Year)).unwrap());
        let charge = |limit, key: &'static str| Charge { limit, key: key.as_bytes(), cost: 1 };
        let charges = [charge(&wide, "everybody"), charge(&narrow, "ann")];
        for allowed in [true, true, false, false, false] {
            let decision = self.subject.store().take(Take::now(&charges)).await.unwrap();
            assert_eq!(decision.allowed, allowed);
            // The narrow one has least left, and refuses.
            assert_eq!(decision.shown, 1);
        }
        assert_eq!(self.take(&wide, "everybody", 0).await.remaining, 8);
    }

    async fn the_same_key_twice_in_a_request_counts_twice(&self) {
        let limit = self.limit(0, Limit::token_bucket(Rate::per(1, Unit::Hour), 3).unwrap());
        let charge = Charge { limit: &limit, key: b"ann", cost: 1 };
        let twice = [charge, charge];
        assert!(self.subject.store().take(Take::now(&twice)).await.unwrap().allowed);
        assert!(!self.subject.store().take(Take::now(&twice)).await.unwrap().allowed);
        assert_eq!(self.take(&limit, "ann", 0).await.remaining, 1);
    }

    async fn a_look_changes_nothing(&self) {
        for limit in &self.threes() {
            self.align().await;
            self.take(limit, "ann", 1).await;
            for _ in 0..10 {
                let look = self.take(limit, "ann", 0).await;
                assert_eq!((look.allowed, look.remaining), (true, 2), "{limit:?}");
            }
            self.take(limit, "ann", 2).await;
            let look = self.take(limit, "ann", 0).await;
            assert_eq!((look.allowed, look.remaining), (false, 0), "{limit:?}");
            assert!(look.retry_after > Wait::ZERO, "{limit:?}");
        }
    }

    async fn a_refund_never_exceeds_what_was_taken(&self) {
        for limit in &self.threes() {
            self.align().await;
            self.take(limit, "ann", 2).await;
            let refund = |cost| {
                let subject = self.subject.store();
                async move { subject.refund(&[Charge { limit, key: b"ann", cost }]).await.unwrap() }
            };
            assert_eq!(refund(1).await.remaining, 2, "{limit:?}");
            assert_eq!(refund(1_000).await.remaining, 3, "{limit:?}");
            assert_eq!(refund(1_000).await.remaining, 3, "{limit:?}");
            assert!(!self.take(limit, "ann", 4).await.allowed, "{limit:?}");
        }
    }

    async fn a_reset_key_is_new(&self) {
        for limit in &self.threes() {
            self.align().await;
            self.take(limit, "ann", 3).await;
            let charge = Charge { limit, key: b"ann", cost: 0 };
            self.subject.store().reset(&[charge]).await.unwrap();
            assert_eq!(self.take(limit, "ann", 1).await.remaining, 2, "{limit:?}");
        }
    }

    async fn keys_and_policies_are_apart(&self) {
        for limit in &self.threes() {
            self.align().await;
            self.take(limit, "ann", 3).await;
            assert_eq!(self.take(limit, "bob", 1).await.remaining, 2, "{limit:?}");
            let other =
                NamedLimit::new("contract another policy", limit.position(), *limit.limit());
            assert_eq!(self.take(&other, "ann", 1).await.remaining, 2, "{limit:?}");
            self.subject
                .store()
                .reset(&[Charge { limit: &other, key: b"ann", cost: 0 }])
                .await
                .unwrap();
        }
    }

    async fn a_cost_above_the_capacity_never_passes(&self) {
        for limit in &self.threes() {
            let decision = self.take(limit, "ann", 4).await;
            assert_eq!((decision.allowed, decision.retry_after), (false, Wait::Never), "{limit:?}");
            assert_eq!(decision.remaining, 3, "{limit:?}");
        }
    }

    async fn a_limit_of_zero_refuses_everything(&self) {
        let none = Rate::per(0, Unit::Second);
        let limits = [
            Limit::token_bucket(none, 5),
            Limit::token_bucket(Rate::per(5, Unit::Second), 0),
            Limit::leaky_bucket(none, 5),
            Limit::fixed_window(none),
            Limit::sliding_log(none),
            Limit::sliding_counter(none),
            Limit::sliding_window(none),
            Limit::concurrency(0, Duration::from_secs(1)),
        ];
        for (at, limit) in limits.into_iter().enumerate() {
            let limit = self.limit(at, limit.unwrap());
            let decision = self.take(&limit, "ann", 1).await;
            assert_eq!((decision.allowed, decision.remaining), (false, 0), "{limit:?}");
            assert_eq!(decision.retry_after, Wait::Never, "{limit:?}");
        }
    }

    async fn whoever_waits_as_told_is_admitted(&self) {
        for limit in &self.threes() {
            self.align().await;
            self.take(limit, "ann", 3).await;
            let told = self.take(limit, "ann", 2).await.retry_after.duration().unwrap();
            self.subject.pass(told).await;
            assert!(self.take(limit, "ann", 2).await.allowed, "{limit:?} after {told:?}");
        }
    }

    async fn patient_callers_get_turns_in_order(&self) {
        for limit in &self.threes() {
            self.align().await;
            let charges = [Charge { limit, key: b"ann", cost: 1 }];
            let patient = Take { patience: Patience::Micros(10_000_000), ..Take::now(&charges) };
            let mut turn = Duration::ZERO;
            for _ in 0..3 {
                let decision = self.subject.store().take(patient).await.unwrap();
                assert!(decision.allowed && decision.wait >= turn, "{limit:?}");
                turn = decision.wait;
            }
            let hurried = Take { patience: Patience::Micros(1), ..patient };
            assert!(!self.subject.store().take(hurried).await.unwrap().allowed, "{limit:?}");
        }
    }

    async fn places_in_flight_come_back(&self) {
        let limit = self.limit(0, Limit::concurrency(1, Duration::from_millis(500)).unwrap());
        let charges = [Charge { limit: &limit, key: b"ann", cost: 1 }];
        let take = |lease| {
            let store = self.subject.store();
            async move { store.take(Take { lease, ..Take::now(&charges) }).await.unwrap().allowed }
        };
        assert!(take(1).await && !take(2).await);
        // Somebody else's name frees nothing.
        self.subject.store().release(&charges, 2).await.unwrap();
        assert!(!take(3).await);
        self.subject.store().release(&charges, 1).await.unwrap();
        assert!(take(4).await);
        // And a holder that died loses its place in time.
        assert!(!take(5).await);
        self.subject.pass(Duration::from_millis(500)).await;
        assert!(take(6).await);
    }

    async fn levels_survive_a_change_of_numbers(&self) {
        let hour = |count| Rate::per(count, Unit::Hour);
        let pairs = [
            (Limit::token_bucket(hour(4), 4), Limit::token_bucket(hour(8), 8)),
            (Limit::leaky_bucket(hour(4), 4), Limit::leaky_bucket(hour(8), 8)),
            (Limit::fixed_window(hour(4)), Limit::fixed_window(hour(8))),
            (Limit::sliding_log(hour(4)), Limit::sliding_log(hour(8))),
            (Limit::sliding_counter(hour(4)), Limit::sliding_counter(hour(8))),
            (Limit::sliding_window(hour(4)), Limit::sliding_window(hour(8))),
        ];
        for (at, (old, new)) in pairs.into_iter().enumerate() {
            let old = self.limit(at, old.unwrap());
            self.take(&old, "ann", 3).await;
            let now = self.subject.store().now();
            let new = self.limit(at, new.unwrap()).succeeding(&old, now);
            assert_eq!(self.take(&new, "ann", 0).await.remaining, 2, "{new:?}");
            assert_eq!(self.take(&new, "bob", 0).await.remaining, 8, "{new:?}");
            // And back again: nothing is won by changing to and fro.
            let back = self.limit(at, *old.limit()).succeeding(&new, now);
            assert_eq!(self.take(&back, "ann", 0).await.remaining, 1, "{back:?}");
        }
    }

    async fn refusals_are_charged_where_asked(&self) {
        for limit in self.threes().into_iter().take(6) {
            self.align().await;
            let limit = limit.counting_refused(true);
            assert!(self.take(&limit, "ann", 2).await.allowed);
            assert!(!self.take(&limit, "ann", 2).await.allowed, "{limit:?}");
            assert!(!self.take(&limit, "ann", 1).await.allowed, "{limit:?}");
        }
        // And only there: of two limits the one that did not ask for it loses nothing.
        let hour = |at: usize, count| {
            self.limit(10 + at, Limit::token_bucket(Rate::per(count, Unit::Hour), count).unwrap())
        };
        let (strict, mild, full) = (hour(0, 5).counting_refused(true), hour(1, 5), hour(2, 1));
        let charge = |limit| Charge { limit, key: b"ann", cost: 1 };
        self.take(&full, "ann", 1).await;
        let all = [charge(&strict), charge(&mild), charge(&full)];
        assert!(!self.subject.store().take(Take::now(&all)).await.unwrap().allowed);
        assert_eq!(self.take(&strict, "ann", 0).await.remaining, 4);
        assert_eq!(self.take(&mild, "ann", 0).await.remaining, 5);
    }

    async fn any_bytes_are_a_key(&self) {
        let limit = self.limit(0, Limit::token_bucket(Rate::per(1, Unit::Hour), 2).unwrap());
        let long = vec![b'x'; 4_096];
        let keys: [&[u8]; 6] = [b"", b"\0", b"\xff\xfe", b"a:b", b"{a}b", &long];
        for key in keys {
            let charge = [Charge { limit: &limit, key, cost: 1 }];
            let decision = self.subject.store().take(Take::now(&charge)).await.unwrap();
            assert_eq!(decision.remaining, 1, "{key:?}");
        }
    }
}
