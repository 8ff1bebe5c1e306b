//! Moves repeated parameters, response headers and equal responses to the document's components.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

const SCHEMA: &str = "#/components/schemas/";

/// Moves parameters, headers and responses that occur several times to the components.
pub(super) fn share(document: &mut Value) {
    share_members(document);
    share_answers(document);
}

/// Resolves a reference to the components.
pub fn resolved<'d>(document: &'d Value, stated: &'d Value) -> &'d Value {
    let shared = stated["$ref"].as_str().and_then(|reference| document.pointer(reference.trim_start_matches('#')));
    shared.unwrap_or(stated)
}

fn share_members(document: &mut Value) {
    for (kind, members) in [("parameters", Members::Listed), ("headers", Members::Named)] {
        let mut times: BTreeMap<String, (String, usize)> = BTreeMap::new();
        each(document, kind, members, &mut |name, member| {
            times.entry(member.to_string()).or_insert_with(|| (name.to_owned(), 0)).1 += 1;
        });
        let mut shared: BTreeMap<String, Value> = BTreeMap::new();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (text, (name, _)) in times.into_iter().filter(|(_, (_, times))| *times > 1) {
            let taken = (2..).map(|n| format!("{name}-{n}")).find(|name| !shared.contains_key(name)).unwrap_or_default();
            let name = if shared.contains_key(&name) { taken } else { name };
            shared.insert(name.clone(), serde_json::from_str(&text).unwrap_or_default());
            names.insert(text, name);
        }
        each(document, kind, members, &mut |_, member| {
            if let Some(name) = names.get(&member.to_string()) {
                *member = json!({"$ref": format!("#/components/{kind}/{name}")});
            }
        });
        document["components"][kind] = shared.into_iter().collect::<Map<_, _>>().into();
    }
}

/// Merges responses with the same headers and schema into one component, with the first response's example. Each
/// operation keeps its own description beside the reference.
fn share_answers(document: &mut Value) {
    let mut forms: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    each_answer(document, &mut |answer| forms.entry(form(answer)).or_default().push(answer.clone()));
    let mut names = BTreeMap::new();
    for (form, alike) in forms.into_iter().filter(|(_, alike)| alike.len() > 1) {
        let mut shared = alike.into_iter().next().unwrap_or_default();
        let Some((name, meaning)) = named(document, &shared) else { continue };
        shared["description"] = meaning.into();
        document["components"]["responses"][&name] = shared;
        names.insert(form, name);
    }
    each_answer(document, &mut |answer| {
        if let Some(name) = names.get(&form(answer)) {
            *answer = json!({"$ref": format!("#/components/responses/{name}"), "description": answer["description"]});
        }
    });
}

/// Applies a change to the success response of every operation.
fn each_answer(document: &mut Value, change: &mut impl FnMut(&mut Value)) {
    let items = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for operation in items.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        operation.pointer_mut("/responses/200").into_iter().for_each(&mut *change);
    }
}

/// Returns a response without the parts that are specific to its operation.
fn form(answer: &Value) -> String {
    let mut form = answer.clone();
    form["description"] = Value::Null;
    for media_type in form["content"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        media_type["example"] = Value::Null;
    }
    form.to_string()
}

/// Returns a component name and a description, derived from the response's schema.
fn named(document: &Value, answer: &Value) -> Option<(String, String)> {
    let schema = &answer["content"]["application/json"]["schema"];
    let (element, ending, several) =
        if schema["items"].is_object() { (&schema["items"], "List", "List of: ") } else { (schema, "", "") };
    let name = element["$ref"].as_str()?.strip_prefix(SCHEMA)?;
    let meaning = resolved(document, element)["description"].as_str()?;
    Some((format!("{name}{ending}"), format!("{several}{meaning}")))
}

/// The position of members in an object.
#[derive(Clone, Copy)]
enum Members {
    /// In an array; each member contains its name.
    Listed,
    /// In an object, with names as keys.
    Named,
}

