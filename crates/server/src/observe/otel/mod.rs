//! Spans for OpenTelemetry (cargo feature `otel`): runs, steps and calls of tools, made from the log when they have ended.
//!
//! They are sent to `OTEL_EXPORTER_OTLP_ENDPOINT` by OTLP over HTTP. What nobody takes is dropped: the log has it all.

mod names;
mod wire;

use std::collections::BTreeMap;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header;
use hyper_util::rt::TokioIo;
use kernel::{Event, World};
use log::Record;
use machines::Millis;
use machines::names::{EffectId, RunId};
use machines::run::{State, ToolStatus};
use prost::Message;
use tokio::sync::mpsc;

use self::wire::{
    KeyValue, OtlpSpan, OtlpStatus, Request, Resource, ResourceSpans, ScopeSpans, Value, attribute,
};
use crate::outgoing;

/// Whoever takes longer gets nothing.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Spans that wait to be sent; more are dropped.
const WAITING_MAX: usize = 2_048;
/// Spans that are sent at once.
const BATCH_MAX: usize = 512;

const INTERNAL: i32 = 1;
const WELL: i32 = 1;
const ERROR: i32 = 2;

/// The spans of one project, as its log is read.
pub struct Spans {
    project: String,
    runs: BTreeMap<RunId, Open>,
    steps: BTreeMap<EffectId, Open>,
    /// The step that a run is in.
    current: BTreeMap<RunId, EffectId>,
    send: mpsc::Sender<OtlpSpan>,
}

struct Open {
    since: Millis,
    run: RunId,
    attributes: Vec<KeyValue>,
    input_tokens: u64,
    output_tokens: u64,
    cost: u64,
    model: Option<String>,
}

impl Spans {
    /// `None` where nobody wants them.
    pub fn start(project: &str) -> Option<Spans> {
        let endpoint = std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT").ok().filter(|url| !url.is_empty())?;
        let (send, spans) = mpsc::channel(WAITING_MAX);
        tokio::spawn(export(format!("{}/v1/traces", endpoint.trim_end_matches('/')), spans));
        Some(Spans {
            project: project.to_owned(),
            runs: BTreeMap::new(),
            steps: BTreeMap::new(),
            current: BTreeMap::new(),
            send,
        })
    }

    pub fn take(&mut self, world: &World, record: &Record, event: &Event) {
        match event {
            Event::RunOpened(opened) => {
                let attributes = vec![
                    attribute(names::OPERATION, names::INVOKE_AGENT),
                    attribute(names::AGENT, opened.agent.to_string()),
                    attribute(names::TASK, opened.task.to_string()),
                ];
                self.runs.insert(opened.id.clone(), Open::new(record.at, &opened.id, attributes));
            }
            Event::EffectAsked(asked) => {
                if let kernel::Effect::StartStep { of: kernel::effect::StepStart::Task { run, .. }, .. } =
                    &asked.what
                {
                    let agent = world.run(run).map(|run| run.agent.to_string()).unwrap_or_default();
                    let attributes =
                        vec![attribute(names::OPERATION, names::CHAT), attribute(names::AGENT, agent)];
                    self.current.insert(run.clone(), asked.id.clone());
                    self.steps.insert(asked.id.clone(), Open::new(record.at, run, attributes));
                }
            }
            Event::Charged(charged) => self.charge(charged),
            Event::ToolAudited(audited) => {
                // Only the end of a call says how long it took.
                let Some(millis) = audited.millis else { return };
                let attributes = vec![
                    attribute(names::OPERATION, names::EXECUTE_TOOL),
                    attribute(names::TOOL, audited.tool.as_str()),
                    attribute(names::TOOL_CALL, audited.call.as_str()),
                ];
                let since = record.at - i64::try_from(millis).unwrap_or(0);
                let open = Open::new(since, &audited.id, attributes);
                let parent = self.current.get(&audited.id).map(ToString::to_string);
                let own = format!("{} {}", audited.id, audited.call);
                let name = format!("{} {}", names::EXECUTE_TOOL, audited.tool);
                let well = audited.status == ToolStatus::Complete;
                self.end(open, name, &own, parent.as_deref(), record.at, well);
            }
            Event::EffectEnded(ended) => {
                let Some(open) = self.steps.remove(&ended.id) else { return };
                let run = open.run.to_string();
                let well = world.run(&open.run).is_none_or(|run| run.state() != State::InError);
                let name = names::CHAT.to_owned();
                self.end(open, name, &ended.id.to_string(), Some(&run), record.at, well);
            }
            Event::RunMoved(moved) if matches!(moved.state, State::Idle | State::Completed) => {
                let Some(open) = self.runs.remove(&moved.id) else { return };
                self.current.remove(&moved.id);
                let (name, well) = (names::INVOKE_AGENT.to_owned(), moved.state == State::Completed);
                self.end(open, name, &moved.id.to_string(), None, record.at, well);
            }
            _ => {}
        }
    }

