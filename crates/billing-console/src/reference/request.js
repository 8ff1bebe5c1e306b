// Sends the request of an operation's page and shows the response. Credentials and responses stay in the page's memory:
// nothing is stored, and the session cookie is not sent.
"use strict";

(() => {
  const MAX_SHOWN = 200000;

  const form = document.getElementById("request");
  if (!form) {
    return;
  }
  const element = (id) => document.getElementById(id);
  const value = (id) => element(id)?.value.trim() ?? "";

  function authorization() {
    const [token, key, password] = ["token", "key", "password"].map(value);
    if (token) {
      return `Bearer ${token}`;
    }
    return key && `Basic ${btoa(`${key}:${password}`)}`;
  }

  function parameters(place) {
    const inputs = [...form.querySelectorAll(`[data-in="${place}"]`)];
    return inputs.map((input) => [input.dataset.name, input.value.trim()]).filter(([, given]) => given);
  }

  // References may contain colons, which a path need not encode.
  const encoded = (text) => encodeURIComponent(text).replaceAll("%3A", ":");

  function path() {
    const given = new Map(parameters("path"));
    return form.dataset.path.replace(/\{(\w+)\}/g, (_, name) => encoded(given.get(name) ?? ""));
  }

  function request() {
    const headers = new Headers(parameters("header"));
    const credential = authorization();
    if (credential) {
      headers.set("Authorization", credential);
    }
    const options = { method: form.dataset.method, headers, credentials: "omit", cache: "no-store" };
    const body = value("body");
    if (element("dry-run")?.checked) {
      headers.delete("Idempotency-Key");
      headers.set("Content-Type", "application/json");
      // The text of the body is inserted, so that decimals keep all their digits.
      options.body = `{"path":${JSON.stringify(path())}${body ? `,"body":${body}` : ""}}`;
      return ["/api/dry_run", options];
    }
    if (body) {
      headers.set("Content-Type", value("media"));
      options.body = body;
    }
    const query = new URLSearchParams(parameters("query")).toString();
    return [path() + (query && `?${query}`), options];
  }

  // Indents JSON without parsing it, so that decimals keep all their digits.
  function indented(json) {
    const tokens = json.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g) ?? [];
    let depth = 0;
    let text = "";
    const line = () => "\n" + "  ".repeat(depth);
    tokens.forEach((token, index) => {
      const isEmpty = ["[", "{"].includes(tokens[index - 1]);
      if (token === "{" || token === "[") {
        depth += 1;
        text += token + (["]", "}"].includes(tokens[index + 1]) ? "" : line());
      } else if (token === "}" || token === "]") {
        depth -= 1;
        text += (isEmpty ? "" : line()) + token;
      } else {
        text += token === "," ? token + line() : token === ":" ? ": " : token;
      }
    });
    return text;
  }

  async function content(response) {
    const type = response.headers.get("Content-Type") ?? "";
    if (type && !/^text\/|json|xml/.test(type)) {
      return `${(await response.blob()).size} bytes of ${type}`;
    }
    const text = await response.text();
    const shown = text.slice(0, MAX_SHOWN);
    const isWhole = shown.length === text.length;
    return (isWhole && /json$/.test(type.split(";")[0]) ? indented(shown) : shown) + (isWhole ? "" : "\n…");
  }

  function show(status, headers, text) {
    element("status").textContent = status;
    element("headers").textContent = headers;
    element("headers").parentElement.hidden = !headers;
    element("content").textContent = text;
    element("content").hidden = !text;
    element("response").hidden = false;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const [address, options] = request();
      const response = await fetch(address, options);
      const headers = [...response.headers].map(([name, text]) => `${name}: ${text}`).join("\n");
      show(`${options.method} ${address}: ${response.status} ${response.statusText}`, headers, await content(response));
    } catch (error) {
      show(error.message, "", "");
    } finally {
      button.disabled = false;
    }
  });
  form.hidden = false;
})();
