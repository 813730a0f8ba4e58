//! `adj token …`: who may talk to the server, and as what.

use super::project::Project;
use super::text::{self, Table, dash};
use super::{Context, Failure};
use crate::api::Method;
use crate::api::types::Nothing;
use crate::api::types::token::{Minted, NewToken, TokenLine, TokenRole};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a token for a colleague, a program or an agent that runs elsewhere
    #[command(after_help = "\
Example:
  adj token create --name ann --role person
  adj token create --name dashboard --role reader --days 90
  ADJ_TOKEN=$(adj token create --name ci --role lead --quiet) adj --server https://adj.example.com board

The token is printed this once; only its hash is kept.")]
    Create(Create),
    /// List the tokens that were created
    #[command(after_help = "Example:\n  adj token ls")]
    Ls,
    /// Revoke a token; it lets nobody in from then on
    #[command(after_help = "Example:\n  adj token revoke 1f0c55a2b9d4")]
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub struct Create {
    /// Name of who uses it; what is done with it is recorded under this name
    #[arg(long)]
    name: String,
    /// What its holder may do
    #[arg(long, value_enum)]
    role: TokenRole,
    /// Days until it ends [default: until it is revoked]
    #[arg(long, value_name = "N")]
    days: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Revoke {
    /// Id of the token, as `adj token ls` lists it
    id: String,
}

pub fn run(command: Command, context: Context) -> Result<(), Failure> {
    match command {
        Command::Create(command) => create(command, context),
        Command::Ls => list(context),
        Command::Revoke(command) => revoke(&command, context),
    }
}

fn create(command: Create, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let Create { name, role, days } = command;
    let made: Minted = project.post("/tokens", &NewToken { name, role, days })?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&made))?);
    }
    writeln!(context.out, "{}", made.token)?;
    let TokenLine { id, name, role, .. } = &made.line;
    let hint = format!("{name} is {role} with it; it is not shown again; `adj token revoke {id}` ends it");
    Project::hint(&context.globals, &hint);
    Ok(())
}

fn list(context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let tokens: Vec<TokenLine> = project.get_all("/tokens", &Nothing {})?;
    if context.globals.json {
        return Ok(writeln!(context.out, "{}", text::json(&tokens))?);
    }
    if tokens.is_empty() {
        return match context.globals.quiet {
            true => Ok(()),
            false => Ok(writeln!(context.out, "no tokens; `adj token create` makes one")?),
        };
    }
    let mut table = Table::new(&["ID", "NAME", "ROLE", "CREATED", "EXPIRES"]);
    for TokenLine { id, name, role, created_at, expires_at } in tokens {
        table.row([id, name, role.to_string(), created_at, dash(expires_at)]);
    }
    Ok(write!(context.out, "{table}")?)
}

fn revoke(command: &Revoke, context: Context) -> Result<(), Failure> {
    let project = Project::find(&context.globals)?;
    let path = format!("/tokens/{}", command.id);
    let revoked: TokenLine = project.ask(Method::Delete, &path, &Nothing {}, None)?;
    match context.globals.json {
        true => Ok(writeln!(context.out, "{}", text::json(&revoked))?),
        false => Ok(writeln!(context.out, "revoked {} ({})", revoked.id, revoked.name)?),
    }
}
