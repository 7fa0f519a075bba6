//! Taking turns, medians, and the lines that are printed.

/// Odd, so that the median is one of the rounds.
pub(crate) const ROUNDS: usize = 7;

/// One side of a comparison: a name and what gives one round's figure (less is better).
pub(crate) struct Side<'a> {
    pub(crate) name: String,
    pub(crate) round: Box<dyn FnMut() -> anyhow::Result<f64> + 'a>,
}

impl<'a> Side<'a> {
    pub(crate) fn new(
        name: impl Into<String>,
        round: impl FnMut() -> anyhow::Result<f64> + 'a,
    ) -> Self {
        Self { name: name.into(), round: Box::new(round) }
    }
}

/// What one side's rounds came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    /// The best round. What disturbs a round only ever adds to it.
    pub(crate) best: f64,
}

/// Lets all sides take turns and sums up each, in order. The first round is thrown
/// away, and every other round goes backwards, so that nobody always comes after the same one.
pub(crate) fn alternate(sides: &mut [Side<'_>], rounds: usize) -> anyhow::Result<Vec<Summary>> {
    let mut figures = vec![Vec::new(); sides.len()];
    for side in sides.iter_mut() {
        (side.round)()?;
    }
    for round in 0..rounds {
        for turn in 0..sides.len() {
            let index = if round % 2 == 0 { turn } else { sides.len() - 1 - turn };
            figures[index].push((sides[index].round)()?);
        }
    }
    Ok(figures.into_iter().map(summary).collect())
}

/// Runs the comparison of the first side with each other one and prints figures and ratios.
pub(crate) fn compare(name: &str, unit: &str, mut sides: Vec<Side<'_>>) -> anyhow::Result<()> {
    let summaries = alternate(&mut sides, ROUNDS)?;
    for (side, summary) in sides.iter().zip(&summaries) {
        figure(name, &side.name, summary.median, unit);
        figure(&format!("{name}-best-round"), &side.name, summary.best, unit);
    }
    for (side, summary) in sides.iter().zip(&summaries).skip(1) {
        ratio(&format!("{name}-{}", side.name), summary.median / summaries[0].median);
    }
    Ok(())
}

/// One measured number.
pub(crate) fn figure(name: &str, side: &str, value: f64, unit: &str) {
    println!("figure {name} {side} {value:.3} {unit}");
}

/// One comparison; above 1 we are better.
pub(crate) fn ratio(name: &str, value: f64) {
    println!("ratio {name} {value:.2}");
}

/// One comparison that could not be made.
pub(crate) fn skipped(name: &str, reason: impl std::fmt::Display) {
    let reason = reason.to_string();
    println!("skipped {name} {}", reason.lines().next().unwrap_or_default());
}

fn summary(mut rounds: Vec<f64>) -> Summary {
    rounds.sort_by(f64::total_cmp);
    Summary { median: rounds[rounds.len() / 2], best: rounds[0] }
}