/// Applies a change to every member of a kind, at any depth.
fn each(value: &mut Value, kind: &str, members: Members, change: &mut impl FnMut(&str, &mut Value)) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match (members, &mut *value) {
                    (Members::Listed, Value::Array(listed)) if key == kind => listed.iter_mut().for_each(|member| {
                        // Names of other components must not differ by case alone, because generators make types of them all.
                        let text = |field: &str| member[field].as_str().unwrap_or_default().to_owned();
                        let name = format!("{}.{}", text("in"), text("name"));
                        change(&name, member);
                    }),
                    (Members::Named, Value::Object(named)) if key == kind => {
                        named.iter_mut().for_each(|(name, member)| change(name, member));
                    }
                    _ => each(value, kind, members, change),
                }
            }
        }
        Value::Array(array) => array.iter_mut().for_each(|value| each(value, kind, members, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_once_stays_and_what_stands_twice_is_referred_to() {
        let header = |description: &str| json!({"schema": {"type": "string"}, "description": description});
        let parameter = |name: &str, description: &str| json!({"name": name, "in": "header", "description": description});
        let operation = |own: &str| {
            json!({"parameters": [parameter("X-Id", "Names it"), parameter("Key", own)],
                "responses": {"200": {"headers": {"X-Id": header("Names it"), "Link": header(own)}}}})
        };
        let mut document = json!({"paths": {"/a": {"get": operation("a"), "post": operation("b")}, "/b": {"get": operation("a")}},
            "components": {"responses": {"Bad": {"headers": {"X-Id": header("Names it")}}}}});
        share(&mut document);
        let post = &document["paths"]["/a"]["post"];
        assert_eq!(post["parameters"], json!([{"$ref": "#/components/parameters/header.X-Id"}, parameter("Key", "b")]));
        assert_eq!(document["paths"]["/b"]["get"]["parameters"][1], json!({"$ref": "#/components/parameters/header.Key"}));
        assert_eq!(document["components"]["responses"]["Bad"]["headers"]["X-Id"], json!({"$ref": "#/components/headers/X-Id"}));
        assert_eq!(post["responses"]["200"]["headers"]["Link"], header("b"));
        assert_eq!(document["components"]["parameters"]["header.X-Id"], parameter("X-Id", "Names it"));
        let names: Vec<&String> = document["components"]["headers"].as_object().expect("headers").keys().collect();
        assert_eq!(names, ["Link", "X-Id"]);
    }

    #[test]
    fn answers_of_one_form_are_one_and_each_operation_says_what_its_own_means() {
        let answer = |means: &str, schema: Value, example: i32| {
            let content = json!({"application/json": {"schema": schema, "example": example}});
            json!({"responses": {"200": {"description": means, "content": content}}})
        };
        let order = || json!({"$ref": "#/components/schemas/Order"});
        let orders = || json!({"type": "array", "items": order()});
        let mut document = json!({"paths": {
            "/a": {"get": answer("The order", order(), 1), "post": answer("The changed order", order(), 2)},
            "/b": {"get": answer("Open ones", orders(), 3)}, "/c": {"get": answer("Closed ones", orders(), 4)},
            "/d": {"get": answer("The price", json!({"$ref": "#/components/schemas/Price"}), 5)},
        }, "components": {"schemas": {"Order": {"description": "An order."}}, "responses": {}}});
        share(&mut document);
        let of = |path: &str, method: &str| &document["paths"][path][method]["responses"]["200"];
        let shared = |name: &str, means: &str| json!({"$ref": format!("#/components/responses/{name}"), "description": means});
        assert_eq!([of("/a", "get"), of("/a", "post")], [&shared("Order", "The order"), &shared("Order", "The changed order")]);
        assert_eq!(of("/b", "get"), &shared("OrderList", "Open ones"));
        assert_eq!(of("/c", "get"), &shared("OrderList", "Closed ones"));
        assert_eq!(of("/d", "get")["description"], "The price");
        let responses = &document["components"]["responses"];
        assert_eq!(responses["Order"]["description"], "An order.");
        assert_eq!(responses["OrderList"]["description"], "List of: An order.");
        assert_eq!(responses["Order"]["content"]["application/json"]["example"], 1);
    }
}
