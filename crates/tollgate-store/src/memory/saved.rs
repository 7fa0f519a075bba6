//! Counters in a file, from one run of the program to the next.
//!
//! The file holds the seed of the fingerprints, the limits with their numbers, and every key that
//! is not idle; a checksum closes it. It is written beside its place and moved there, so that a
//! crash leaves the old one. A file that is not whole is refused: then everybody starts fresh,
//! which is better than starting wrong.

use std::{
    fs::{self, File},
    hash::Hasher,
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use siphasher::sip::SipHasher13;
use tollgate_core::{
    Algorithm, Fill, Lease, Leases, Limit, Log, Rate, State, SubTallies, Tally, Time, TwoTallies,
    Unit,
};

use super::{
    MemoryStore,
    shard::{Kept, Restored},
};
use crate::{
    NamedLimit,
    fingerprint::{Id, Seed},
};

const MAGIC: &[u8; 16] = b"tollgate state 1";

/// Longer lists and names than any limit can have mean that the file is damaged.
const LENGTH_MAX: u64 = 1 << 20;

/// Why saved counters were not taken.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no file; the first start of all.
    #[error("{0} does not exist")]
    Missing(PathBuf),
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, io::Error),
    /// The file is cut off, changed, or of another version.
    #[error("{0} does not hold saved counters, or is damaged: {1}")]
    Damaged(PathBuf, &'static str),
}

pub(super) fn save(store: &MemoryStore, path: &Path, limits: &[NamedLimit]) -> io::Result<u64> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    let mut out = Output { file: BufWriter::new(private(&beside)?), hasher: SipHasher13::new() };
    out.bytes(MAGIC)?;
    out.bytes(&store.seed.to_bytes())?;
    out.u64(limits.len() as u64)?;
    for limit in limits {
        write_limit(&mut out, limit)?;
    }
    let mut keys = 0;
    for shard in &store.shards {
        for (id, kept) in shard.0.lock().entries() {
            write_entry(&mut out, id, &kept)?;
            keys += 1;
        }
    }
    out.u64(0)?;
    let checksum = out.hasher.finish();
    out.u64(checksum)?;
    out.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&beside, path)?;
    Ok(keys)
}

/// The file holds the seed, so it is for its owner alone.
fn private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

pub(super) fn load(store: &mut MemoryStore, path: &Path) -> Result<Vec<NamedLimit>, LoadError> {
    verify(path)?;
    let mut file = open(path)?;
    let damaged = |_| LoadError::Damaged(path.to_owned(), "an entry cannot be read");
    file.bytes::<16>().map_err(damaged)?;
    store.seed = Seed::from_bytes(file.bytes().map_err(damaged)?);
    let count = file.length().map_err(damaged)?;
    let limits =
        (0..count).map(|_| read_limit(&mut file)).collect::<io::Result<_>>().map_err(damaged)?;
    let now = store.clock.now();
    while let Some((id, restored)) = read_entry(&mut file).map_err(damaged)? {
        let shard = store.shard(id.fingerprint());
        shard.lock().restore(id, restored, now);
    }
    Ok(limits)
}