    /// What was used is of the run, and of the step that it is in.
    fn charge(&mut self, charged: &kernel::event::Charged) {
        let step = self.current.get(&charged.id).and_then(|step| self.steps.get_mut(step));
        for open in step.into_iter().chain(self.runs.get_mut(&charged.id)) {
            open.input_tokens += charged.input_tokens;
            open.output_tokens += charged.output_tokens;
            open.cost += if charged.priced { charged.cost } else { 0 };
            open.model = charged.model.as_ref().map(ToString::to_string).or(open.model.take());
        }
    }

    /// `own` names it among all of its run, and `parent` what it is a part of.
    fn end(&self, open: Open, name: String, own: &str, parent: Option<&str>, until: Millis, well: bool) {
        let Open { since, run, mut attributes, input_tokens, output_tokens, cost, model } = open;
        attributes.push(attribute(names::PROJECT, self.project.as_str()));
        attributes.push(attribute(names::RUN, run.to_string()));
        attributes.extend(model.map(|model| attribute(names::MODEL, model)));
        if input_tokens + output_tokens > 0 {
            attributes.push(attribute(names::INPUT_TOKENS, input_tokens));
            attributes.push(attribute(names::OUTPUT_TOKENS, output_tokens));
        }
        if cost > 0 {
            attributes.push(attribute(names::COST, Value::Float(cost as f64 / 1e6)));
        }
        let nanoseconds = |at: Millis| u64::try_from(at).unwrap_or(0).saturating_mul(1_000_000);
        let id = |of: &str, bytes| self.id(&format!("{run} {of}"), bytes);
        let span = OtlpSpan {
            trace_id: self.id(&run.to_string(), 16),
            span_id: id(own, 8),
            parent_span_id: parent.map(|parent| id(parent, 8)).unwrap_or_default(),
            name,
            kind: INTERNAL,
            start_nanoseconds: nanoseconds(since),
            end_nanoseconds: nanoseconds(until),
            attributes,
            status: Some(OtlpStatus { code: if well { WELL } else { ERROR } }),
        };
        // Whoever is too slow for them misses some.
        let _ = self.send.try_send(span);
    }

    /// The same for the same thing, whoever reads the log again.
    fn id(&self, of: &str, bytes: usize) -> Vec<u8> {
        let digits = base::secrets::hash(format!("{} {of}", self.project).as_bytes());
        let pairs = digits.as_bytes().chunks(2).take(bytes);
        pairs.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
    }
}

impl Open {
    fn new(since: Millis, run: &RunId, attributes: Vec<KeyValue>) -> Open {
        let run = run.clone();
        Open { since, run, attributes, input_tokens: 0, output_tokens: 0, cost: 0, model: None }
    }
}

async fn export(url: String, mut spans: mpsc::Receiver<OtlpSpan>) {
    let mut batch = Vec::new();
    while spans.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let attributes =
            vec![attribute(names::SERVICE, "adjutant"), attribute(names::VERSION, env!("CARGO_PKG_VERSION"))];
        let scope_spans = vec![ScopeSpans { spans: std::mem::take(&mut batch) }];
        let resource_spans = vec![ResourceSpans { resource: Some(Resource { attributes }), scope_spans }];
        let body = Request { resource_spans }.encode_to_vec();
        let _ = tokio::time::timeout(TIMEOUT, post(&url, body)).await;
    }
}

/// The address is the operator's own: a collector in the next container has no certificate.
async fn post(url: &str, body: Vec<u8>) -> Option<()> {
    let url: hyper::Uri = url.parse().ok()?;
    let secure = url.scheme_str() == Some("https");
    let authority = url.authority()?;
    let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let stream = outgoing::connect(secure, authority.host().trim_matches(['[', ']']), port).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    let connection = tokio::spawn(connection);
    let request = hyper::Request::post(url.path())
        .header(header::HOST, authority.as_str())
        .header(header::CONTENT_TYPE, "application/x-protobuf")
        .header(header::CONNECTION, "close")
        .body(Full::new(Bytes::from(body)))
        .ok()?;
    let answer = sender.send_request(request).await;
    connection.abort();
    answer.ok().map(drop)
}
