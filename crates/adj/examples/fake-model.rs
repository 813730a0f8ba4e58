//! A model on loopback that says what it is told to: the Messages and the Responses API as far as coding agents need them,
//! so that real agent programs can be driven without a key and without a network.
//!
//! `fake-model REPLIES.json [REQUESTS.jsonl [DOWN.json]]` prints its address and serves until it is ended. The first file is a
//! list; each reply is
//! `{"text": "…", "tools": [{"name": "Bash", "input": {…}}], "tokens": [in, out], "pause_ms": 0, "for": "…", "until": "FILE"}` or
//! `{"status": 529, "type": "overloaded_error", "headers": {"retry-after": "120"}}`, taken one after the other by requests
//! that offer tools. Others, such as those for a title, are answered with a word. After the last reply it says DONE. A tool
//! whose input is a text is called with that text. `for`: only a conversation that opens with this text is given the
//! reply, so that several agents can speak with it at once. `until`: nothing is said before there is such a file.
//!
//! The messages of every request that offers tools are appended to the second file, with who sends them. While there is a third file, the service is
//! away: every such request is answered by what stands in it, `{"status": 529}`, and takes no reply.
#![allow(clippy::unwrap_used, reason = "a tool for tests; what cannot go on ends it")]

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Model {
    /// What was not said yet.
    replies: Mutex<Vec<Value>>,
    /// Where requests are written to.
    requests: Option<Mutex<File>>,
    /// The service is away while this is there.
    down: Option<PathBuf>,
    ids: AtomicUsize,
}

/// How often is looked whether a file is there.
const LOOK: Duration = Duration::from_millis(20);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("usage: fake-model REPLIES.json [REQUESTS.jsonl [DOWN.json]]");
    let replies: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let requests = arguments.next().map(|path| Mutex::new(File::create(path).unwrap()));
    let down = arguments.next().map(PathBuf::from);
    let model = Arc::new(Model { replies: Mutex::new(replies), requests, down, ids: AtomicUsize::new(0) });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    std::io::stdout().flush().unwrap();
    for stream in listener.incoming().map_while(Result::ok) {
        let model = Arc::clone(&model);
        std::thread::spawn(move || {
            // A client that has gone is not waited for.
            let _ = model.serve(stream);
        });
    }
}

