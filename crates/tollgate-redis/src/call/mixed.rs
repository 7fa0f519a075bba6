//! The long call: requests of every kind, in their order.

use std::collections::HashMap;

use tollgate_core::{COST_MAX, Limit, Patience};

use super::{arguments::Arguments, numbers};
use crate::{
    request::{Action, Item, Request},
    script::{Kind, Parts},
};

/// Requests as the script takes them.
#[derive(Debug)]
pub(super) struct Mixed<'a> {
    pub(super) keys: Vec<&'a [u8]>,
    pub(super) arguments: Arguments,
    pub(super) parts: Parts,
    /// The kind of each item, over all requests in their order.
    pub(super) kinds: Vec<Kind>,
}

/// One limit of one key.
struct Cell<'a> {
    item: &'a Item,
    kind: Kind,
    /// The place of its name among the keys.
    key: usize,
}

/// Keys and cells, found by name.
#[derive(Default)]
struct Cells<'a> {
    keys: Vec<&'a [u8]>,
    cells: Vec<Cell<'a>>,
    places: HashMap<&'a [u8], Place>,
}

/// What goes by one name.
struct Place {
    key: usize,
    /// More than one while a change of numbers is under way.
    cells: Vec<usize>,
}

impl<'a> Mixed<'a> {
    pub(super) fn of(requests: &[&'a Request]) -> Self {
        let mut cells = Cells::default();
        let mut actions = Arguments::default();
        let mut places = Vec::new();
        for request in requests {
            places.clear();
            for item in &request.items {
                let cell = cells.cell(request, item, &mut actions);
                places.push((cell, cells.key(&item.held)));
            }
            act(&mut actions, request, &places);
        }
        cells.finish(requests, &actions)
    }
}

impl<'a> Cells<'a> {
    /// The number of a name among the keys, from 1 on; of no name, any.
    fn key(&mut self, name: &'a [u8]) -> usize {
        if name.is_empty() {
            return 0;
        }
        let keys = &mut self.keys;
        let place = self.places.entry(name).or_insert_with(|| {
            keys.push(name);
            Place { key: keys.len(), cells: Vec::new() }
        });
        place.key
    }

    /// The number of the cell of an item, from 1 on. A cell of the same name with other numbers is
    /// written first, so that each reads what the other wrote.
    fn cell(&mut self, request: &Request, item: &'a Item, actions: &mut Arguments) -> usize {
        let key = self.key(&item.name);
        let kind = numbers::kind(request, item);
        let Some(place) = self.places.get_mut(&*item.name) else { return 0 };
        let cells = &mut self.cells;
        let own = place.cells.iter().copied().find(|at| cells[*at - 1].item.tag == item.tag);
        let own = own.unwrap_or_else(|| {
            cells.push(Cell { item, kind, key });
            place.cells.push(cells.len());
            cells.len()
        });
        if kind == Kind::Wide {
            cells[own - 1].kind = kind;
        }
        for other in place.cells.iter().filter(|other| **other != own) {
            actions.text("settle");
            actions.number(*other);
        }
        own
    }

