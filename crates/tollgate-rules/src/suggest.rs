//! What somebody probably meant who wrote a word we do not know.

/// Longer words are not typing mistakes, and comparing costs the square of the length.
const CHARS_MAX: usize = 40;

/// The candidate that a few typing mistakes turn into `word`; none if all are too far.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(CHARS_MAX + 1).collect();
    if word.len() > CHARS_MAX {
        return None;
    }
    let close = |candidate: &&str| 1 + word.len().max(candidate.len()) / 4;
    candidates
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= close(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters to add, drop, change or swap with their neighbour, letter case aside.
fn distance(word: &[char], candidate: &str) -> usize {
    let word: Vec<char> = word.iter().map(char::to_ascii_lowercase).collect();
    let candidate: Vec<char> = candidate.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=candidate.len()).collect();
    for (i, &a) in word.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &b) in candidate.iter().enumerate() {
            let mut best = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == candidate[j - 1] && word[i - 1] == b {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[candidate.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        let names = ["policies", "routes", "listen", "rate", "burst", "on_exceed", "id"];
        assert_eq!(nearest(word, names.into_iter()), expected, "{word}");
    }

    #[test]
    fn typing_mistakes_find_the_word_that_was_meant() {
        check("polices", Some("policies"));
        check("route", Some("routes"));
        check("Burst", Some("burst"));
        check("bursts", Some("burst"));
        check("raet", Some("rate"));
        check("on-exceed", Some("on_exceed"));
        check("onexceed", Some("on_exceed"));
    }

    #[test]
    fn another_word_finds_nothing() {
        check("upstream", None);
        check("", None);
        check(&"x".repeat(10_000), None);
    }
}
