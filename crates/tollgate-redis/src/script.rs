//! The text that Redis runs, put together from the parts that a call needs.
//!
//! Every function that a script defines costs time at each call, so a call gets no more than the
//! algorithms it asks for. There are few combinations; each is put together once and kept.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use sha1_smol::Sha1;

const REDIS_TIME: &str = include_str!("scripts/redis_time.lua");
const TAKE: &str = include_str!("scripts/take.lua");

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

/// All scripts that were needed so far.
#[derive(Debug)]
pub(crate) struct Scripts {
    clock: String,
    made: Mutex<HashMap<Parts, Arc<Script>>>,
}

/// Which parts a script is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Parts(u32);

impl Scripts {
    /// No script yet; all will have the time from `clock`.
    pub(crate) fn new(clock: &Clock) -> Self {
        let clock = match clock {
            Clock::RedisTime => REDIS_TIME.to_owned(),
            Clock::Key(name) => format!("local now = tonumber(redis.call('GET', '{name}'))\n"),
        };
        Self { clock, made: Mutex::default() }
    }

    /// The script of these parts.
    pub(crate) fn of(&self, parts: Parts) -> Arc<Script> {
        let mut made = self.made.lock();
        let script = made.entry(parts).or_insert_with(|| Arc::new(self.make(parts)));
        Arc::clone(script)
    }

    fn make(&self, _parts: Parts) -> Script {
        let text = format!("{}{TAKE}", self.clock);
        Script { sha1: Sha1::from(&text).digest().to_string().into(), text: text.into() }
    }
}