impl Model {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let (path, body) = read_request(&mut reader)?;
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        eprintln!("{path} {} messages, {} tools", count(&request["messages"]), count(&request["tools"]));
        if path.contains("count_tokens") {
            return answer(&mut stream, 200, "application/json", &[], r#"{"input_tokens":10}"#);
        }
        let responses = path.ends_with("/v1/responses");
        if !responses && !path.contains("/v1/messages") {
            return answer(&mut stream, 404, "application/json", &[], "{}");
        }
        // Some models are offered their tools with the messages.
        let offered = request["input"].as_array().into_iter().flatten();
        let offered =
            count(&request["tools"]) > 0 || offered.into_iter().any(|item| count(&item["tools"]) > 0);
        let reply =
            if offered { self.reply_to(&request) } else { json!({ "text": "ok", "tokens": [10, 1] }) };
        if let Some(status) = reply["status"].as_u64() {
            let kind = reply["type"].as_str().unwrap_or("api_error");
            let error =
                json!({ "type": "error", "error": { "type": kind, "message": format!("error {status}") } });
            let headers: Vec<(&str, &str)> = reply["headers"]
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
                .collect();
            return answer(&mut stream, status as u16, "application/json", &headers, &error.to_string());
        }
        if responses {
            stream.write_all(
                b"HTTP/1.1 200 fake\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            )?;
            for event in self.response(&reply) {
                stream.write_all(event.as_bytes())?;
                stream.flush()?;
                std::thread::sleep(Duration::from_millis(reply["pause_ms"].as_u64().unwrap_or(0)));
            }
            return Ok(());
        }
        let message = self.message(&request, &reply);
        if request["stream"].as_bool() == Some(true) {
            stream.write_all(
                b"HTTP/1.1 200 fake\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
            )?;
            for event in events(&message) {
                stream.write_all(event.as_bytes())?;
                stream.flush()?;
                std::thread::sleep(Duration::from_millis(reply["pause_ms"].as_u64().unwrap_or(0)));
            }
            Ok(())
        } else {
            answer(&mut stream, 200, "application/json", &[], &message.to_string())
        }
    }

    /// What is said to a request that offers tools.
    fn reply_to(&self, request: &Value) -> Value {
        let answer = self.down.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let away: Option<Value> = answer.map(|answer| serde_json::from_str(&answer).unwrap());
        if let Some(requests) = &self.requests {
            let messages = [&request["messages"], &request["input"]].into_iter().find(|list| list.is_array());
            let by = &request["metadata"]["user_id"];
            let line = json!({ "down": away.is_some(), "by": by, "messages": messages });
            writeln!(requests.lock().unwrap(), "{line}").unwrap();
        }
        if let Some(away) = away {
            return away;
        }
        let opening = opening(request);
        let mut replies = self.replies.lock().unwrap();
        let fits = |reply: &Value| reply["for"].as_str().is_none_or(|text| opening.contains(text));
        let reply = replies.iter().position(fits).map(|place| replies.remove(place));
        drop(replies);
        let reply = reply.unwrap_or_else(|| json!({ "text": "DONE" }));
        if let Some(file) = reply["until"].as_str() {
            while !Path::new(file).exists() {
                std::thread::sleep(LOOK);
            }
        }
        reply
    }

    /// The events of the Responses API.
    fn response(&self, reply: &Value) -> Vec<String> {
        let next = || self.ids.fetch_add(1, Ordering::Relaxed);
        let id = format!("resp_{:05}", next());
        let mut events = vec![json!({ "type": "response.created", "response": { "id": id } })];
        if let Some(text) = reply["text"].as_str() {
            let content = json!([{ "type": "output_text", "text": text }]);
            let item = json!({ "type": "message", "role": "assistant", "id": format!("msg_{:05}", next()), "content": content });
            events.push(json!({ "type": "response.output_item.done", "item": item }));
        }
        for tool in reply["tools"].as_array().into_iter().flatten() {
            let (number, name, input) = (next(), &tool["name"], &tool["input"]);
            let (item, call) = (format!("item_{number:05}"), format!("call_{number:05}"));
            let item = match input.as_str() {
                Some(text) => {
                    json!({ "type": "custom_tool_call", "id": item, "call_id": call, "name": name, "input": text })
                }
                None => {
                    let input = input.to_string();
                    json!({ "type": "function_call", "id": item, "call_id": call, "name": name, "arguments": input })
                }
            };
            events.push(json!({ "type": "response.output_item.done", "item": item }));
        }
        let (input, output) =
            (reply["tokens"][0].as_u64().unwrap_or(1000), reply["tokens"][1].as_u64().unwrap_or(50));
        let usage = json!({ "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": output,
            "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": input + output });
        events.push(json!({ "type": "response.completed", "response": { "id": id, "usage": usage } }));
        events.iter().map(line).collect()
    }

    fn message(&self, request: &Value, reply: &Value) -> Value {
        let mut content = Vec::new();
        if let Some(text) = reply["text"].as_str() {
            content.push(json!({ "type": "text", "text": text }));
        }
        let tools = reply["tools"].as_array().cloned().unwrap_or_default();
        for tool in &tools {
            let id = format!("toolu_{:05}", self.ids.fetch_add(1, Ordering::Relaxed));
            content
                .push(json!({ "type": "tool_use", "id": id, "name": tool["name"], "input": tool["input"] }));
        }
        json!({
            "id": format!("msg_{:05}", self.ids.fetch_add(1, Ordering::Relaxed)),
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": content,
            "stop_reason": if tools.is_empty() { "end_turn" } else { "tool_use" },
            "stop_sequence": null,
            "usage": {
                "input_tokens": reply["tokens"][0].as_u64().unwrap_or(1000),
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": reply["tokens"][1].as_u64().unwrap_or(50),
            },
        })
    }
}

/// What the user says before the model says anything, as it came. Some programs send a message about themselves before the prompt.
fn opening(request: &Value) -> String {
    let messages =
        [&request["messages"], &request["input"]].into_iter().filter_map(Value::as_array).flatten();
    let before = messages.into_iter().take_while(|message| message["role"] != "assistant");
    before.filter(|message| message["role"] == "user").map(|message| message["content"].to_string()).collect()
}

fn count(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

/// The events in which the message would have been streamed.
fn events(message: &Value) -> Vec<String> {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({ "type": "message_start", "message": start })];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let (empty, delta) = if block["type"] == "text" {
            (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": block["text"] }))
        } else {
            let mut empty = block.clone();
            empty["input"] = json!({});
            (empty, json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() }))
        };
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": message["stop_reason"], "stop_sequence": null });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": message["usage"] }));
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(line).collect()
}

/// An event as it is streamed.
fn line(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

fn read_request(reader: &mut impl BufRead) -> std::io::Result<(String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let (mut length, mut chunked) = (0, false);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let header = line.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        chunked |= header.starts_with("transfer-encoding:") && header.contains("chunked");
    }
    let mut body = Vec::new();
    if !chunked {
        reader.take(length).read_to_end(&mut body)?;
        return Ok((path, body));
    }
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
        reader.take(size).read_to_end(&mut body)?;
        line.clear();
        reader.read_line(&mut line)?;
        if size == 0 {
            return Ok((path, body));
        }
    }
}

fn answer(
    stream: &mut TcpStream,
    status: u16,
    kind: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status} fake\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n", body.len())?;
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "request-id: req_fake\r\nconnection: close\r\n\r\n{body}")?;
    stream.flush()
}
