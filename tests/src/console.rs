//! Console requests as a browser without scripts sends them.

use crate::client::{Answer, Client, Request};

const FORM: &str = "application/x-www-form-urlencoded";

/// Sends a form.
pub fn submit(client: &Client, path: &str, form: &str) -> Answer {
    client.send(&Request::post(path, form).with("Content-Type", FORM))
}

/// Returns whether a response is an HTML page.
pub fn is_page(answer: &Answer) -> bool {
    answer.header("Content-Type") == "text/html; charset=utf-8"
}

/// Returns a console page after it checks the headers of the security policy.
///
/// # Panics
/// Panics if the response is no page or if a header violates the policy.
#[track_caller]
pub fn page(client: &Client, path: &str) -> String {
    let answer = client.get(path);
    assert!(answer.status == 200 && is_page(&answer), "{path}: {} {}", answer.status, answer.text);
    let policy = answer.header("Content-Security-Policy");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    assert_eq!((answer.header("Cache-Control"), answer.header("X-Frame-Options")), ("no-store", "DENY"), "{path}");
    answer.text
}

/// Returns the links of a page to other pages of the console.
pub fn links(page: &str) -> Vec<String> {
    let quoted = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    quoted.filter(|link| link.starts_with("/console")).map(|link| link.replace("&amp;", "&")).collect()
}

/// Returns the value of a hidden field of a page.
///
/// # Panics
/// Panics if the page has no such field.
#[track_caller]
pub fn hidden<'p>(page: &'p str, name: &str) -> &'p str {
    let (_, behind) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("no {name}: {page}"));
    behind.split('"').next().unwrap_or_default()
}

/// A form field that can be a file: the field name, the file name and the value.
pub type Part<'f> = (&'f str, Option<&'f str>, &'f str);

/// Sends the import form, which accepts files.
pub fn upload(client: &Client, parts: &[Part<'_>]) -> Answer {
    send_parts(client, "/console/import", parts)
}

/// Sends a form with files to a path.
pub fn send_parts(client: &Client, path: &str, parts: &[Part<'_>]) -> Answer {
    let part = |(name, file, value): &Part<'_>| {
        let file = file.map(|file| format!("; filename=\"{file}\"\r\nContent-Type: text/csv")).unwrap_or_default();
        format!("--b-1\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n")
    };
    let body: String = parts.iter().map(part).collect();
    let request = Request::post(path, format!("{body}--b-1--\r\n"));
    client.send(&request.with("Content-Type", "multipart/form-data; boundary=b-1"))
}

/// A form that changes data, read from a page.
#[derive(Clone, Debug)]
pub struct Form {
    /// The path that receives the form.
    pub action: String,
    /// The fields with their initial values.
    pub fields: Vec<(String, String)>,
    /// Whether the form accepts a file.
    pub takes_file: bool,
}

impl Form {
    /// Sends the form with its initial values and with additional values.
    pub fn send(&self, client: &Client, more: &[(&str, &str)]) -> Answer {
        let stated = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(more.iter().copied());
        if self.takes_file {
            let parts: Vec<Part<'_>> = stated.map(|(name, value)| (name, (name == "file").then_some("a.csv"), value)).collect();
            return send_parts(client, &self.action, &parts);
        }
        let pairs: Vec<String> = stated.map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        submit(client, &self.action, &pairs.join("&"))
    }
}

/// Returns the forms of a page that change data.
pub fn forms(page: &str) -> Vec<Form> {
    let mut found = Vec::new();
    for rest in page.split("<form ").skip(1) {
        let whole = rest.split("</form>").next().unwrap_or_default();
        let (tag, body) = whole.split_once('>').unwrap_or((whole, ""));
        if attribute(tag, "method") == Some("post") {
            let action = attribute(tag, "action").unwrap_or_default().replace("&amp;", "&");
            found.push(Form { action, fields: fields(body), takes_file: tag.contains("multipart/form-data") });
        }
    }
    found
}

fn fields(form: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in form.match_indices('<') {
        let tag = form[at + 1..].split('>').next().unwrap_or_default();
        let behind = &form[(at + tag.len() + 2).min(form.len())..];
        let Some(name) = attribute(tag, "name") else { continue };
        let says = if tag.starts_with("textarea") {
            behind.split("</textarea>").next()
        } else if tag.starts_with("select") {
            let options: Vec<&str> = behind.split("</select>").next().unwrap_or_default().split("<option").skip(1).collect();
            options
                .iter()
                .find(|option| option.contains(" selected"))
                .or(options.first())
                .and_then(|option| attribute(option, "value"))
        } else if tag.starts_with("input")
            && (!matches!(attribute(tag, "type"), Some("checkbox" | "radio")) || tag.contains(" checked"))
        {
            Some(attribute(tag, "value").unwrap_or_default())
        } else {
            None
        };
        found.extend(says.map(|says| (name.to_owned(), read(says))));
    }
    found
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    tag.split_once(&format!("{name}=\""))?.1.split('"').next()
}

fn read(markup: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")]
        .iter()
        .fold(markup.to_owned(), |text, (written, meant)| text.replace(written, meant))
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
