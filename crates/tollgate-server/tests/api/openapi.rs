//! The description against what is served: every operation is called with its own example, and
//! the answer must have a status, a media type and fields that the description knows.

use std::collections::BTreeSet;

use http::Method;
use serde_json::Value;
use tollgate_server::openapi;

use crate::service::{Answer, service};

fn document() -> Value {
    serde_json::from_str(openapi()).unwrap()
}

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).expect(reference),
        None => value,
    }
}

/// As much of JSON Schema as the document uses; anything else is an error, not ignored.
fn validate(document: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = resolved(document, schema);
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "type" => assert!(has_type(value, rule), "{place}: {value} is not {rule}"),
            "enum" => assert!(rule.as_array().unwrap().contains(value), "{place}: {value}"),
            "const" => assert_eq!(rule, value, "{place}"),
            "required" => {
                for field in rule.as_array().unwrap() {
                    assert!(value.get(field.as_str().unwrap()).is_some(), "{place}: no {field}");
                }
            }
            "properties" => {
                for (name, value) in value.as_object().unwrap() {
                    if let Some(schema) = rule.get(name) {
                        validate(document, schema, value, &format!("{place}.{name}"));
                    }
                }
            }
            "additionalProperties" => {
                for name in value.as_object().unwrap().keys() {
                    let known = schema["properties"].get(name).is_some();
                    assert!(known, "{place}: {name} is not described");
                }
            }
            "items" => {
                for item in value.as_array().unwrap() {
                    validate(document, rule, item, &format!("{place}[]"));
                }
            }
            "minLength" | "minimum" | "maximum" | "maxItems" | "default" | "description"
            | "pattern" => {}
            other => panic!("{place}: {other} is not checked"),
        }
    }
}

fn has_type(value: &Value, rule: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    rule.as_array().map_or_else(|| is(rule), |names| names.iter().any(is))
}

/// That the answer is one the operation describes.
fn fits(document: &Value, operation: &Value, answer: &Answer) {
    let id = operation["operationId"].as_str().unwrap();
    let response = &operation["responses"][answer.status.as_str()];
    assert!(!response.is_null(), "{id}: {} is not described: {}", answer.status, answer.body);
    let content = &resolved(document, response)["content"];
    let Some(sent) = answer.headers.get("content-type") else {
        assert!(content.is_null(), "{id}: no content");
        return;
    };
    let sent = sent.to_str().unwrap().split(';').next().unwrap();
    assert!(!content[sent].is_null(), "{id}: {sent} is not described");
    if let Some(schema) = content[sent].get("schema") {
        validate(document, schema, &answer.json(), id);
    }
}

/// The operation's path with the examples of its parameters.
fn example_path(template: &str, item: &Value) -> String {
    let mut path = template.to_owned();
    for parameter in item["parameters"].as_array().into_iter().flatten() {
        let name = format!("{{{}}}", parameter["name"].as_str().unwrap());
        path = path.replace(&name, parameter["example"].as_str().unwrap());
    }
    path
}

/// Every operation: method, path, the path's item, and itself.
fn operations(document: &Value) -> Vec<(Method, &str, &Value, &Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if method != "parameters" {
                let method = method.to_uppercase().parse().unwrap();
                all.push((method, path.as_str(), item, operation));
            }
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn every_operation_is_served_as_described() {
    let (document, service) = (document(), service());
    let operations = operations(&document);
    assert_eq!(operations.len(), 11);
    for (method, template, item, operation) in operations {
        let path = example_path(template, item);
        let content = &operation["requestBody"]["content"]["application/json"];
        let body = content.get("example").map(Value::to_string).unwrap_or_default();
        if let Some(schema) = content.get("schema") {
            validate(&document, schema, &content["example"], template);
        }
        let answer = service.ask(method.clone(), &path, body).await;
        assert!(answer.status.is_success() || template == "/readyz", "{method} {path}");
        fits(&document, operation, &answer);
        if method == Method::POST {
            let mistake = service.post(&path, "{}").await;
            assert_eq!(mistake.status, 400);
            fits(&document, operation, &mistake);
        }
    }
}

/// Every kind of answer a policy can give.
#[tokio::test(start_paused = true)]
async fn every_answer_has_only_fields_that_are_described() {
    let (document, service) = (document(), service());
    let mut seen = BTreeSet::new();
    for policy in ["orders", "several", "in-flight", "rehearsed", "closed", "free"] {
        for cost in [1, 0, 2, 1, 1_000] {
            for path in ["/v1/check", "/v1/acquire", "/v1/refund"] {
                let body = format!(r#"{{"policy":"{policy}","key":"a","cost":{cost}}}"#);
                let answer = service.post(path, body).await;
                fits(&document, &document["paths"][path]["post"], &answer);
                seen.extend(answer.json().as_object().unwrap().keys().cloned());
            }
        }
        let answer = service.get(&format!("/v1/keys/{policy}/a")).await;
        fits(&document, &document["paths"]["/v1/keys/{policy}/{key}"]["get"], &answer);
    }
    let described = document["components"]["schemas"]["Answer"]["properties"].as_object().unwrap();
    assert_eq!(seen, described.keys().cloned().collect(), "described but never seen, or not seen");
}

#[tokio::test(start_paused = true)]
async fn the_document_is_served_as_it_is() {
    let answer = service().get("/openapi.json").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.body, openapi());
}

#[test]
fn the_document_is_of_this_version() {
    assert_eq!(document()["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_name_in_the_document_is_used() {
    let text = openapi();
    for kind in ["schemas", "responses"] {
        for name in document()["components"][kind].as_object().unwrap().keys() {
            let reference = format!("\"#/components/{kind}/{name}\"");
            assert!(text.contains(&reference), "{reference}");
        }
    }
}
