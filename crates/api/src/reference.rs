//! The reference of the HTTP interface, `docs/api.md`, written from the table of routes and the schemas of its types. The
//! test compares them; `ADJ_WRITE_DOCS=1 cargo test --workspace --lib reference` writes the page.

#[path = "../../machines/src/tests/diff.rs"]
pub mod diff;

use super::offered_tool::OfferedTool;
use super::operation::{Operation, about_name};
use super::routes::{self, TABLE};
use super::types;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// How the type of a page is called, before what it holds.
const PAGE: &str = "PageOf";

const HEAD: &str = "\
<!-- Written from `crates/api/src/routes.rs` and `types`. To change it, change them and run
     `ADJ_WRITE_DOCS=1 cargo test --workspace --lib reference`. -->
# HTTP interface

`adj run` answers HTTP on the socket `.git/adjutant/socket/adj.sock`, and `adj serve` also at an address ([server.md](server.md));
every path below stands behind `/api/v1`. A command in another terminal asks there, and where no process runs the same code
answers in the command itself.

- **Token**: `Authorization: Bearer TOKEN`. A person's is in `.git/adjutant/token`, an agent's in its `ADJ_TOKEN`. Without
  one the answer is 401. The token says who asks and which role that is; no body or header can say otherwise.
- **Bodies** are JSON objects in camelCase, with `Content-Type: application/json`, of 1 MiB at most. Members and query
  parameters that are not listed here are refused with 400. A request that brings nothing may leave the body out.
- **Answers** are JSON in camelCase. Times are text in RFC 3339 UTC, amounts of money are in dollars. New members may be
  added to an answer at any time.
- **Lists** come in pages: `limit` says how many items, and `next` is sent as `after` for the next page.
- **Asking twice**: a change of which the rules decide takes `X-Idempotency-Key` (or `Idempotency-Key`, in quotes or not). A key
  is the caller's own. The same request again with the same key is done once, and gets the first response, byte for byte. If
  the first is still being decided, the answer is 409 `IN_FLIGHT` with `Retry-After`.
- **Who** may ask stands with each route. *As the rules decide* is for changes: a refusal is 403 (the role), 409 (the state)
  or 422 (something is missing), and says what is allowed.
- **Problems** are RFC 9457 documents with `type`, `title`, `status`, `detail`, `code` and, where there is something to do,
  `hint`. A rule that says no adds `errors` (`field`, `message`) and `allowed`.
  `errors` of a 409 is never empty: its field is `state` if no member of the request is at fault.
";

/// The document from which clients are generated, the web page's among them.
#[test]
fn reference_of_openapi_is_what_the_table_of_routes_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let mut document = serde_json::to_string_pretty(&*super::openapi::DOCUMENT).expect("it is JSON");
    document.push('\n');
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::write(path, &document).expect("the document can be written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        there == document,
        "docs/openapi.json is not what the table says; ADJ_WRITE_DOCS=1 cargo test --workspace --lib reference writes it:\n{}",
        diff::diff(&there, &document)
    );
}

#[test]
fn reference_is_what_the_table_of_routes_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md");
    let page = page();
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        there == page,
        "docs/api.md is not what the table says; ADJ_WRITE_DOCS=1 cargo test --workspace --lib reference writes it:\n{}",
        diff::diff(&there, &page)
    );
}

/// What a request must bring and what an answer holds are two things: a member with a default may be left out of the
/// first and is always in the second.
struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

fn page() -> String {
    let mut schemas = Schemas {
        requests: SchemaSettings::draft2020_12().for_deserialize().into_generator(),
        answers: SchemaSettings::draft2020_12().for_serialize().into_generator(),
    };
    let mut page = HEAD.to_owned();
    for subject in TABLE.iter() {
        let _ = writeln!(page, "\n## {}", subject.title);
        for route in &subject.operations {
            print(&mut page, route, &mut schemas);
        }
    }
    page.push_str("\n## Types\n");
    let mut types = schemas.requests.definitions().clone();
    types.retain(|name, _| !name.contains("Query") && !matches!(name.as_str(), "Nothing" | "Paging"));
    types.extend(schemas.answers.definitions().clone());
    // Pages differ only in what they hold.
    let page_of_any = types.iter().find(|(name, _)| name.starts_with(PAGE)).map(|(_, schema)| schema.clone());
    types.retain(|name, _| !name.starts_with(PAGE));
    types.extend(page_of_any.map(|mut schema| {
        schema["properties"]["items"] = json!({"type": "array", "items": {"type": "item"}});
        ("Page".to_owned(), schema)
    }));
    types.sort_keys();
    for (name, schema) in &types {
        let _ = writeln!(page, "\n### {name}\n");
        print_type(&mut page, schema);
    }
    page
}

