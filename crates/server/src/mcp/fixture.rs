//! A server of MCP with the tools, prompts and resources that the public conformance suite asks for, mounted as the tools of
//! a project are. `adj internal mcp-fixture` runs it; it knows no project, and releases do not have it.
//!
//! `fixture.json` says what there is and what it answers; here is only how.
#![allow(deprecated, reason = "the older revisions have it, and the suite asks for it")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, InputRequest, InputRequiredResult, InputResponses, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, Prompt,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig, ServerRequest,
    SetLevelRequestParams, SubscribeRequestParams, Tool, UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{Mount, REVISIONS};
use crate::response::Body;
use crate::tcp::{self, ListenOptions};
use crate::{Caller, Names};
use api::{Exit, Failure};

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    serde_json::from_str(include_str!("fixture.json")).expect("the fixture is what this file says")
});

#[derive(Deserialize)]
struct Fixture {
    tools: Vec<FixtureTool>,
    prompts: Vec<FixturePrompt>,
    resources: Vec<FixtureResource>,
    templates: Vec<ResourceTemplate>,
}

#[derive(Deserialize)]
struct FixtureTool {
    tool: Tool,
    answer: CallToolResult,
    #[serde(default)]
    progress: Vec<f64>,
    #[serde(default)]
    logs: Vec<String>,
    #[serde(flatten)]
    questions: Questions,
}

#[derive(Deserialize)]
struct FixturePrompt {
    prompt: Prompt,
    /// With `{name}` where an argument goes.
    answer: Value,
    #[serde(flatten)]
    questions: Questions,
}

#[derive(Deserialize)]
struct FixtureResource {
    resource: Resource,
    content: ResourceContents,
}

/// What is asked of the client before there is an answer, round by round.
#[derive(Deserialize)]
struct Questions {
    #[serde(default)]
    asks: Vec<BTreeMap<String, InputRequest>>,
    /// The round is in a state that the client sends back, and not only in what it answers.
    #[serde(default)]
    stateful: bool,
}

impl Questions {
    /// What is still to be asked; nothing where all is answered.
    fn next(
        &self,
        state: Option<&str>,
        answers: Option<&InputResponses>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let mut round = state.map(round_of).transpose()?.unwrap_or(0);
        let is_answered = |asked: &BTreeMap<String, InputRequest>| {
            let answered = |key| answers.and_then(|answers| answers.get(key)).is_some_and(Value::is_object);
            asked.keys().all(answered)
        };
        if self.asks.get(round).is_some_and(is_answered) && (state.is_some() || !self.stateful) {
            round += 1;
        }
        let Some(asked) = self.asks.get(round) else { return Ok(None) };
        let declared = context.client_capabilities().map(|declared| json!(declared)).unwrap_or_default();
        let can = |request: &InputRequest| declared.get(capability(request)).is_some();
        let possible: BTreeMap<String, InputRequest> = asked
            .iter()
            .filter(|(_, request)| can(request))
            .map(|(key, request)| (key.clone(), request.clone()))
            .collect();
        if possible.is_empty() {
            let needed: Map<String, Value> =
                asked.values().map(|request| (capability(request).to_owned(), json!({}))).collect();
            let needed = serde_json::from_value(Value::Object(needed)).unwrap_or_default();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        let state = self.stateful.then(|| state_of(round));
        Ok(Some(InputRequiredResult::new(Some(possible), state)))
    }

    /// Asks all of it in the middle of the call, as the older revisions do: what the client says to each, by its name.
    async fn answered_at_once(
        &self,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let mut answers = Map::new();
        for (name, request) in self.asks.iter().flatten() {
            let mut request = json!(request);
            fill(&mut request, arguments);
            let wrong = |error: serde_json::Error| ErrorData::internal_error(error.to_string(), None);
            let request: ServerRequest = match serde_json::from_value(request).map_err(wrong)? {
                InputRequest::CreateMessage(request) => request.into(),
                InputRequest::Elicitation(request) => request.into(),
                InputRequest::ListRoots(request) => request.into(),
                _ => return Err(ErrorData::internal_error("the fixture asks what is not known", None)),
            };
            let said = context.peer.send_request(request).await;
            let said = said.map_err(|error| ErrorData::invalid_request(error.to_string(), None))?;
            answers.insert(name.clone(), json!(json!(said).to_string()));
        }
        Ok(Value::Object(answers))
    }
}

fn capability(request: &InputRequest) -> &'static str {
    match request {
        InputRequest::CreateMessage(_) => "sampling",
        InputRequest::Elicitation(_) => "elicitation",
        InputRequest::ListRoots(_) => "roots",
        _ => "experimental",
    }
}

/// A state that nobody can change unnoticed: there are few, and each has its hash behind it.
fn state_of(round: usize) -> String {
    format!("{round}.{}", base::secrets::hash(format!("conformance fixture {round}").as_bytes()))
}

fn round_of(state: &str) -> Result<usize, ErrorData> {
    let round = state.split('.').next().and_then(|round| round.parse().ok());
    let ours = round.filter(|round| state_of(*round) == state);
    ours.ok_or_else(|| ErrorData::invalid_params("the request state is not one that was given out", None))
}

