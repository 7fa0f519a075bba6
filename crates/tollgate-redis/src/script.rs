//! The text that Redis runs, put together from the parts that a call needs.
//!
//! Every function that a script defines costs time at each call, so a call gets no more than the
//! algorithms it asks for. There are few combinations; each is put together once and kept.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use sha1_smol::Sha1;

const REDIS_TIME: &str = include_str!("scripts/redis_time.lua");
const ARITHMETIC: &str = include_str!("scripts/arithmetic.lua");
const CARRIED: &str = include_str!("scripts/carried.lua");
const UNUSUAL: &str = include_str!("scripts/unusual.lua");
const EXPIRY: &str = include_str!("scripts/expiry.lua");
const BUCKET: &str = include_str!("scripts/bucket.lua");
const TAKE: &str = include_str!("scripts/take.lua");
const REQUESTS_HEAD: &str = include_str!("scripts/requests_head.lua");
const REQUESTS_TAIL: &str = include_str!("scripts/requests_tail.lua");
const SLICES: &str = include_str!("scripts/slices.lua");

/// What every script begins with.
const FIRST: &str =
    "local call, try, floor, format = redis.call, redis.pcall, math.floor, string.format";

/// Where [`UNUSUAL`] has room for what nothing else needs, so that it is not defined in vain.
const COLD: &str = "--cold--";

/// A script and the name that Redis knows it by.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// What `SCRIPT LOAD` answers.
    pub(crate) sha1: Box<str>,
    /// What is loaded.
    pub(crate) text: Box<str>,
}

/// Where a script has the time from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The server's own clock.
    RedisTime,
    /// Microseconds since the epoch, under this key: for tests in a time of their own.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests only"))]
    Key(String),
}

/// A kind of limit as the scripts tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A bucket whose sums a double holds exactly.
    Narrow,
    /// A bucket whose sums need two.
    Wide,
    FixedWindow,
    SlidingCounter,
    SlidingLog,
    SlidingWindow,
    Concurrency,
}

/// Which parts a script is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Parts {
    /// Only takes of one bucket each.
    Takes,
    /// Everything else.
    Requests {
        /// The kinds of limits, a bit for each.
        kinds: u8,
        /// Whether slices are asked for.
        slices: bool,
    },
}

/// All scripts that were needed so far.
#[derive(Debug)]
pub(crate) struct Scripts {
    clock: String,
    /// Needed most, and so found without a lock.
    takes: OnceLock<Arc<Script>>,
    made: Mutex<HashMap<Parts, Arc<Script>>>,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Narrow,
        Self::Wide,
        Self::FixedWindow,
        Self::SlidingCounter,
        Self::SlidingLog,
        Self::SlidingWindow,
        Self::Concurrency,
    ];

    /// Its name in the scripts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Narrow => "narrow",
            Self::Wide => "wide",
            Self::FixedWindow => "fixed_window",
            Self::SlidingCounter => "sliding_counter",
            Self::SlidingLog => "sliding_log",
            Self::SlidingWindow => "sliding_window",
            Self::Concurrency => "concurrency",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Narrow => include_str!("scripts/narrow.lua"),
            Self::Wide => include_str!("scripts/wide.lua"),
            Self::FixedWindow => include_str!("scripts/fixed_window.lua"),
            Self::SlidingCounter => include_str!("scripts/sliding_counter.lua"),
            Self::SlidingLog => include_str!("scripts/sliding_log.lua"),
            Self::SlidingWindow => include_str!("scripts/sliding_window.lua"),
            Self::Concurrency => include_str!("scripts/concurrency.lua"),
        }
    }

    /// Its bit in [`Parts::Requests`].
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Scripts {
    /// No script yet; all will have the time from `clock`.
    pub(crate) fn new(clock: &Clock) -> Self {
        let clock = match clock {
            Clock::RedisTime => REDIS_TIME.to_owned(),
            Clock::Key(name) => format!("local now = tonumber(redis.call('GET', '{name}'))\n"),
        };
        Self { clock, takes: OnceLock::new(), made: Mutex::default() }
    }

    /// The script of these parts.
    pub(crate) fn of(&self, parts: Parts) -> Arc<Script> {
        if parts == Parts::Takes {
            return Arc::clone(self.takes.get_or_init(|| Arc::new(self.make(parts))));
        }
        let mut made = self.made.lock();
        let script = made.entry(parts).or_insert_with(|| Arc::new(self.make(parts)));
        Arc::clone(script)
    }

    fn make(&self, parts: Parts) -> Script {
        let mut texts = vec![FIRST, &*self.clock];
        let unusual = UNUSUAL.replace(COLD, &[ARITHMETIC, CARRIED].join("\n"));
        match parts {
            Parts::Takes => texts.extend([&*unusual, BUCKET, TAKE]),
            Parts::Requests { kinds, slices } => {
                texts.extend([ARITHMETIC, EXPIRY, CARRIED]);
                if kinds & Kind::Narrow.bit() > 0 {
                    texts.extend([UNUSUAL, BUCKET]);
                }
                texts.push(REQUESTS_HEAD);
                let wanted = Kind::ALL.into_iter().filter(|kind| kinds & kind.bit() > 0);
                texts.extend(wanted.map(|kind| kind.text()));
                texts.extend(slices.then_some(SLICES));
                texts.push(REQUESTS_TAIL);
            }
        }
        let text = texts.join("\n");
        Script { sha1: Sha1::from(&text).digest().to_string().into(), text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_has_what_is_needed_and_no_more() {
        let scripts = Scripts::new(&Clock::RedisTime);
        let takes = scripts.of(Parts::Takes);
        assert!(takes.text.contains("'TIME'") && !takes.text.contains("kinds"));
        let kinds = Kind::SlidingLog.bit() | Kind::Wide.bit();
        let some = scripts.of(Parts::Requests { kinds, slices: false });
        assert!(some.text.contains("kinds.sliding_log") && some.text.contains("kinds.wide"));
        assert!(!some.text.contains("kinds.narrow") && !some.text.contains("ops.draw"));
        assert!(Arc::ptr_eq(&takes, &scripts.of(Parts::Takes)));
        assert_eq!(takes.sha1.len(), 40);
    }
}
