//! Scripts on a real server, in a time of the test's own.

mod chance;
mod change;
mod keys;
mod support;
mod traces;
