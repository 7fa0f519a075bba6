//! Was there ever one too many? Told from what clients saw.
//!
//! Of each admitted request a client knows when it was sent and when it was answered; the store
//! decided somewhere between the two. A window in which more than the limit were *wholly* inside
//! is a real violation, whatever the clocks and the network did in between: nothing else is
//! counted, so the checker never accuses wrongly.

use std::time::Duration;

use tollgate_core::{Rate, Time};

/// One admitted request, as its client saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// When it was sent.
    pub sent: Time,
    /// When its answer had come.
    pub answered: Time,
    /// What it took.
    pub cost: u64,
}

impl Admission {
    /// An admission decided at one known instant, as in virtual time.
    pub const fn at(time: Time, cost: u64) -> Self {
        Self { sent: time, answered: time, cost }
    }
}

/// A span of time in which too much was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// Where the span begins.
    pub from: Time,
    /// How long it is.
    pub span: Duration,
    /// How much was admitted in it.
    pub admitted: u64,
    /// How much may be.
    pub allowed: u64,
}

/// Looks for a window `[t, t + window)` with more than `limit` wholly inside.
pub fn check_window(
    admissions: &[Admission],
    window: Duration,
    limit: u64,
) -> Result<(), Violation> {
    let mut by_sent: Vec<_> = admissions.to_vec();
    by_sent.sort_by_key(|one| one.sent);
    let mut by_answered: Vec<_> = (0..by_sent.len()).collect();
    by_answered.sort_by_key(|at| by_sent[*at].answered);
    let (mut entered, mut inside) = (0, 0_u64);
    for (first, from) in by_sent.iter().enumerate() {
        let end = from.sent.after(window);
        while let Some(at) = by_answered.get(entered).filter(|at| by_sent[**at].answered < end) {
            // What was sent before this window began is not wholly inside it.
            if *at >= first {
                inside += by_sent[*at].cost;
            }
            entered += 1;
        }
        if inside > limit {
            return Err(Violation {
                from: from.sent,
                span: window,
                admitted: inside,
                allowed: limit,
            });
        }
        if from.answered < end {
            inside -= from.cost;
        }
    }
    Ok(())
}

/// Looks for a span in which more than `burst + rate × span` were wholly inside.
///
/// Slow and obvious: every start with every end, so give it a few thousand admissions at most.
pub fn check_bucket(admissions: &[Admission], rate: Rate, burst: u64) -> Result<(), Violation> {
    let mut by_answered: Vec<_> = admissions.to_vec();
    by_answered.sort_by_key(|one| one.answered);
    for from in admissions.iter().map(|one| one.sent) {
        let mut admitted = 0;
        for one in by_answered.iter().filter(|one| one.sent >= from) {
            admitted += one.cost;
            let span = one.answered.since(from);
            let flowed =
                span.as_micros() * u128::from(rate.count) / u128::from(rate.period_micros());
            let allowed = burst + u64::try_from(flowed).unwrap_or(u64::MAX - burst);
            if admitted > allowed {
                return Err(Violation { from, span, admitted, allowed });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tollgate_core::Unit;

    use super::*;

    fn admission(sent: u64, answered: u64) -> Admission {
        Admission { sent: Time::from_micros(sent), answered: Time::from_micros(answered), cost: 1 }
    }

    #[test]
    fn only_what_is_wholly_inside_a_window_counts() {
        let window = Duration::from_micros(10);
        let across = [admission(0, 3), admission(4, 5), admission(9, 14)];
        assert_eq!(check_window(&across, window, 2), Ok(()));
        let inside = [admission(0, 3), admission(4, 5), admission(6, 9)];
        let violation = check_window(&inside, window, 2).unwrap_err();
        assert_eq!((violation.from, violation.admitted), (Time::ZERO, 3));
    }

    #[test]
    fn the_window_check_finds_what_trying_every_start_finds() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let admissions: Vec<_> = (0..12)
                .map(|_| {
                    let sent = random(40);
                    admission(sent, sent + random(8))
                })
                .collect();
            let limit = 1 + random(6);
            let slow = (0..40).any(|from| {
                let wholly = admissions.iter().filter(|one| {
                    one.sent.as_micros() >= from && one.answered.as_micros() < from + 10
                });
                wholly.count() as u64 > limit
            });
            let found = check_window(&admissions, Duration::from_micros(10), limit).is_err();
            assert_eq!(found, slow, "{admissions:?} limit {limit}");
        }
    }

    #[test]
    fn a_bucket_may_give_its_burst_and_what_flows_in_but_no_more() {
        let rate = Rate::per(1, Unit::Second);
        let at = |seconds| Admission::at(Time::from_secs(seconds), 1);
        assert_eq!(check_bucket(&[at(0), at(0), at(1)], rate, 2), Ok(()));
        assert!(check_bucket(&[at(0), at(0), at(0)], rate, 2).is_err());
        assert!(check_bucket(&[at(0), at(0), at(1), at(1)], rate, 2).is_err());
    }
}