fn print(page: &mut String, route: &Operation, schemas: &mut Schemas) {
    let Operation { method, path, about, status, .. } = route;
    let _ = writeln!(page, "\n### {} {path}\n\n{about}.\n", method.name());
    let _ = writeln!(page, "- Who: {}", route.who.words());
    let query = (route.query)(&mut schemas.requests).to_value();
    for (name, kind, about) in members(resolved(&query, schemas.requests.definitions())) {
        let kind = kind.trim_end_matches(", optional");
        let _ = writeln!(page, "- Query: `{name}` ({kind}): {about}");
    }
    let body = (route.body)(&mut schemas.requests).to_value();
    if kind(&body) != "[Nothing](#nothing)" {
        let _ = writeln!(page, "- Body: {}", kind(&body));
    }
    let answer = (route.answer)(&mut schemas.answers).to_value();
    let _ = writeln!(page, "- Answer: {status}, {}", kind(&answer));
    if let Some(streamed) = route.streamed {
        let event = streamed(&mut schemas.answers).to_value();
        let _ = writeln!(page, "- Events of the stream: {}", kind(&event));
    }
    let named = |name: &str, before: &str| format!("`{before}{name}`");
    let commands: Vec<String> = route.commands.iter().map(|name| named(name, "adj ")).collect();
    if !commands.is_empty() {
        let _ = writeln!(page, "- Command: {}", commands.join(", "));
    }
    let tools: Vec<String> = route.tools.iter().map(|tool| named(tool.name, "")).collect();
    if !tools.is_empty() {
        let _ = writeln!(page, "- [Tool](mcp.md): {}", tools.join(", "));
    }
}

fn print_type(page: &mut String, schema: &Value) {
    if let Some(about) = schema["description"].as_str() {
        let _ = writeln!(page, "{}\n", about.replace('\n', " "));
    }
    let members = members(schema);
    if !members.is_empty() {
        page.push_str("| member | holds | |\n| --- | --- | --- |\n");
        for (name, kind, about) in &members {
            let _ = writeln!(page, "| `{name}` | {} | {} |", cell(kind), cell(about));
        }
    }
    let variants = variants(schema);
    if !variants.is_empty() {
        let one_of = if members.is_empty() { "One of:" } else { "\nBeside these, one of:" };
        let _ = writeln!(page, "{one_of}\n");
        for variant in variants {
            let about = variant["description"].as_str().map(|about| format!(": {about}"));
            let _ = writeln!(page, "- {}{}", shape(variant), about.unwrap_or_default().replace('\n', " "));
        }
    }
    if members.is_empty() && self::variants(schema).is_empty() {
        let _ = writeln!(page, "{}.", capital(&kind(&without_description(schema))));
    }
}

fn without_description(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.shift_remove("description");
    }
    schema
}

/// Name, what it holds, and what it is for.
fn members(schema: &Value) -> Vec<(String, String, String)> {
    let required: Vec<&str> = list(&schema["required"]).iter().filter_map(Value::as_str).collect();
    let members = schema["properties"].as_object().into_iter().flatten();
    let member = |(name, schema): (&String, &Value)| {
        let about = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
        let kind = match (kind(schema), required.contains(&name.as_str())) {
            (kind, true) => kind,
            // Null says the same as leaving it out.
            (kind, false) => format!("{}, optional", kind.trim_end_matches(" or null")),
        };
        (name.clone(), kind, about)
    };
    members.map(member).collect()
}

fn variants(schema: &Value) -> &[Value] {
    match list(&schema["oneOf"]) {
        [] => list(&schema["anyOf"]),
        some => some,
    }
}

/// One of several forms: an object is shown with its members.
fn shape(schema: &Value) -> String {
    let members = members(schema);
    if members.is_empty() {
        return kind(schema);
    }
    let shown: Vec<String> = members.iter().map(|(name, kind, _)| format!("`{name}`: {kind}")).collect();
    format!("{{ {} }}", shown.join("; "))
}

/// What a schema lets through, in words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        let link = |name: &str| format!("[{name}](#{})", name.to_lowercase());
        return name
            .strip_prefix(PAGE)
            .map_or_else(|| link(name), |of| format!("{} of {}", link("Page"), link(of)));
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("`{word}`");
    }
    if let Some(words) = schema["enum"].as_array() {
        let (null, words): (Vec<&Value>, Vec<&Value>) = words.iter().partition(|word| word.is_null());
        let words: Vec<String> =
            words.into_iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return format!("{}{}", words.join(", "), if null.is_empty() { "" } else { " or null" });
    }
    let variants = variants(schema);
    if !variants.is_empty() {
        return variants.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(name) => of_type(name, schema),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            names.map(|name| of_type(name, schema)).collect::<Vec<_>>().join(" or ")
        }
        _ => "any JSON".to_owned(),
    }
}

