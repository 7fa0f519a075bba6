//! Every target, with the same mutations of its seeds in every run.

use std::{fs, path::Path};

use tollgate_fuzz::{TARGETS, Target};

/// A second or two for all of them without optimisation; `make soak` is for longer.
const MUTATIONS: usize = 6_000;
const LENGTH_MAX: usize = 4 * 1024;

#[test]
fn the_configuration_is_read_or_its_mistakes_are_told() {
    run("configuration");
}

#[test]
fn key_templates_never_mix_two_clients() {
    run("key_template");
}

#[test]
fn forwarded_addresses_cannot_be_spoofed() {
    run("client_addr");
}

#[test]
fn rates_are_shown_as_they_are_read() {
    run("rate");
}

#[test]
fn messages_read_the_same_when_they_are_sent_on() {
    run("http_message");
}

fn run(name: &str) {
    let (_, target) = TARGETS.iter().find(|(found, _)| *found == name).unwrap();
    let seeds = seeds(name);
    for seed in &seeds {
        check(*target, seed);
    }
    let mut random = Random(0x5EED);
    for _ in 0..MUTATIONS {
        check(*target, &mutated(&seeds, &mut random));
    }
}

/// Says which input it was, since libFuzzer is not there to keep it.
fn check(target: Target, bytes: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| target(bytes)) {
        eprintln!("with the input {:?}", String::from_utf8_lossy(bytes));
        std::panic::resume_unwind(panic);
    }
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A seed with a few changes of the kinds that parsers stumble over.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(20)).min(bytes.len());
        match random.below(6) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.insert(at, TELLING[random.below(TELLING.len())]),
            2 => bytes.insert(at, random.byte()),
            3 => bytes.extend_from_within(at..end),
            4 => drop(bytes.splice(at..end, seeds[random.below(seeds.len())].iter().copied())),
            _ => bytes[at..end].reverse(),
        }
    }
    bytes.truncate(LENGTH_MAX);
    bytes
}

/// Bytes that mean something to one of the parsers.
const TELLING: &[u8] = b"{}[]:,;=\"'\\/%.-_+*&!|>#@?$~ \t\r\n\0\x7f\xff09azAZ";

/// Marsaglia's xorshift: any sequence will do, as long as it is the same one tomorrow.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }
}
