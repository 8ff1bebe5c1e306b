//! Writes the example request of an operation as a shell command and as programs in Python and TypeScript.

use maud::{Markup, html};
use serde_json::Value;

/// The credential that an operation accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Credential {
    Nothing,
    /// An API key and its password.
    Key,
    /// Only a bearer token.
    Token,
    /// Only the session of an administrator.
    Session,
}

/// The content of a success response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseContent {
    Nothing,
    Json,
    Text,
    Bytes,
}

/// An example of a request.
pub(super) struct ExampleRequest<'d> {
    pub(super) method: &'d str,
    /// The path, with parameters in braces.
    pub(super) path: &'d str,
    /// The query with its question mark, or empty.
    pub(super) query: String,
    pub(super) credential: Credential,
    /// Media type and content of the body. The content is null without an example.
    pub(super) body: Option<(&'d str, &'d Value)>,
    pub(super) response: ResponseContent,
}

impl ExampleRequest<'_> {
    /// Renders the request in each language. One of them is shown, and style sheets alone let a reader select another.
    pub(super) fn render(&self) -> Markup {
        let languages = [
            ("curl", "curl", self.command()),
            ("python", "Python", self.python()),
            ("typescript", "TypeScript", self.typescript()),
        ];
        html! {
            div.languages role="group" aria-label="Language of the example" {
                @for (index, (id, name, _)) in languages.iter().enumerate() {
                    input id=(id) type="radio" name="language" checked[index == 0];
                    label for=(id) { (name) }
                }
                @for (id, _, text) in &languages { pre class=(id) { code { (text) } } }
            }
        }
    }

    /// Returns the path and the query. Parameters of the path are variables with the names of the parameters in capitals.
    fn address(&self, variable: impl Fn(&str) -> String) -> String {
        let parts = self.path.split(['{', '}']).enumerate();
        let parts = parts.map(|(index, part)| if index % 2 == 1 { variable(&part.to_uppercase()) } else { part.to_owned() });
        parts.chain([self.query.clone()]).collect()
    }

    fn command(&self) -> String {
        let mut parts = vec![format!("curl -s \"$BASE{}\"", self.address(|name| format!("${name}")))];
        match self.credential {
            Credential::Nothing => {}
            Credential::Key => parts.push("-u \"$API_KEY:$PASSWORD\"".to_owned()),
            Credential::Token => parts.push("-H \"Authorization: Bearer $TOKEN\"".to_owned()),
            Credential::Session => parts.push("-b \"session=$SESSION\"".to_owned()),
        }
        match self.body {
            Some((media, Value::Null)) => parts.extend([format!("-H 'Content-Type: {media}'"), "-d ''".to_owned()]),
            Some((media, body)) => {
                parts.push(format!("-H 'Content-Type: {media}'"));
                parts.push(format!("-d '{}'", format!("{body:#}").replace('\'', "'\\''")));
            }
            None if self.method != "GET" => parts.push(format!("-X {}", self.method)),
            None => {}
        }
        if self.response == ResponseContent::Bytes {
            parts.push("-o response".to_owned());
        }
        parts.join(" \\\n  ")
    }

    fn python(&self) -> String {
        let address = self.address(|name| format!("{{{name}}}"));
        let mut lines = vec![format!("f\"{{BASE}}{address}\"")];
        match self.credential {
            Credential::Nothing => {}
            Credential::Key => lines.push("auth=(API_KEY, PASSWORD)".to_owned()),
            Credential::Token => lines.push("headers={\"Authorization\": f\"Bearer {TOKEN}\"}".to_owned()),
            Credential::Session => lines.push("cookies={\"session\": SESSION}".to_owned()),
        }
        if let Some((_, body)) = self.body.filter(|(_, body)| !body.is_null()) {
            lines.push(format!("json={}", literal(body, 1, Words::Python)));
        }
        let response = match self.response {
            ResponseContent::Nothing => "response.status_code",
            ResponseContent::Json => "response.json()",
            ResponseContent::Text => "response.text",
            ResponseContent::Bytes => "len(response.content)",
        };
        format!(
            "import requests\n\nresponse = requests.{}(\n    {},\n)\nresponse.raise_for_status()\nprint({response})",
            self.method.to_lowercase(),
            lines.join(",\n    "),
        )
    }

    fn typescript(&self) -> String {
        let address = self.address(|name| format!("${{{name}}}"));
        let mut options = Vec::new();
        if self.method != "GET" {
            options.push(format!("method: \"{}\"", self.method));
        }
        let credential = match self.credential {
            Credential::Nothing => None,
            Credential::Key => Some("Authorization: `Basic ${btoa(`${API_KEY}:${PASSWORD}`)}`"),
            Credential::Token => Some("Authorization: `Bearer ${TOKEN}`"),
            Credential::Session => Some("Cookie: `session=${SESSION}`"),
        };
        let body = self.body.filter(|(_, body)| !body.is_null());
        let media = body.map(|(media, _)| format!("\"Content-Type\": \"{media}\""));
        let headers: Vec<String> = credential.map(str::to_owned).into_iter().chain(media).collect();
        if !headers.is_empty() {
            options.push(format!("headers: {{ {} }}", headers.join(", ")));
        }
        if let Some((_, body)) = body {
            options.push(format!("body: JSON.stringify({})", literal(body, 1, Words::Json)));
        }
        let options = if options.is_empty() { String::new() } else { format!(", {{\n  {},\n}}", options.join(",\n  ")) };
        let response = match self.response {
            ResponseContent::Nothing => "response.status",
            ResponseContent::Json => "await response.json()",
            ResponseContent::Text => "await response.text()",
            ResponseContent::Bytes => "(await response.arrayBuffer()).byteLength",
        };
        format!(
            "const response = await fetch(`${{BASE}}{address}`{options});\n\
             if (!response.ok) throw new Error(await response.text());\nconsole.log({response});"
        )
    }
}

