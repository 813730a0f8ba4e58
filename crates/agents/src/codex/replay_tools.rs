//! The tool servers in the settings of a replayed Codex: checked, started and called as the program does it.

use super::SERVER;
use machines::run::OWN_TOOLS;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::process::{Command, Stdio};
use toml_edit::{DocumentMut, Item};

/// What a server's program has of the environment, beside the variables that the settings name.
const ANYWAY: [&str; 3] = ["HOME", "PATH", "TMPDIR"];

/// What is wrong with the settings' servers: there must be ours and no other, and no token in the file.
pub(super) fn wrong(config: &str) -> Option<String> {
    let token = std::env::var("ADJ_TOKEN").unwrap_or_default();
    if !token.is_empty() && config.contains(&token) {
        return Some("the token is in a file".to_owned());
    }
    let Ok(config) = config.parse::<DocumentMut>() else {
        return Some("its settings are not TOML".to_owned());
    };
    let servers = config.get("mcp_servers").and_then(Item::as_table_like);
    let named: Vec<&str> = servers.into_iter().flat_map(|all| all.iter()).map(|(name, _)| name).collect();
    (named != [SERVER]).then(|| format!("its servers are {named:?}"))
}

/// Calls a tool of ours: what the item of the call says of it in the end.
pub(super) fn call(config: &str, tool: &str, input: &Map<String, Value>) -> io::Result<Value> {
    let config: DocumentMut = config.parse().map_err(io::Error::other)?;
    let server = &config["mcp_servers"][SERVER];
    let list = |name: &str| -> Vec<String> {
        let items = server.get(name).and_then(Item::as_array).into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let mut command = Command::new(server["command"].as_str().unwrap_or_default());
    command.args(list("args")).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
    for name in ANYWAY.into_iter().map(str::to_owned).chain(list("env_vars")) {
        if let Ok(value) = std::env::var(&name) {
            command.env(name, value);
        }
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "replay", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = tool.strip_prefix(OWN_TOOLS).unwrap_or(tool);
    let params = json!({ "name": name, "arguments": input, "_meta": meta });
    let mut child = command.spawn()?;
    if let Some(mut line) = child.stdin.take() {
        writeln!(line, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))?;
    }
    // The end of its input ends it, once it has answered.
    let said = child.wait_with_output()?;
    let answer: Value = serde_json::from_slice(&said.stdout)?;
    Ok(match answer["error"]["message"].as_str() {
        Some(error) => json!({ "status": "failed", "error": { "message": error } }),
        None => {
            let status = if answer["result"]["isError"] == true { "failed" } else { "completed" };
            json!({ "status": status, "result": answer["result"] })
        }
    })
}
