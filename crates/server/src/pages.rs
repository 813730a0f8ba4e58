//! What a browser is shown, and what programs that watch the server ask. No page loads anything from elsewhere.

use std::fmt::Write;
use std::sync::LazyLock;

use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use super::{HttpServer, TcpTransport};
use crate::response::{Body, Response};
use api::openapi;

/// Where a link becomes a session.
pub const SESSION: &str = "/session";
/// The page behind a link: its secret stands behind the `#`.
pub const ENTER: &str = "/enter";
/// The header with the page key, which only pages of this origin can send.
pub const PAGE_KEY: &str = "x-adj-page-key";

const ENTER_SCRIPT: &str = include_str!("pages/enter.js");
const PAGE_SCRIPT: &str = include_str!("pages/page.js");
const STYLE: &str = include_str!("pages/style.css");
const ENTER_BODY: &str = "<h1>Adjutant</h1><p id=\"said\">Signing in…</p><noscript><p>This page needs JavaScript to sign you \
    in.</p></noscript><script src=\"/enter.js\"></script>";
const SHELL_BODY: &str = "<h1>Adjutant</h1><p>You are not signed in. Run <code>adj url</code> in the project, and open the \
    link that it prints.</p><noscript><p>These pages need JavaScript.</p></noscript>";
const SHELL_SCRIPT: &str = "<script src=\"/page.js\"></script>";

/// First parts of paths that are no page of the web page: what stands behind them is for programs, or is a page of its own.
const NOT_OF_THE_PAGE: &[&str] = &[
    "api",
    "v1",
    "mcp",
    "metrics",
    "docs",
    "openapi.json",
    "healthz",
    "readyz",
    "session",
    "style.css",
    "page.js",
];

/// The web page, where it is built in: one document for all of its addresses, the same for everybody. It says nothing of
/// any project; what it shows it asks for by itself, with the page key.
fn page(parts: &Parts) -> Option<Response> {
    let path = parts.uri.path();
    if let Some(file) = web::file(path).filter(|file| file.path != "/index.html") {
        return Some(embedded(file, parts));
    }
    let within = match path.strip_prefix("/p/") {
        Some(rest) => rest.split_once('/').map_or("", |(_, within)| within),
        None => path.trim_start_matches('/'),
    };
    let first = within.split('/').next().unwrap_or_default();
    let wanted = !NOT_OF_THE_PAGE.contains(&first) && (path == ENTER || accepts_html(parts));
    wanted.then(web::index).flatten().map(|index| embedded(index, parts))
}

/// A browser that opens an address, and no program.
fn accepts_html(parts: &Parts) -> bool {
    let accepted = parts.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accepted.is_some_and(|accept| accept.contains("text/html"))
}

/// A file of the page in the form that the browser takes, or that it has it already.
fn embedded(file: &'static web::File, parts: &Parts) -> Response {
    let text = |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let seen =
        text(header::IF_NONE_MATCH).is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == file.tag));
    let (bytes, encoding) = file.encoded(text(header::ACCEPT_ENCODING).unwrap_or_default());
    let mut response = typed(file.content_type(), if seen { &b""[..] } else { bytes });
    let kept = if file.is_immutable() { "public, max-age=31536000, immutable" } else { "no-cache" };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    headers.insert(header::ETAG, HeaderValue::from_static(file.tag));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Some(encoding) = encoding.filter(|_| !seen) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    if seen {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    response
}

/// What is the same for everybody and says nothing of any project.
pub(super) fn before_anybody_asks(_: &TcpTransport, parts: &Parts) -> Option<Response> {
    if parts.method != Method::GET {
        return None;
    }
    if let Some(page) = page(parts) {
        return Some(page);
    }
    match parts.uri.path() {
        "/healthz" => Some(plain("ok\n")),
        ENTER => Some(html(StatusCode::OK, "Adjutant", ENTER_BODY)),
        "/enter.js" => Some(typed("text/javascript; charset=utf-8", ENTER_SCRIPT)),
        "/page.js" => Some(typed("text/javascript; charset=utf-8", PAGE_SCRIPT)),
        "/style.css" => Some(typed("text/css; charset=utf-8", STYLE)),
        _ => None,
    }
}