/// The words and the indentation of a language for values of JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Json,
    Python,
}

impl Words {
    const fn indentation(self) -> usize {
        match self {
            Self::Json => 2,
            Self::Python => 4,
        }
    }
}

/// Returns a value as a literal, whose lines after the first are indented. Strings of JSON are strings in both languages.
fn literal(value: &Value, depth: usize, words: Words) -> String {
    let several = |open: char, lines: Vec<String>, close: char| {
        let outer = " ".repeat(depth * words.indentation());
        let inner = " ".repeat((depth + 1) * words.indentation());
        let lines: String = lines.iter().map(|line| format!("{inner}{line},\n")).collect();
        if lines.is_empty() { format!("{open}{close}") } else { format!("{open}\n{lines}{outer}{close}") }
    };
    match value {
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("{}: {}", Value::from(name.as_str()), literal(value, depth + 1, words))
            };
            several('{', members.iter().map(member).collect(), '}')
        }
        Value::Array(elements) => several('[', elements.iter().map(|element| literal(element, depth + 1, words)).collect(), ']'),
        Value::Null if words == Words::Python => "None".to_owned(),
        Value::Bool(true) if words == Words::Python => "True".to_owned(),
        Value::Bool(false) if words == Words::Python => "False".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COMMAND: &str = "curl -s \"$BASE/things/$THING_REF?pageSize=20\" \\\n  -u \"$API_KEY:$PASSWORD\" \\\n  \
                           -H 'Content-Type: application/json' \\\n  -d '{\n  \"name\": \"O'\\''Neill\",\n  \"open\": true\n}'";
    const PYTHON: &str = "import requests

response = requests.post(
    f\"{BASE}/things/{THING_REF}?pageSize=20\",
    auth=(API_KEY, PASSWORD),
    json={
        \"name\": \"O'Neill\",
        \"open\": True,
    },
)
response.raise_for_status()
print(response.json())";
    const TYPESCRIPT: &str = "const response = await fetch(`${BASE}/things/${THING_REF}?pageSize=20`, {
  method: \"POST\",
  headers: { Authorization: `Basic ${btoa(`${API_KEY}:${PASSWORD}`)}`, \"Content-Type\": \"application/json\" },
  body: JSON.stringify({
    \"name\": \"O'Neill\",
    \"open\": true,
  }),
});
if (!response.ok) throw new Error(await response.text());
console.log(await response.json());";

    #[test]
    fn a_request_is_the_same_in_each_language() {
        let body = json!({"name": "O'Neill", "open": true});
        let request = ExampleRequest {
            method: "POST",
            path: "/things/{thing_ref}",
            query: "?pageSize=20".to_owned(),
            credential: Credential::Key,
            body: Some(("application/json", &body)),
            response: ResponseContent::Json,
        };
        assert_eq!([request.command(), request.python(), request.typescript()], [COMMAND, PYTHON, TYPESCRIPT]);
        let html = request.render().into_string();
        assert_eq!(html.matches("type=\"radio\"").count(), 3, "{html}");
    }

    #[test]
    fn a_request_without_content_and_credential_has_no_options() {
        let (path, query, credential) = ("/x", String::new(), Credential::Nothing);
        let request = |method, response| ExampleRequest { method, path, query: query.clone(), credential, body: None, response };
        let read = request("GET", ResponseContent::Bytes);
        assert_eq!(read.command(), "curl -s \"$BASE/x\" \\\n  -o response");
        assert!(read.typescript().starts_with("const response = await fetch(`${BASE}/x`);\n"), "{}", read.typescript());
        let delete = request("DELETE", ResponseContent::Nothing);
        assert!(delete.command().ends_with("-X DELETE") && delete.python().contains("requests.delete("), "{}", delete.python());
    }
}