    fn finish(self, requests: &[&'a Request], actions: &Arguments) -> Mixed<'a> {
        let mut arguments = Arguments::default();
        let mut limits: Vec<&Cell<'_>> = Vec::new();
        let of_cells: Vec<_> = self.cells.iter().map(|cell| limit(&mut limits, cell)).collect();
        arguments.number(limits.len());
        for cell in &limits {
            arguments.text(cell.kind.name());
            arguments.text(numbers::text(&cell.item.limit));
            arguments.number(numbers::ttl_millis(cell.item));
            numbers::write(&mut arguments, cell.kind, &cell.item.limit);
        }
        arguments.number(self.cells.len());
        for (cell, limit) in self.cells.iter().zip(of_cells) {
            arguments.number(cell.key);
            arguments.number(limit);
        }
        arguments.append(actions);
        let kinds = limits.iter().fold(0, |kinds, cell| kinds | cell.kind.bit());
        let parts = Parts::Requests { kinds, slices: requests.iter().any(|one| is_slice(one)) };
        let kind = |item: &Item| {
            let place = self.places.get(&*item.name);
            let cells = place.into_iter().flat_map(|place| &place.cells);
            let mut own = cells.filter(|at| self.cells[**at - 1].item.tag == item.tag);
            own.next().map_or(Kind::Narrow, |at| self.cells[*at - 1].kind)
        };
        let kinds = requests.iter().flat_map(|one| &one.items).map(kind).collect();
        Mixed { keys: self.keys, arguments, parts, kinds }
    }
}

/// The number of a cell's limit among those told, from 1 on.
fn limit<'c, 'a>(limits: &mut Vec<&'c Cell<'a>>, cell: &'c Cell<'a>) -> usize {
    let same = |told: &&Cell<'_>| told.item.tag == cell.item.tag && told.kind == cell.kind;
    limits.iter().position(same).map_or_else(
        || {
            limits.push(cell);
            limits.len()
        },
        |at| at + 1,
    )
}

const fn is_slice(request: &Request) -> bool {
    matches!(request.action, Action::Draw { .. } | Action::PutBack { .. } | Action::Reassert { .. })
}

/// Writes what is done, with the cell and the held key of each item.
fn act(arguments: &mut Arguments, request: &Request, places: &[(usize, usize)]) {
    let items = || request.items.iter().zip(places);
    match &request.action {
        Action::Take { patience, holder } => {
            arguments.text("take");
            match patience {
                Patience::None => arguments.text("-1"),
                Patience::Micros(micros) => arguments.number(*micros),
            }
            arguments.text(&**holder);
            arguments.number(places.len());
            for (item, (cell, _)) in items() {
                arguments.number(*cell);
                arguments.number(numbers::cost(item.cost));
                arguments.number(u8::from(item.counts_refused));
            }
        }
        Action::Refund { holder } => {
            arguments.text("refund");
            arguments.text(&**holder);
            arguments.number(places.len());
            for (item, (cell, _)) in items() {
                arguments.number(*cell);
                arguments.number(item.cost.min(COST_MAX));
            }
        }
        Action::Release { holder } => {
            arguments.text("release");
            arguments.text(&**holder);
            let counts_places = |item: &Item| matches!(item.limit, Limit::Concurrency(_));
            let places = || items().filter(|(item, _)| counts_places(item));
            arguments.number(places().count());
            places().for_each(|(_, (cell, _))| arguments.number(*cell));
        }
        Action::Reset => {
            arguments.text("reset");
            arguments.number(places.len());
            for (cell, held) in places {
                arguments.number(*cell);
                arguments.number(*held);
            }
        }
        Action::Draw { node, want, left } => {
            for (item, (cell, held)) in items() {
                arguments.text("draw");
                arguments.text(&**node);
                arguments.number(*cell);
                arguments.number(*held);
                let numbers = [item.cost, *want, *left, item.ahead_max];
                arguments.numbers(numbers.map(numbers::cost));
            }
        }
        Action::PutBack { node } => {
            arguments.text("put_back");
            arguments.text(&**node);
            arguments.number(places.len());
            for (item, (cell, held)) in items() {
                arguments.number(*cell);
                arguments.number(*held);
                arguments.number(item.cost.min(COST_MAX));
            }
        }
        Action::Reassert { node } => {
            arguments.text("reassert");
            arguments.text(&**node);
            arguments.number(places.len());
            for (item, (cell, held)) in items() {
                arguments.number(*cell);
                arguments.number(*held);
                let (at, left) = item.level.map_or((0, 0), |(at, left)| (at.as_micros(), left));
                arguments.numbers([item.cost, at, left].map(numbers::cost));
            }
        }
    }
}
