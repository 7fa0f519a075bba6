//! Filling `${NAME}` in values from the environment.
//!
//! It happens after the YAML is read, so a variable can only ever be a value: whatever it
//! holds, it adds no key and no list item. `$${` writes a literal `${`.

use crate::{
    mistake::{Findings, shown},
    yaml::{Node, Value},
};

/// Fills every value below `node`; a reference that cannot be filled is reported and its value
/// broken, so that nothing else complains about it.
pub(crate) fn fill(
    node: &mut Node,
    path: &str,
    env: &dyn Fn(&str) -> Option<String>,
    findings: &mut Findings,
) {
    match &mut node.value {
        Value::Null | Value::Broken => {}
        Value::Scalar(text) => match filled(text, env) {
            Ok(None) => {}
            Ok(Some(filled)) => *text = filled,
            Err(mistake) => {
                findings.add(node.mark, path, mistake);
                node.value = Value::Broken;
            }
        },
        Value::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                fill(item, &format!("{path}[{index}]"), env, findings);
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                let path = crate::read::below(path, &entry.key);
                fill(&mut entry.node, &path, env, findings);
            }
        }
    }
}

/// The text with its references filled; `None` if it has none.
fn filled(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Option<String>, String> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &reference[2..];
            continue;
        }
        let Some((name, after)) = reference[2..].split_once('}') else {
            return Err(format!("{} opens ${{ without closing it", shown(text)));
        };
        out.push_str(before);
        out.push_str(&value(name, env)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(Some(out))
}

fn value(name: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let ok = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(ok) {
        return Err(format!(
            "{} is not the name of an environment variable; $${{ writes a literal ${{",
            shown(name)
        ));
    }
    env(name).ok_or_else(|| format!("the environment variable {name} is not set"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let env = |name: &str| (name == "A_1").then(|| "one ${A_1}".to_owned());
        let shown = match filled(text, &env) {
            Ok(filled) => filled.unwrap_or_else(|| "untouched".to_owned()),
            Err(mistake) => mistake,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn references_are_filled_once() {
        check("${A_1}", "one ${A_1}");
        check("x${A_1}y${A_1}", "xone ${A_1}yone ${A_1}");
        check("$A_1 {A_1} $", "untouched");
    }

    #[test]
    fn a_doubled_dollar_writes_the_reference_itself() {
        check("$${A_1}", "${A_1}");
        check("a$${b", "a${b");
        check("$$${A_1}", "$${A_1}");
    }

    #[test]
    fn what_cannot_be_filled_is_told() {
        check("${NO}", "the environment variable NO is not set");
        check("a${A_1", "\"a${A_1\" opens ${ without closing it");
        check(
            "${A-1}",
            "\"A-1\" is not the name of an environment variable; $${ writes a literal ${",
        );
        check("${}", "\"\" is not the name of an environment variable; $${ writes a literal ${");
    }
}
