//! Checks of server responses against the server's own OpenAPI description. The description must list the code of a
//! refusal for its operation.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use serde_json::Value;

/// The description. One is enough for all servers, because every server of a run is the same program.
static DESCRIPTION: OnceLock<Value> = OnceLock::new();
/// The described paths by request method and path, each looked up once.
static FOUND: Mutex<Option<HashMap<String, Option<String>>>> = Mutex::new(None);

/// Returns whether the description is known yet.
pub(crate) fn is_known() -> bool {
    DESCRIPTION.get().is_some()
}

/// Stores the description.
pub(crate) fn learn(description: Value) {
    DESCRIPTION.get_or_init(|| description);
}

/// Returns the mismatch between a refusal and the description. Returns `None` if they match or if no operation is
/// described.
pub(crate) fn misfit(method: &str, path: &str, status: u16, problem: &Value) -> Option<String> {
    let (description, code) = (DESCRIPTION.get()?, problem["code"].as_str()?);
    let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
    let template = template(description, method, path)?;
    let operation = &description["paths"][&template][method.to_ascii_lowercase()];
    let response = &operation["responses"][status.to_string()];
    let response = match response["$ref"].as_str() {
        Some(reference) => description.pointer(reference.trim_start_matches('#'))?,
        None => response,
    };
    let is_described = response["x-codes"].as_array().is_some_and(|codes| codes.iter().any(|known| known == code));
    (!is_described).then(|| format!("{method} {template} answers {status} {code}, which its description doesn't know"))
}

/// Returns the described path that matches a path. Fixed names take precedence over parameters.
fn template(description: &Value, method: &str, path: &str) -> Option<String> {
    let key = format!("{method} {path}");
    let mut found = FOUND.lock().expect("no panic while the lock is held");
    let found = found.get_or_insert_with(HashMap::new);
    if let Some(known) = found.get(&key) {
        return known.clone();
    }
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let of_template: Vec<&str> = template.trim_end_matches('/').split('/').collect();
        of_template.len() == parts.len() && of_template.iter().zip(&parts).all(|(is, part)| is.starts_with('{') || is == part)
    };
    let paths = description["paths"].as_object()?.iter();
    let described = paths.filter(|(template, item)| fits(template) && !item[method.to_ascii_lowercase()].is_null());
    let best = described.map(|(template, _)| template.clone()).min_by_key(|template| template.matches('{').count());
    found.insert(key, best.clone());
    best
}
