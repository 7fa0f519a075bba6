//! A store that goes away, in virtual time: who decides then, by what, and what is said of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fallback {
    mod logs;
    mod node;
    mod timing;
    mod together;
    mod warm;
    mod without;
}