/// For a browser that shows nothing by which it could be known, which is every navigation: a script in it asks for the
/// same address with the page key. It is the same for everybody and says nothing of any project.
pub(super) fn shell() -> Response {
    document(StatusCode::UNAUTHORIZED, "Adjutant", SHELL_BODY, SHELL_SCRIPT)
}

/// For a browser that followed a link on another web page. The secret of a link of ours is behind the `#`, where that
/// page is, so refusing it would protect nothing.
pub(super) fn followed(parts: &Parts) -> Response {
    if let Some(page) = page(parts) {
        return page;
    }
    match parts.uri.path() {
        ENTER => html(StatusCode::OK, "Adjutant", ENTER_BODY),
        _ => shell(),
    }
}

/// For whoever may ask the project.
pub(super) fn of_place(path: &str) -> Option<Response> {
    match path {
        "/" => Some(html(StatusCode::OK, "Adjutant", &home(&[]))),
        "/openapi.json" => Some(typed("application/json", OPENAPI.as_str())),
        "/docs" => Some(html(StatusCode::OK, "Adjutant: HTTP interface", &DOCS)),
        _ => None,
    }
}

/// What a Prometheus server reads.
pub(super) fn metrics(page: String) -> Response {
    typed("text/plain; version=0.0.4; charset=utf-8", page)
}

/// For whoever may ask one of the projects.
pub(super) fn of_house(server: &HttpServer, path: &str) -> Option<Response> {
    match path {
        "/" => {
            let names: Vec<&str> = server.projects.keys().map(String::as_str).collect();
            Some(html(StatusCode::OK, "Adjutant", &home(&names)))
        }
        path => of_place(path),
    }
}

fn home(projects: &[&str]) -> String {
    let mut page = "<h1>Adjutant</h1>".to_owned();
    if !projects.is_empty() {
        page.push_str("<p>Projects of this server:</p><ul>");
        for name in projects {
            let name = escaped(name);
            let _ = write!(page, "<li><a href=\"/p/{name}/\">{name}</a></li>");
        }
        page.push_str("</ul>");
    }
    if web::index().is_none() {
        page.push_str(
            "<p>This program was built without its web page. To get it, install node 20 or later, which brings npm, and \
             build again: <code>cargo build</code> builds the page, too.</p>",
        );
    }
    page.push_str(
        "<p>Programs use <code>/api/v1</code>: see the <a href=\"/docs\">HTTP interface</a> (<a \
         href=\"/openapi.json\">OpenAPI</a>). <code>adj</code> on the command line does all of it.</p>",
    );
    page
}

static OPENAPI: LazyLock<String> = LazyLock::new(|| openapi::DOCUMENT.to_string());
static DOCS: LazyLock<String> = LazyLock::new(|| docs(&openapi::DOCUMENT));

/// The document as a page for people.
fn docs(document: &Value) -> String {
    let mut page =
        "<h1>HTTP interface</h1><p>Every path starts with <code>/api/v1</code>. Send <code>Authorization: \
     Bearer TOKEN</code>. The same as a document for programs: <a href=\"/openapi.json\">OpenAPI</a>.</p>"
            .to_owned();
    for tag in list(&document["tags"]) {
        let title = tag["name"].as_str().unwrap_or_default();
        let _ = write!(page, "<h2>{}</h2>", escaped(title));
        for (path, methods) in members(&document["paths"]) {
            for (method, operation) in members(methods) {
                if operation["tags"][0] == title {
                    operation_page(&mut page, method, path, operation);
                }
            }
        }
    }
    page.push_str("<h2>Types</h2>");
    for (name, schema) in members(&document["components"]["schemas"]) {
        let _ = write!(page, "<section id=\"{0}\"><h3>{0}</h3>", escaped(name));
        if let Some(about) = schema["description"].as_str() {
            let _ = write!(page, "<p>{}</p>", escaped(about));
        }
        let fields: Vec<_> = members(&schema["properties"]).collect();
        if fields.is_empty() {
            let _ = write!(page, "<p>{}</p>", kind(schema));
        } else {
            page.push_str("<table>");
            for (field, schema) in fields {
                row(&mut page, field, schema);
            }
            page.push_str("</table>");
        }
        page.push_str("</section>");
    }
    page
}

