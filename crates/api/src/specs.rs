//! Specs: submitted, listed, and shown with what became of them.

use super::types::spec::{NewSpec, ShowQuery, Spec, SpecLine, SpecStory, SpecVersion};
use super::types::{Nothing, Page, Paging};
use super::{Call, Problem, field, time, wrong};
use kernel::event::SpecSubmitted;
use kernel::words::RequestKind;
use kernel::{Ask, Event, World, command, specs};
use machines::names::SpecId;

/// What a spec is read as where nobody says.
const PROSE: &str = "prose";

pub fn list(call: &Call, (): (), paging: Paging, _: Nothing) -> Result<Page<SpecLine>, Problem> {
    let world = call.world();
    let mut specs: Vec<&specs::Spec> = world.specs.values().map(AsRef::as_ref).collect();
    specs.sort_by_key(|spec| spec.at);
    Ok(paging.page_of(specs, |spec| line(&world, spec)))
}

pub fn submit(call: &Call, (): (), _: Nothing, new: NewSpec) -> Result<Spec, Problem> {
    let id = field::<SpecId>("id", &new.id)?;
    call.submit(Ask::SubmitSpec(command::NewSpec {
        id: id.clone(),
        title: new.title,
        path: new.path,
        format: new.format.as_deref().unwrap_or(PROSE).into(),
        text: new.text,
        stories: new.stories.map(|stories| stories.into_iter().map(Into::into).collect()),
    }))?;
    show(call, id, ShowQuery::default(), Nothing {})
}

pub(super) fn known<'w>(world: &'w World, id: &SpecId) -> Result<&'w kernel::specs::Spec, Problem> {
    world.specs.get(id).map(AsRef::as_ref).ok_or_else(|| {
        Problem::not_found(format!("there is no spec `{id}`")).hint("`adj spec ls` lists them")
    })
}

pub fn show(call: &Call, id: SpecId, query: ShowQuery, _: Nothing) -> Result<Spec, Problem> {
    let world = call.world();
    let spec = known(&world, &id)?;
    let submitted = submitted(call, &id)?;
    let wanted = match query.version.as_deref() {
        None => None,
        Some(version) if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) => {
            let is_it = |it: &SpecSubmitted| version.parse() == Ok(it.version);
            Some(submitted.iter().find(|(it, _)| is_it(it)).ok_or_else(|| {
                Problem::not_found(format!("spec `{id}` has no version {version}"))
                    .hint(format!("it has versions 1 to {}", spec.version))
            })?)
        }
        Some(_) => return Err(wrong("version", "a version is a number from 1 upwards".to_owned())),
    };
    let story = |story: &specs::Loaded| {
        let task = world.task(&story.task);
        SpecStory {
            key: story.key.to_string(),
            task: story.task.to_string(),
            title: task.map(|task| task.title.clone()).unwrap_or_default(),
            status: task.map(|task| task.status()),
            depends_on: task
                .map(|task| task.depends_on.iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
        }
    };
    Ok(Spec {
        line: line(&world, spec),
        path: wanted.map_or(spec.path.clone(), |(it, _)| it.path.clone()),
        format: wanted.map_or(spec.format.to_string(), |(it, _)| it.format.to_string()),
        text: wanted.map_or(spec.text.clone(), |(it, _)| it.text.clone()),
        tasks: spec.stories.iter().map(story).collect(),
        versions: submitted.into_iter().map(|(_, version)| version).collect(),
    })
}

/// Every version, from the log: the World knows only the last one.
fn submitted(call: &Call, id: &SpecId) -> Result<Vec<(SpecSubmitted, SpecVersion)>, Problem> {
    let mut all: Vec<(SpecSubmitted, SpecVersion)> = Vec::new();
    for record in call.access.project.stream(&format!("spec/{id}"))? {
        match Event::decode(&record.kind, &record.data) {
            Ok(Event::SpecSubmitted(it)) => {
                let version = SpecVersion {
                    version: it.version,
                    title: it.title.clone(),
                    by: it.by.to_string(),
                    at: time(it.at),
                    state: None,
                    feedback: None,
                };
                all.push((it, version));
            }
            Ok(Event::SpecReviewed(it)) => {
                if let Some((_, version)) = all.last_mut() {
                    version.state = Some(it.state);
                    version.feedback = it.feedback;
                }
            }
            _ => {}
        }
    }
    Ok(all)
}

fn line(world: &World, spec: &specs::Spec) -> SpecLine {
    let is_open = |story: &&specs::Loaded| world.task(&story.task).is_some_and(|task| !task.is_final());
    let open = spec.stories.iter().filter(is_open).count();
    let request = world.requests.values().find(|request| {
        request.kind == RequestKind::Spec
            && request.spec.as_ref() == Some(&spec.id)
            && request.answer.is_none()
    });
    SpecLine {
        id: spec.id.to_string(),
        title: spec.title.clone(),
        state: spec.state,
        version: spec.version,
        by: spec.by.to_string(),
        at: time(spec.at),
        feedback: spec.feedback.clone(),
        stories: spec.stories.len().try_into().unwrap_or(u32::MAX),
        open_stories: open.try_into().unwrap_or(u32::MAX),
        request: request.map(|request| request.id.to_string()),
    }
}
