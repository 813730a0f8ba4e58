//! Drives one step of an agent by hand, exactly as its adapter starts it, and prints what it says: to try an adapter
//! against the real program.
//!
//! `drive-agent ADAPTER TREE PRIVATE SESSION new|resume PROMPT [OPTIONS] -- COMMAND…`
//! passes on ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL and OPENAI_API_KEY, says yes to every call, and ends with 0 where the step finished
//! with DONE. `--deny TEXT` says no to calls that contain TEXT; `--interrupt TEXT` allows such a call and interrupts it;
//! `--tell TEXT` says TEXT to the agent at its first call; `--turns N` are the turns that it has left.
#![allow(clippy::unwrap_used, reason = "a tool for tests; what cannot go on ends it")]

#[path = "../tests/agents/drive.rs"]
mod drive;

use agents::{Ended, Entry, Order, PromptKind, Said, adapter};
use drive::{Act, drive};
use std::path::PathBuf;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = arguments.iter().position(|argument| argument == "--").expect("`--` and a command");
    let command = arguments.split_off(command)[1..].to_vec();
    let [name, tree, private, session, how, prompt, rest @ ..] = &arguments[..] else {
        panic!("usage: drive-agent ADAPTER TREE PRIVATE SESSION new|resume PROMPT [OPTIONS] -- COMMAND…");
    };
    let option = |name: &str| rest.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone());
    let (deny, interrupt, mut tell) = (option("--deny"), option("--interrupt"), option("--tell"));
    let private = PathBuf::from(private).canonicalize().unwrap();
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let order = Order {
        command,
        model: None,
        system: Some("You work for Adjutant.".to_owned()),
        allowed_tools: None,
        prompt: prompt.clone(),
        kind: PromptKind::Init,
        session: session.into(),
        resume: how == "resume",
        turns_left: option("--turns").map_or(50, |turns| turns.parse().unwrap()),
        budget_usd: Some(5.0),
        task: "c-abc1".into(),
        worker: "A".into(),
        run: "r-1".into(),
        step: format!("e-{nanos}").into(),
        tree: PathBuf::from(tree).canonicalize().unwrap(),
        main: "main".to_owned(),
        temp: private.join("temp"),
        private,
        project_root: std::env::current_dir().unwrap(),
        adj: std::env::current_exe().unwrap().with_file_name("../adj"),
    };
    let passed_on = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"];
    let env: Vec<_> =
        passed_on.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    let driven = drive(adapter(name).expect("an adapter"), &order, &env, |said| {
        for entry in Entry::of(said) {
            print!("{}", entry.plain());
        }
        match said {
            Said::Turn { usage, calls, .. } => {
                println!(
                    "  ({} calls, {} + {} tokens)",
                    calls.len(),
                    usage.input_tokens,
                    usage.output_tokens
                );
                Vec::new()
            }
            Said::Asked { argument, .. } => {
                let contains =
                    |text: &Option<String>| text.as_ref().is_some_and(|text| argument.contains(text));
                let allow = !contains(&deny);
                let mut acts = vec![Act::Answer { allow, note: if allow { "" } else { "not allowed here" } }];
                acts.extend(tell.take().map(Act::Tell));
                if contains(&interrupt) {
                    acts.push(Act::Interrupt);
                }
                acts
            }
            _ => Vec::new(),
        }
    });
    if let Ok(file) = std::env::var("DRIVE_RECORD") {
        std::fs::write(file, driven.output.join("\n") + "\n").unwrap();
    }
    println!("{:?}", driven.ended);
    std::process::exit(i32::from(!matches!(driven.ended, Ended::Finished { done: true, .. })));
}
