//! MCP: the project as tools for AI assistants and for the agents at work in it.
//!
//! A tool is a column of its operation's row in the table of the API (`api/src/routes.rs`); `calls.rs` has the code of those that
//! are more than a request. The caller's token says who asks, and scope and kernel decide. The same tools are served over standard input and output
//! (`adj mcp`) and over HTTP ([`Service`]); both speak the revisions that [`REVISIONS`] names, and no tool needs a session.

mod architect;
mod backend;
mod calls;
mod channels;
#[cfg(debug_assertions)]
pub mod fixture;
mod mount;
mod stdio;
#[cfg(test)]
mod tests;
mod work;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ContentBlock, Implementation, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ServerCapabilities, ServerConfig, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::watch;

use crate::response::Body;
use crate::{Caller, Tokens};
use api::Failure;
use api::offered_tool::OfferedTool;
use api::types::caller::Caller as Asker;
use api::{self, Control, Host, Method, routes};
use backend::OwnerBackend;
use calls::{ToolAnswer, ToolContext};

pub use backend::Backend;
pub use mount::Mount;
pub use stdio::serve as serve_stdio;

/// Where the tools are served over HTTP.
pub const PATH: &str = "/mcp";
/// The revisions of the protocol that are spoken, the oldest first. The last knows neither `initialize` nor sessions.
const REVISIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
/// How long a client may keep the list of tools, in milliseconds. It is the caller's own: a token's role decides it.
const LIST_TTL_MS: u64 = 60_000;
const INSTRUCTIONS: &str = "Adjutant runs a fleet of coding agents on the tasks of a git repository. An agent at work \
    tells it of plan, questions and completion by these tools; a person's assistant looks at tasks, moves and approves them. \
    A refusal says what was wrong and what to do next.";

/// The tools, for one caller.
#[derive(Clone)]
pub struct Server {
    backend: Arc<dyn Backend>,
}

impl Server {
    pub fn new(backend: Arc<dyn Backend>) -> Server {
        Server { backend }
    }

    /// Who calls, as the project says.
    async fn caller(&self) -> Result<Asker, Failure> {
        let backend = self.backend.clone();
        off_the_loop(move || calls::caller(&*backend)).await
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let version = env!("CARGO_PKG_VERSION");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("adjutant", version))
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(REVISIONS)
    }

    // What is not among the capabilities is not there: a list of nothing would say otherwise.

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller().await.map_err(|failure| internal(&failure))?;
        let offered = routes::tools().filter(|offered| offered.is_for(&caller));
        let mut list = ListToolsResult::with_all_items(offered.map(described).collect());
        list.ttl_ms = Some(LIST_TTL_MS);
        list.cache_scope = Some(CacheScope::Private);
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(offered) = routes::tools().find(|offered| offered.tool.name == request.name) else {
            let message =
                format!("there is no tool `{}`; tools/list lists them", request.name.escape_debug());
            return Err(ErrorData::invalid_params(message, None));
        };
        let caller = match self.caller().await {
            Ok(caller) => caller,
            Err(failure) => return Ok(refused(&failure).into()),
        };
        if !offered.is_for(&caller) {
            let failure = Failure::new(api::Exit::Refused, offered.refusal(&caller))
                .hint("tools/list lists the tools that it may use");
            return Ok(refused(&failure).into());
        }
        let backend = self.backend.clone();
        let input = request.arguments.unwrap_or_default();
        let progress = Progress::new(context);
        let told = off_the_loop(move || {
            let still_wanted = |what: &str| progress.still_wanted(what);
            let context = ToolContext { backend: &*backend, caller: &caller, still_wanted: &still_wanted };
            calls::call(&context, offered, input)
        })
        .await;
        Ok(match told {
            Ok(told) => answered(told),
            Err(failure) => refused(&failure),
        }
        .into())
    }
}

/// As a client is told of it.
fn described(offered: OfferedTool) -> rmcp::model::Tool {
    let (tool, reads) = (offered.tool, offered.operation.method == Method::Get);
    let hints = ToolAnnotations::new().read_only(reads).open_world(false).destructive(false);
    let input = Arc::new(offered.input());
    rmcp::model::Tool::new(tool.name, tool.about, input).with_title(tool.title).annotate(hints)
}

/// Tells a client that wants to know that a call goes on, so that it does not give up waiting.
struct Progress {
    context: RequestContext<RoleServer>,
    runtime: tokio::runtime::Handle,
    told: AtomicU32,
}

impl Progress {
    fn new(context: RequestContext<RoleServer>) -> Progress {
        Progress { context, runtime: tokio::runtime::Handle::current(), told: AtomicU32::new(0) }
    }

    /// False: the client has canceled the call, or is gone.
    fn still_wanted(&self, what: &str) -> bool {
        if self.context.ct.is_cancelled() {
            return false;
        }
        let Some(token) = self.context.meta.get_progress_token() else { return true };
        let count = self.told.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = ProgressNotificationParam::new(token, f64::from(count)).with_message(what);
        self.runtime.block_on(self.context.peer.notify_progress(progress)).is_ok()
    }
}

/// Handlers block until what they asked is on disk, or answered.
async fn off_the_loop<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(Failure::new(api::Exit::Failed, "the call could not be answered: this is a bug")
            .hint("please report it, with the call")),
    }
}

fn answered(ToolAnswer { structured, text }: ToolAnswer) -> CallToolResult {
    let mut result = CallToolResult::structured(structured);
    if let Some(text) = text {
        result.content = vec![ContentBlock::text(text)];
    }
    result
}

/// A refusal is the tool's answer: what was wrong, and what to do next, in words that a model can act on.
fn refused(failure: &Failure) -> CallToolResult {
    let document = failure.document();
    let mut lines = vec![document.detail.clone()];
    lines.extend(document.errors.iter().flatten().map(|error| format!("{}: {}", error.field, error.message)));
    lines.extend(document.hint.as_ref().map(|hint| format!("What to do: {hint}")));
    for allowed in [&document.allowed_transitions, &document.allowed].into_iter().flatten() {
        if !allowed.is_empty() {
            lines.push(format!("Allowed: {}", allowed.join(", ")));
        }
    }
    lines.dedup();
    let mut result = CallToolResult::structured_error(api::operation::document(document));
    result.content = vec![ContentBlock::text(lines.join("\n"))];
    result
}

fn internal(failure: &Failure) -> ErrorData {
    let hint = failure.document().hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    ErrorData::internal_error(format!("{failure}{hint}"), None)
}

/// The tools over HTTP, in the process that owns the project. Token, Host and Origin are the server's to check before it
/// comes here; nothing of them is looked at again.
pub struct Service {
    pub project: Arc<dyn api::Project + Send + Sync>,
    pub host: Arc<dyn Host>,
    pub control: Arc<dyn Control>,
    pub tokens: Arc<Tokens>,
    pub mount: Arc<Mount>,
    /// Set when the server stops.
    pub stopping: Arc<AtomicBool>,
}

impl Service {
    /// Streams without an end of their own end when `stopping` says so.
    pub async fn answer(
        &self,
        request: http::Request<Body>,
        caller: Caller,
        stopping: watch::Receiver<bool>,
        within: std::time::Duration,
    ) -> http::Response<Body> {
        let (project, host) = (self.project.clone(), self.host.clone());
        let (control, tokens) = (self.control.clone(), self.tokens.clone());
        let server = Server::new(Arc::new(OwnerBackend {
            project,
            host,
            control,
            tokens,
            caller: caller.clone(),
            stopping: self.stopping.clone(),
        }));
        self.mount.answer(server, caller, request, stopping, within).await
    }
}