fn operation_page(page: &mut String, method: &str, path: &str, operation: &Value) {
    let text = |member: &str| escaped(operation[member].as_str().unwrap_or_default());
    let _ = write!(
        page,
        "<section id=\"{id}\"><h3><code>{method}</code> <code>{path}</code></h3><p>{summary}. {who}</p>",
        id = text("operationId"),
        method = method.to_uppercase(),
        path = escaped(path),
        summary = text("summary"),
        who = text("description"),
    );
    let parameters: Vec<&Value> =
        list(&operation["parameters"]).filter(|parameter| parameter["in"] == "query").collect();
    if !parameters.is_empty() {
        page.push_str("<table>");
        for parameter in parameters {
            let mut schema = parameter["schema"].clone();
            schema["description"] = parameter["description"].clone();
            row(page, parameter["name"].as_str().unwrap_or_default(), &schema);
        }
        page.push_str("</table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        let _ = write!(page, "<p>Body: {}</p>", kind(body));
    }
    let answered = members(&operation["responses"]).find(|(status, _)| status.starts_with('2'));
    if let Some((status, answer)) = answered {
        let answer = kind(&answer["content"]["application/json"]["schema"]);
        let _ = write!(page, "<p>Answer: {status}, {answer}</p>");
    }
    page.push_str("</section>");
}

fn row(page: &mut String, name: &str, schema: &Value) {
    let about = escaped(schema["description"].as_str().unwrap_or_default());
    let _ = write!(
        page,
        "<tr><td><code>{}</code></td><td>{}</td><td>{about}</td></tr>",
        escaped(name),
        kind(schema)
    );
}

/// What a value looks like, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return format!("<a href=\"#{0}\">{0}</a>", escaped(name));
    }
    for several in ["anyOf", "oneOf"] {
        let kinds: Vec<String> = list(&schema[several]).map(kind).collect();
        if !kinds.is_empty() {
            return kinds.join(" or ");
        }
    }
    if !schema["enum"].is_null() {
        let words: Vec<String> = list(&schema["enum"])
            .map(|word| format!("<code>{}</code>", escaped(&word.to_string())))
            .collect();
        return words.join(", ");
    }
    if !schema["const"].is_null() {
        return format!("<code>{}</code>", escaped(&schema["const"].to_string()));
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", self::kind(&schema["items"])),
        Value::String(kind) => escaped(kind),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            escaped(&kinds.join(" or "))
        }
        _ => "anything".to_owned(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            letter => shown.push(letter),
        }
    }
    shown
}

fn html(status: StatusCode, title: &str, body: &str) -> Response {
    document(status, title, body, "")
}

fn document(status: StatusCode, title: &str, body: &str, script: &str) -> Response {
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>{}</title><link rel=\"stylesheet\" href=\"/style.css\"></head>\
         <body><main>{body}</main>{script}</body></html>",
        escaped(title)
    );
    let mut response = typed("text/html; charset=utf-8", page);
    *response.status_mut() = status;
    response
}

fn plain(text: &'static str) -> Response {
    typed("text/plain; charset=utf-8", text)
}

/// Nothing but what we serve ourselves is loaded or run, and nobody shows it inside a page of theirs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    manifest-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// Whether every project's owner still answers.
pub(super) fn ready(server: &HttpServer) -> Response {
    let broken: Vec<&String> = server
        .projects
        .iter()
        .filter(|(_, project)| !project.services.project.lives())
        .map(|(name, _)| name)
        .collect();
    let mut response = typed("application/json", json!({"ready": broken.is_empty()}).to_string());
    if !broken.is_empty() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_route_and_loads_nothing_from_elsewhere() {
        for route in api::routes::all() {
            assert!(DOCS.contains(&escaped(route.about)), "{} {}", route.method.name(), route.path);
        }
        assert!(!DOCS.contains("//"), "an address of somebody else's");
    }

    #[test]
    fn text_is_shown_as_text() {
        assert_eq!(escaped("<script>\"&'"), "&lt;script&gt;&quot;&amp;&#39;");
    }
}