fn open(path: &Path) -> Result<Input<BufReader<File>>, LoadError> {
    match File::open(path) {
        Ok(file) => Ok(Input(BufReader::new(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(LoadError::Missing(path.to_owned()))
        }
        Err(error) => Err(LoadError::Unreadable(path.to_owned(), error)),
    }
}

/// Reads the file once to see that it is whole, before anything of it is believed.
fn verify(path: &Path) -> Result<(), LoadError> {
    let damaged = |why| LoadError::Damaged(path.to_owned(), why);
    let unreadable = |error| LoadError::Unreadable(path.to_owned(), error);
    let Input(mut file) = open(path)?;
    let length = file.get_ref().metadata().map_err(unreadable)?.len();
    let Some(content) = length.checked_sub(8).filter(|content| *content >= 16) else {
        return Err(damaged("it is too short"));
    };
    let mut magic = [0; 16];
    file.read_exact(&mut magic).map_err(unreadable)?;
    if &magic != MAGIC {
        return Err(damaged("it begins otherwise"));
    }
    let mut hasher = SipHasher13::new();
    hasher.write(&magic);
    let mut rest = (&mut file).take(content - 16);
    let mut piece = [0; 8_192];
    loop {
        let read = rest.read(&mut piece).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        hasher.write(&piece[..read]);
    }
    let mut checksum = [0; 8];
    file.read_exact(&mut checksum).map_err(unreadable)?;
    if u64::from_le_bytes(checksum) != hasher.finish() {
        return Err(damaged("its checksum is wrong"));
    }
    Ok(())
}

struct Output {
    file: BufWriter<File>,
    hasher: SipHasher13,
}

impl Output {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.write(bytes);
        self.file.write_all(bytes)
    }

    fn u64(&mut self, number: u64) -> io::Result<()> {
        self.bytes(&number.to_le_bytes())
    }

    fn pairs(&mut self, pairs: impl ExactSizeIterator<Item = (u64, u64)>) -> io::Result<()> {
        self.u64(pairs.len() as u64)?;
        for (one, other) in pairs {
            self.u64(one)?;
            self.u64(other)?;
        }
        Ok(())
    }
}

struct Input<R>(R);

impl<R: Read> Input<R> {
    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn u32(&mut self) -> io::Result<u32> {
        u32::try_from(self.u64()?).map_err(|_| invalid())
    }

    fn length(&mut self) -> io::Result<u64> {
        Some(self.u64()?).filter(|length| *length <= LENGTH_MAX).ok_or_else(invalid)
    }

    fn pairs(&mut self) -> io::Result<Vec<(u64, u64)>> {
        (0..self.length()?).map(|_| Ok((self.u64()?, self.u64()?))).collect()
    }
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn write_limit(out: &mut Output, named: &NamedLimit) -> io::Result<()> {
    let limit = named.limit();
    out.u64(named.policy().len() as u64)?;
    out.bytes(named.policy().as_bytes())?;
    out.u64(named.position() as u64)?;
    let algorithm = Algorithm::ALL.iter().position(|one| *one == limit.algorithm()).unwrap_or(0);
    out.u64(algorithm as u64)?;
    let rate = limit.rate().unwrap_or(Rate::per(0, Unit::Second));
    let unit = Unit::ALL.iter().position(|one| *one == rate.unit).unwrap_or(0);
    for number in
        [rate.count, u64::from(rate.times), unit as u64, limit.capacity(), limit.memory_micros()]
    {
        out.u64(number)?;
    }
    Ok(())
}

fn read_limit<R: Read>(file: &mut Input<R>) -> io::Result<NamedLimit> {
    let mut policy = Vec::new();
    let length = file.length()?;
    file.0.by_ref().take(length).read_to_end(&mut policy)?;
    let policy = String::from_utf8(policy).map_err(|_| invalid())?;
    let position = usize::try_from(file.u64()?).map_err(|_| invalid())?;
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let algorithm = *Algorithm::ALL.get(at(file.u64()?)).ok_or_else(invalid)?;
    let (count, times) = (file.u64()?, file.u32()?);
    let unit = *Unit::ALL.get(at(file.u64()?)).ok_or_else(invalid)?;
    let (capacity, memory) = (file.u64()?, file.u64()?);
    let rate = Rate { count, times, unit };
    let limit = match algorithm {
        Algorithm::TokenBucket => Limit::token_bucket(rate, capacity),
        Algorithm::LeakyBucket => Limit::leaky_bucket(rate, capacity),
        Algorithm::FixedWindow => Limit::fixed_window(rate),
        Algorithm::SlidingLog => Limit::sliding_log(rate),
        Algorithm::SlidingCounter => Limit::sliding_counter(rate),
        Algorithm::SlidingWindow => Limit::sliding_window(rate),
        Algorithm::Concurrency => Limit::concurrency(capacity, Duration::from_micros(memory)),
    };
    Ok(NamedLimit::new(policy, position, limit.map_err(|_| invalid())?))
}

/// Entries begin with a number that is not 0; 0 ends them.
const PACKED: u64 = 1;
const FILL: u64 = 2;
const TALLY: u64 = 3;
const LOG: u64 = 4;
const TWO_TALLIES: u64 = 5;
const SUB_TALLIES: u64 = 6;
const LEASES: u64 = 7;

fn write_entry(out: &mut Output, id: Id, kept: &Kept<'_>) -> io::Result<()> {
    let (kind, first, second) = match kept {
        Kept::Packed(value, extra) => (PACKED, *value, u64::from(*extra)),
        Kept::Listed(state, idle_at) => (kind(state), *idle_at, 0),
    };
    for number in [kind, id.word, u64::from(id.check), first, second] {
        out.u64(number)?;
    }
    match kept {
        Kept::Packed(..) => Ok(()),
        Kept::Listed(state, _) => write_state(out, state),
    }
}

const fn kind(state: &State) -> u64 {
    match state {
        State::Fill(_) => FILL,
        State::Tally(_) => TALLY,
        State::Log(_) => LOG,
        State::TwoTallies(_) => TWO_TALLIES,
        State::SubTallies(_) => SUB_TALLIES,
        State::Leases(_) => LEASES,
    }
}

fn write_state(out: &mut Output, state: &State) -> io::Result<()> {
    match state {
        State::Fill(fill) => {
            out.bytes(&fill.micros.to_le_bytes())?;
            out.u64(fill.part)
        }
        State::Tally(tally) => out.pairs([(tally.index, tally.count)].into_iter()),
        State::Log(log) => out.pairs(log.pairs()),
        State::TwoTallies(two) => [two.index, two.current, two.previous]
            .into_iter()
            .try_for_each(|number| out.u64(number)),
        State::SubTallies(tallies) => {
            out.u64(tallies.newest)?;
            out.u64(tallies.count)?;
            tallies.past.iter().try_for_each(|count| out.bytes(&count.to_le_bytes()))
        }
        State::Leases(leases) => {
            out.u64(leases.iter().len() as u64)?;
            leases.iter().try_for_each(|lease| {
                [lease.holder, lease.until.as_micros(), lease.places]
                    .into_iter()
                    .try_for_each(|number| out.u64(number))
            })
        }
    }
}

fn read_entry<R: Read>(file: &mut Input<R>) -> io::Result<Option<(Id, Restored)>> {
    let kind = file.u64()?;
    if kind == 0 {
        return Ok(None);
    }
    let id = Id { word: file.u64()?.max(1), check: file.u32()? };
    let (first, second) = (file.u64()?, file.u32()?);
    let restored = match kind {
        PACKED => Restored::Packed(first, second),
        _ => Restored::Listed(read_state(file, kind)?, first),
    };
    Ok(Some((id, restored)))
}

fn read_state<R: Read>(file: &mut Input<R>, kind: u64) -> io::Result<State> {
    Ok(match kind {
        FILL => State::Fill(Fill { micros: u128::from_le_bytes(file.bytes()?), part: file.u64()? }),
        TALLY => {
            let pairs = file.pairs()?;
            let (index, count) = *pairs.first().ok_or_else(invalid)?;
            State::Tally(Tally { index, count })
        }
        LOG => State::Log(Log::from_pairs(file.pairs()?)),
        TWO_TALLIES => {
            let (index, current, previous) = (file.u64()?, file.u64()?, file.u64()?);
            State::TwoTallies(TwoTallies { index, current, previous })
        }
        SUB_TALLIES => {
            let mut tallies =
                SubTallies { newest: file.u64()?, count: file.u64()?, ..SubTallies::default() };
            for count in &mut tallies.past {
                *count = u16::from_le_bytes(file.bytes()?);
            }
            State::SubTallies(tallies)
        }
        LEASES => {
            let leases = (0..file.length()?).map(|_| {
                let (holder, until, places) =
                    (file.u64()?, Time::from_micros(file.u64()?), file.u64()?);
                Ok(Lease { holder, until, places })
            });
            State::Leases(Leases::from_leases(leases.collect::<io::Result<Vec<_>>>()?))
        }
        _ => return Err(invalid()),
    })
}