fn of_type(name: &str, schema: &Value) -> String {
    match name {
        "array" => format!("array of {}", kind(&schema["items"])),
        name => name.to_owned(),
    }
}

fn resolved<'s>(schema: &'s Value, definitions: &'s Map<String, Value>) -> &'s Value {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    name.and_then(|name| definitions.get(name)).unwrap_or(schema)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Where the table of tools begins in `docs/mcp.md`, and where it ends.
const TOOLS: [&str; 2] = [
    "<!-- tools: printed from `crates/api/src/routes.rs` by `ADJ_WRITE_DOCS=1 cargo test --workspace --lib reference` -->",
    "<!-- tools: end -->",
];

#[test]
fn the_page_of_tools_lists_what_the_table_of_operations_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md");
    let there = std::fs::read_to_string(path).expect("the page is there");
    let (before, rest) = there.split_once(TOOLS[0]).expect("the page has the mark where its table begins");
    let (_, after) = rest.split_once(TOOLS[1]).expect("the page has the mark where its table ends");
    let mut table = "| tool | for | operation | what it does |\n| --- | --- | --- | --- |\n".to_owned();
    for offered in routes::tools() {
        let OfferedTool { operation, tool } = offered;
        let path = format!("{} {}", operation.method.name(), operation.path);
        let anchor: String = path.to_lowercase().replace(' ', "-");
        let anchor: String = anchor.chars().filter(|it| it.is_alphanumeric() || *it == '-').collect();
        let because = if tool.because.is_empty() { String::new() } else { format!("; {}", tool.because) };
        let audience: Vec<&str> = tool.audience.iter().map(|audience| audience.short()).collect();
        let (name, about) = (tool.name, cell(tool.about));
        let audience = audience.join(", ");
        let _ = writeln!(table, "| `{name}` | {audience} | [`{path}`](api.md#{anchor}){because} | {about} |");
    }
    let page = format!("{before}{}\n\n{table}\n{}{after}", TOOLS[0], TOOLS[1]);
    if std::env::var_os("ADJ_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        there == page,
        "docs/mcp.md is not what the table says; ADJ_WRITE_DOCS=1 cargo test --workspace --lib reference writes it:\n{}",
        diff::diff(&there, &page)
    );
}

#[test]
fn every_column_of_a_row_agrees_with_its_types() {
    let mut schemas = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    for operation in routes::all() {
        let row = format!("{} {}", operation.method.name(), operation.path);
        let query = (operation.query)(&mut schemas).to_value();
        let has_wait = !resolved(&query, schemas.definitions())["properties"][types::WAIT].is_null();
        assert_eq!(operation.waits, has_wait, "{row}: `waits` says whether its query has `wait`");
        for name in operation.path_names() {
            assert!(!about_name(name).is_empty(), "{row}: `about_name` says what `{name}` is");
        }
    }
}

#[test]
fn every_tool_has_a_name_of_its_own_and_says_why_it_has_code_of_its_own() {
    let mut names = BTreeSet::new();
    for offered in routes::tools() {
        let tool = offered.tool;
        assert!(names.insert(tool.name), "two tools are called {}", tool.name);
        assert_eq!(tool.own_code.is_some(), !tool.because.is_empty(), "{}", tool.name);
        assert!(!tool.audience.is_empty() && tool.about.ends_with('.'), "{}", tool.name);
        let input = Value::Object(offered.input());
        assert_eq!(input["type"], "object", "{}: {input}", tool.name);
        assert!(!input.to_string().contains("$ref"), "{}: not every client follows {input}", tool.name);
        for (member, schema) in input["properties"].as_object().into_iter().flatten() {
            let types = ["type", "enum", "anyOf", "description", "pattern"];
            assert!(types.iter().any(|word| !schema[*word].is_null()), "{}: {member}: {schema}", tool.name);
        }
    }
}

#[test]
fn every_row_says_what_it_is_for_in_a_sentence_without_its_full_stop() {
    for Operation { path, about, .. } in routes::all() {
        let capital = about.chars().next().is_some_and(char::is_uppercase);
        assert!(capital && !about.ends_with('.') && about.contains(' '), "{path}: {about}");
    }
}
