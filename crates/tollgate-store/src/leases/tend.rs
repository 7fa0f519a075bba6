//! What is done beside requests: slices go back, and a store that has forgotten is told.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::time::MissedTickBehavior;

use super::{
    Leases,
    shard::{Keep, Sent},
};
use crate::{Charge, Holding, Slices};

/// Often enough that nothing idle is held for long, seldom enough to cost nothing.
const TICK: Duration = Duration::from_millis(100);

/// How many keys are given back in one call: enough to share its costs, few enough that the store
/// is not held up.
const PER_CALL: usize = 256;

/// How long a shutdown waits for draws under way.
const PATIENCE: Duration = Duration::from_secs(1);

impl<S: Slices> Leases<S> {
    /// Gives back what is idle or about to end, and tells the store what it may have forgotten.
    /// Never ends; without it slices expire unspent.
    pub async fn tend(&self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.shared.orphans.minded(ticks.tick()).await;
            self.tend_once().await;
        }
    }

    /// One round of [`Leases::tend`].
    pub async fn tend_once(&self) {
        self.shared.orphans.minded(self.reassert()).await;
        self.shared.orphans.minded(self.give_back(false)).await;
        self.shared.limits.tidy();
    }

    /// Gives everything back. From then on every request goes to the store.
    pub async fn close(&self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        let emptied = async {
            while self.give_back(true).await {
                // What is under way lands within the store's time-out; then it is given back too.
                tokio::time::sleep(TICK / 10).await;
            }
        };
        // Whoever does not come in time loses what it carries: it ends by itself.
        let _ = tokio::time::timeout(PATIENCE, self.shared.orphans.minded(emptied)).await;
    }

    /// Gives back what will not be spent, or all of it; true if something is still under way.
    async fn give_back(&self, all: bool) -> bool {
        let (mut sent, mut under_way) = (Vec::new(), false);
        let now = self.shared.clock.now();
        self.shared.shards.sweep(|spot, slot, ledger| {
            under_way |= slot.flight().is_some();
            if let Some(parcel) = slot.unpack(now, all, ledger) {
                sent.push(Sent { spot, parcel });
            }
            if slot.is_spent(now) { Keep::No } else { Keep::Yes }
        });
        let (newest, old): (Vec<_>, Vec<_>) =
            sent.into_iter().partition(|one| self.shared.limits.is_newest(&one.parcel.limit));
        self.delivered(&old, false);
        for some in newest.chunks(PER_CALL) {
            let holdings: Vec<_> = some.iter().map(holding).collect();
            let arrived = self.inner().put_back(&holdings).await.is_ok();
            self.delivered(some, arrived);
        }
        under_way
    }

    fn delivered(&self, sent: &[Sent], arrived: bool) {
        for one in sent {
            self.shared.shards.lock(one.spot).delivered(one, arrived);
            if let Some(flight) = &one.parcel.flight {
                flight.end(None);
            }
        }
    }

    /// Tells the store of levels and slices that it may have forgotten.
    async fn reassert(&self) {
        let epoch = self.inner().epoch();
        let mut forgotten = Vec::new();
        self.shared.shards.sweep(|spot, slot, _| {
            forgotten.extend(slot.forgotten(epoch).map(|parcel| Sent { spot, parcel }));
            Keep::Yes
        });
        for some in forgotten.chunks(PER_CALL) {
            let holdings: Vec<_> = some.iter().map(holding).collect();
            if self.inner().reassert(&holdings).await.is_err() {
                // It is told with the next round, or with the next draw.
                return;
            }
            for one in some {
                self.shared.shards.lock(one.spot).told(one.spot, epoch);
            }
        }
    }
}

fn holding(sent: &Sent) -> Holding<'_> {
    let parcel = &sent.parcel;
    let charge = Charge { limit: &parcel.limit, key: &parcel.key, cost: parcel.amount };
    Holding { charge, level: parcel.level }
}
