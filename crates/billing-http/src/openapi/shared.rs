//! Says once what operations have in common: their parameters and the headers of their answers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Moves parameters and headers that stand several times in a document to its components.
pub(super) fn share(document: &mut Value) {
    for (kind, members) in [("parameters", Members::Listed), ("headers", Members::Named)] {
        let mut times: BTreeMap<String, (String, usize)> = BTreeMap::new();
        each(document, kind, members, &mut |name, member| {
            times.entry(member.to_string()).or_insert_with(|| (name.to_owned(), 0)).1 += 1;
        });
        let mut shared: BTreeMap<String, Value> = BTreeMap::new();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (text, (name, _)) in times.into_iter().filter(|(_, (_, times))| *times > 1) {
            let base: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
            let taken = (2..).map(|n| format!("{base}{n}")).find(|name| !shared.contains_key(name)).unwrap_or_default();
            let name = if shared.contains_key(&base) { taken } else { base };
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

/// How members of a kind stand in an object.
#[derive(Clone, Copy)]
enum Members {
    /// In an array, each with its name in it.
    Listed,
    /// By their names.
    Named,
}

/// Every member of a kind, wherever it stands, with its name.
fn each(value: &mut Value, kind: &str, members: Members, change: &mut impl FnMut(&str, &mut Value)) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match (members, &mut *value) {
                    (Members::Listed, Value::Array(listed)) if key == kind => listed.iter_mut().for_each(|member| {
                        let name = member["name"].as_str().unwrap_or_default().to_owned();
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
        assert_eq!(post["parameters"], json!([{"$ref": "#/components/parameters/XId"}, parameter("Key", "b")]));
        assert_eq!(document["paths"]["/b"]["get"]["parameters"][1], json!({"$ref": "#/components/parameters/Key"}));
        assert_eq!(document["components"]["responses"]["Bad"]["headers"]["X-Id"], json!({"$ref": "#/components/headers/XId"}));
        assert_eq!(post["responses"]["200"]["headers"]["Link"], header("b"));
        assert_eq!(document["components"]["parameters"]["XId"], parameter("X-Id", "Names it"));
        let names: Vec<&String> = document["components"]["headers"].as_object().expect("headers").keys().collect();
        assert_eq!(names, ["Link", "XId"]);
    }
}
