//! Scripts on a real server, in a time of the test's own.

mod chance;
mod support;
mod traces;
