//! `adj token …`: who may talk to the server, and as what.

use super::project::Project;
use super::text::{self, Table, dash};
use super::{Context, Failure};
use api::Method;
use api::types::Nothing;
use api::types::token::{Minted, NewToken, TokenLine, TokenRole};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a token for a colleague, a program or an agent that runs elsewhere
    #[command(after_help = "\
Example:
  adj token create --name ann --role person
  adj token create --name dashboard --role reader --days 90
  export ADJ_TOKEN=$(adj token create --name ci --role lead --quiet)
  adj --server https://adj.example.com board

The token is printed only now; the server stores its hash.")]
    Create(Create),
    /// List tokens
    #[command(after_help = "Example:\n  adj token ls")]
    Ls,
    /// Revoke a token; the server refuses it from then on
    #[command(after_help = "Example:\n  adj token revoke 1f0c55a2b9d4")]
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub struct Create {
    /// Name of its user; the history shows actions under this name
    #[arg(long)]
    name: String,
    /// Permissions of its user
    #[arg(long, value_enum)]
    role: Role,
    /// Days until it expires [default: never]
    #[arg(long, value_name = "N")]
    days: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Revoke {
    /// Id of the token, as `adj token ls` lists it
    id: String,
}

/// A role as the command line names it.
#[derive(Clone, Debug)]
pub struct Role(TokenRole);

impl ValueEnum for Role {
    fn value_variants<'a>() -> &'a [Role] {
        use TokenRole::{Intern, Lead, Person, Reader, Specialist};
        &[Role(Person), Role(Reader), Role(Lead), Role(Specialist), Role(Intern)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.0.to_string());
        Some(match self.0 {
            TokenRole::Person => value.help("All that people may"),
            TokenRole::Reader => value.help("Look at everything, and change nothing"),
            TokenRole::Lead => value.help("What an agent of this role may"),
            TokenRole::Specialist | TokenRole::Intern => value,
        })
    }
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
    let Create { name, role: Role(role), days } = command;
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