#[derive(Clone)]
struct Server;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder();
        let can = can.enable_logging().enable_completions().enable_prompts().enable_resources();
        ServerConfig::new(can.enable_tools().build())
            .with_server_info(Implementation::new("adjutant-fixture", env!("CARGO_PKG_VERSION")))
    }

    fn supported_protocol_versions(&self) -> std::borrow::Cow<'static, [ProtocolVersion]> {
        REVISIONS.into()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        FIXTURE.tools.iter().map(|known| &known.tool).find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = FIXTURE.tools.iter().map(|known| known.tool.clone());
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let known = FIXTURE.tools.iter().find(|known| known.tool.name == request.name);
        let known = known.ok_or_else(|| ErrorData::invalid_params("there is no such tool", None))?;
        let (state, answers) = (request.request_state.as_deref(), request.input_responses.as_ref());
        let mut answer = json!(known.answer);
        if is_old(&context) && !known.questions.asks.is_empty() {
            let arguments = Value::Object(request.arguments.unwrap_or_default());
            fill(&mut answer, &known.questions.answered_at_once(&arguments, &context).await?);
        } else if let Some(asked) = known.questions.next(state, answers, &context)? {
            return Ok(CallToolResponse::InputRequired(asked));
        }
        if let Some(token) = context.meta.get_progress_token() {
            for progress in &known.progress {
                let told = ProgressNotificationParam::new(token.clone(), *progress).with_total(100.0);
                let _ = context.peer.notify_progress(told).await;
            }
        }
        // Since then a client says with each request whether it wants any, and this suite's does not.
        for line in known.logs.iter().filter(|_| is_old(&context)) {
            let told = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
            let _ = context.peer.notify_logging_message(told).await;
        }
        let answer: CallToolResult = serde_json::from_value(answer)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(answer.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = FIXTURE.prompts.iter().map(|known| known.prompt.clone());
        Ok(ListPromptsResult::with_all_items(prompts.collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let known = FIXTURE.prompts.iter().find(|known| known.prompt.name == request.name);
        let known = known.ok_or_else(|| ErrorData::invalid_params("there is no such prompt", None))?;
        let (state, answers) = (request.request_state.as_deref(), request.input_responses.as_ref());
        if let Some(asked) = known.questions.next(state, answers, &context)? {
            return Ok(GetPromptResponse::InputRequired(asked));
        }
        let mut answer = known.answer.clone();
        fill(&mut answer, &json!(request.arguments.unwrap_or_default()));
        let answer: GetPromptResult = serde_json::from_value(answer)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(answer.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = FIXTURE.resources.iter().map(|known| known.resource.clone());
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(FIXTURE.templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        if let Some(known) = FIXTURE.resources.iter().find(|known| known.resource.uri == uri) {
            return Ok(ReadResourceResult::new(vec![known.content.clone()]).into());
        }
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let Some(id) = id else {
            return Err(ErrorData::resource_not_found(
                "there is no such resource",
                Some(json!({"uri": uri})),
            ));
        };
        let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string();
        let content = ResourceContents::text(text, uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![content]).into())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        only_old::<rmcp::model::SetLevelRequestMethod>(&context)
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

/// The newest revision does not know it any more.
fn only_old<M: rmcp::model::ConstString>(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    match is_old(context) {
        true => Ok(()),
        false => Err(ErrorData::method_not_found::<M>()),
    }
}

fn is_old(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_none_or(|revision| revision < ProtocolVersion::V_2026_07_28)
}

/// Puts arguments where their names stand in braces.
fn fill(answer: &mut Value, arguments: &Value) {
    match answer {
        Value::String(text) => {
            for (name, value) in arguments.as_object().into_iter().flatten() {
                *text = text.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, arguments)),
        Value::Object(members) => members.values_mut().for_each(|value| fill(value, arguments)),
        _ => {}
    }
}

/// Serves it at a free port of this machine until the process is ended; one line of JSON says where.
pub fn serve(out: &mut dyn Write) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listen = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let client_timeout = crate::CLIENT_TIMEOUT;
        let wish = ListenOptions {
            listen,
            port: 0,
            tls: None,
            behind_proxy: false,
            public: None,
            open: true,
            client_timeout,
        };
        let listening =
            tcp::listen(&wish).await.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        writeln!(out, "{}", json!({"url": listening.url}))?;
        out.flush()?;
        let names = Arc::new(listening.names);
        let mount = Arc::new(Mount::default());
        let (_never, stopping) = watch::channel(false);
        loop {
            let (stream, _) = listening.listener.accept().await?;
            let (names, mount, stopping) = (names.clone(), mount.clone(), stopping.clone());
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    answer(names.clone(), mount.clone(), stopping.clone(), request)
                });
                let mut http = http1::Builder::new();
                // A client that goes away is no news.
                let _ = http.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

/// The same checks as at the server's backend, and the same mount.
async fn answer(
    names: Arc<Names>,
    mount: Arc<Mount>,
    stopping: watch::Receiver<bool>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    if let Err(problem) = names.check(&parts) {
        let mut refused = Response::new(Body::from(problem.detail));
        *refused.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
        return Ok(refused);
    }
    let request = Request::from_parts(parts, Body::new(body));
    Ok(mount
        .answer(Server, Caller::person("suite"), request, stopping, std::time::Duration::from_secs(30))
        .await)
}
