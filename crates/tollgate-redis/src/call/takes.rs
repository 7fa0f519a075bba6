//! The short call: takes of one bucket each, at once or not at all.
//!
//! Such requests do not depend on each other unless they ask the same key. So they are sent ordered
//! by limit and key, and the script needs to remember nothing: each key is read once, all its
//! requests are decided, and it is written once.

use std::{cell::RefCell, collections::HashMap};

use smallvec::SmallVec;
use tollgate_core::Patience;

use super::{arguments::Arguments, numbers};
use crate::{
    request::{Action, Item, Request},
    script::Kind,
};

/// Requests in the order of the call.
#[derive(Debug, Default)]
pub(super) struct Takes<'a> {
    pub(super) keys: Vec<&'a [u8]>,
    pub(super) arguments: Arguments,
    /// The places of the requests, in the order of the answers.
    pub(super) order: Vec<usize>,
}

/// The requests to one key under one limit.
struct Cell<'a> {
    item: &'a Item,
    /// The place and the cost of each.
    requests: SmallVec<[(usize, u64); 1]>,
}

impl<'a> Cell<'a> {
    fn new(at: usize, item: &'a Item) -> Self {
        Self { item, requests: SmallVec::from_iter([(at, item.cost)]) }
    }
}

impl<'a> Takes<'a> {
    /// The call for these requests; `None` if one of them asks for more than it can.
    pub(super) fn of(requests: &[&'a Request]) -> Option<Self> {
        if let [request] = requests {
            return Some(Self::default().with(&[Cell::new(0, plain(request)?)]));
        }
        let mut takes = Self::default();
        for cells in by_limit(requests)? {
            takes = takes.with(&cells);
        }
        Some(takes)
    }

    /// Adds the requests under one limit.
    fn with(mut self, cells: &[Cell<'a>]) -> Self {
        let Some(first) = cells.first().map(|cell| cell.item) else { return self };
        let Some(bucket) = numbers::BucketNumbers::of(&first.limit) else { return self };
        WORDS.with_borrow_mut(|words| {
            let Words { text, form, .. } = words.of(first, bucket);
            self.arguments.text(text);
            self.arguments.text(form);
        });
        let ttl = numbers::ttl_millis(first);
        let mut packed = Packed::default();
        packed.unsigned([bucket.period, bucket.rate, bucket.burst, ttl, cells.len() as u64]);
        for cell in cells {
            self.keys.push(&cell.item.name);
            if cell.requests.len() > 1 {
                packed.push(-(cell.requests.len() as f64));
            }
            for (at, cost) in &cell.requests {
                packed.unsigned([numbers::cost(*cost)]);
                self.order.push(*at);
            }
        }
        self.arguments.text(packed.0);
        self
    }
}

/// How many limits' words are kept: more than most configurations have.
const WORDS_MAX: usize = 256;

thread_local! {
    static WORDS: RefCell<Known> = const { RefCell::new(Known(Vec::new())) };
}

/// What every call says of a limit, which takes longer to write than to find.
struct Words {
    tag: u128,
    text: String,
    form: String,
}

/// The words of limits, those in use foremost.
struct Known(Vec<Words>);

impl Known {
    fn of(&mut self, item: &Item, bucket: numbers::BucketNumbers) -> &Words {
        let at = match self.0.iter().position(|words| words.tag == item.tag) {
            Some(at) => at,
            None => {
                self.0.truncate(WORDS_MAX - 1);
                let (text, form) = (numbers::text(&item.limit), numbers::form(bucket));
                self.0.push(Words { tag: item.tag, text, form });
                self.0.len() - 1
            }
        };
        let before = at / 2;
        self.0.swap(at, before);
        &self.0[before]
    }
}

/// Numbers as a script reads them out of one text.
#[derive(Default)]
struct Packed(SmallVec<[u8; 64]>);

impl Packed {
    fn push(&mut self, number: f64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// None is above 2^54, and all above 2^53 are even.
    fn unsigned<const N: usize>(&mut self, numbers: [u64; N]) {
        numbers.into_iter().for_each(|number| self.push(number as f64));
    }
}

fn plain(request: &Request) -> Option<&Item> {
    let Action::Take { patience: Patience::None, .. } = request.action else { return None };
    let [item] = &*request.items else { return None };
    let narrow = numbers::kind(request, item) == Kind::Narrow;
    (narrow && !item.counts_refused).then_some(item)
}

/// Requests by key, and keys by limit; each in the order they came.
fn by_limit<'a>(requests: &[&'a Request]) -> Option<Vec<Vec<Cell<'a>>>> {
    let mut limits: Vec<(u128, Vec<Cell<'a>>)> = Vec::new();
    let mut places: HashMap<&[u8], (usize, usize)> = HashMap::with_capacity(requests.len());
    for (at, request) in requests.iter().enumerate() {
        let item = plain(request)?;
        if let Some((limit, cell)) = places.get(&*item.name) {
            let (tag, cells) = &mut limits[*limit];
            // One key under two sets of numbers, while a change is under way: the long call can.
            if *tag != item.tag {
                return None;
            }
            cells[*cell].requests.push((at, item.cost));
            continue;
        }
        let limit = match limits.iter().position(|(tag, _)| *tag == item.tag) {
            Some(limit) => limit,
            None => {
                limits.push((item.tag, Vec::new()));
                limits.len() - 1
            }
        };
        let cells = &mut limits[limit].1;
        places.insert(&item.name, (limit, cells.len()));
        cells.push(Cell::new(at, item));
    }
    Some(limits.into_iter().map(|(_, cells)| cells).collect())
}
