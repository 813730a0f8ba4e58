//! `adj mcp`: the project's tools for an AI assistant, over standard input and output.

use std::sync::Arc;

use super::project::Project;
use super::{Context, Failure};
use api::{Method, Outgoing};
use serde_json::Value;
use server::mcp::{Backend, serve_stdio};

pub const HELP: &str = "\
Example:
  claude mcp add adjutant -- adj --project /path/to/repository mcp

Serves the Model Context Protocol on standard input and output until the input ends. With ADJ_TOKEN of an agent it offers \
the tools of that agent's role, otherwise those of a person. Agents that Adjutant starts are connected already.";

pub fn run(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    serve_stdio(Arc::new(project), context.out)
}

impl Backend for Project {
    fn ask(&self, asked: Outgoing) -> Result<Value, Failure> {
        let Outgoing { method, path, query, body } = asked;
        match method {
            Method::Get => self.get_with(&path, &query),
            method => Project::ask(self, method, &path, &body, None),
        }
    }
}
