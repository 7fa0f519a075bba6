//! (being written)

fn main() {}
