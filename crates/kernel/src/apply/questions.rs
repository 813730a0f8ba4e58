//! What waits for an answer: approvals, requests, and what the architect is asked.

use super::{Folded, no, replay_wrapped};
use crate::World;
use crate::event::{
    AnswerTold, ApprovalAsked, ApprovalDecided, ArchitectAsked, ArchitectMoved, Fold, RequestAnswered,
    RequestForPerson, RequestLeft, RequestNoted, RequestQueued, RequestTried, Requested, SpecReviewed,
    SpecSubmitted, StoryLoaded,
};
use crate::old_records;
use crate::specs::{Loaded, Spec, SpecState};
use crate::words::{NoteKind, Verdict};
use crate::world::{
    Approval, AskedCall, BudgetScope, Decided, GivenAnswer, Holder, Note, Question, Request, call_digest,
};
use machines::architect;
use machines::names::{RequestId, RunId, SpecId};
use machines::suspended::Suspendable;
use std::sync::Arc;

impl Fold<ApprovalAsked> for World {
    fn fold(&mut self, e: &ApprovalAsked) -> Folded {
        self.count();
        if e.scope == Some(BudgetScope::Day) {
            self.day_approval = Some(e.id.clone());
        }
        if let (Some(run), Some(call)) = (&e.run, &e.call) {
            let question = Question { call: call.clone(), approval: e.id.clone() };
            self.edit_run(run, |run| run.question = Some(question))?;
        }
        let approval = Approval {
            id: e.id.clone(),
            task: e.task.clone(),
            run: e.run.clone(),
            cause: e.cause,
            asked_at: e.at,
            question: e.question.clone(),
            options: e.options.clone(),
            scope: e.scope,
            agent: e.agent.clone(),
            limit: e.limit,
            decided: None,
            call: e.what.clone(),
        };
        self.approvals.insert(e.id.clone(), Arc::new(approval));
        self.undecided.insert(e.id.clone());
        Ok(())
    }
}

impl Fold<ApprovalDecided> for World {
    fn fold(&mut self, e: &ApprovalDecided) -> Folded {
        if self.day_approval.as_ref() == Some(&e.id) {
            self.day_approval = None;
        }
        self.undecided.remove(&e.id);
        let approval = self.approvals.get_mut(&e.id).ok_or_else(|| no("approval", &e.id))?;
        Arc::make_mut(approval).decided =
            Some(Decided { by: e.by.clone(), at: e.at, decision: e.decision, note: e.note.clone() });
        let (run, call) = (approval.run.clone(), approval.call.clone());
        if let (Some(run), Some(call), Verdict::Approved) = (run, call, e.decision) {
            self.allow_once(&run, &call)?;
        }
        Ok(())
    }
}

impl Fold<Requested> for World {
    fn fold(&mut self, e: &Requested) -> Folded {
        self.count();
        let request = Request {
            id: e.id.clone(),
            kind: e.kind,
            task: e.task.clone(),
            run: e.run.clone(),
            by: e.by.clone(),
            asked_at: e.at,
            text: e.text.clone(),
            answer: None,
            told: false,
            spec: e.spec.clone(),
            tip: e.tip.clone(),
            tries: 0,
            notes: Default::default(),
            for_person: false,
        };
        self.requests.insert(e.id.clone(), Arc::new(request));
        self.unanswered.insert(e.id.clone());
        Ok(())
    }
}

impl Fold<RequestAnswered> for World {
    fn fold(&mut self, e: &RequestAnswered) -> Folded {
        let given = GivenAnswer {
            by: e.by.clone(),
            at: e.at,
            text: e.text.clone(),
            abandoned: e.abandoned,
            reply: e.reply.clone(),
        };
        self.unanswered.remove(&e.id);
        self.edit_request(&e.id, |request| request.answer = Some(given))
    }
}

impl Fold<AnswerTold> for World {
    fn fold(&mut self, e: &AnswerTold) -> Folded {
        self.edit_request(&e.id, |request| request.told = true)
    }
}

impl Fold<RequestQueued> for World {
    fn fold(&mut self, e: &RequestQueued) -> Folded {
        self.architect_queue.push_back(e.id.clone());
        self.edit_request(&e.id, |request| {
            request.for_person = false;
            request.tries = 0;
        })
    }
}

impl Fold<RequestLeft> for World {
    fn fold(&mut self, e: &RequestLeft) -> Folded {
        self.architect_queue.retain(|id| *id != e.id);
        Ok(())
    }
}

impl Fold<RequestTried> for World {
    fn fold(&mut self, e: &RequestTried) -> Folded {
        self.edit_request(&e.id, |request| {
            request.tries += 1;
            request.notes.push_back(Note { kind: NoteKind::Plain, text: e.why.clone() });
        })
    }
}

impl Fold<RequestNoted> for World {
    fn fold(&mut self, e: &RequestNoted) -> Folded {
        self.edit_request(&e.id, |request| request.notes.push_back(old_records::note(e)))
    }
}

impl Fold<RequestForPerson> for World {
    fn fold(&mut self, e: &RequestForPerson) -> Folded {
        self.edit_request(&e.id, |request| request.for_person = true)
    }
}

impl Fold<ArchitectMoved> for World {
    fn fold(&mut self, e: &ArchitectMoved) -> Folded {
        let mut machine = self.architect.as_deref().cloned().unwrap_or(Suspendable::Live(Default::default()));
        replay_wrapped::<architect::Architect>(&mut machine, &e.input, e.state)?;
        self.architect = Some(Arc::new(machine));
        Ok(())
    }
}

impl Fold<ArchitectAsked> for World {
    fn fold(&mut self, _: &ArchitectAsked) -> Folded {
        // Read where channels and the architect are read; nothing that the kernel decides hangs on them.
        Ok(())
    }
}

impl Fold<SpecSubmitted> for World {
    fn fold(&mut self, e: &SpecSubmitted) -> Folded {
        let spec = Spec {
            id: e.id.clone(),
            title: e.title.clone(),
            state: SpecState::Submitted,
            path: e.path.clone(),
            format: e.format.clone(),
            text: e.text.clone(),
            version: e.version,
            by: e.by.clone(),
            at: e.at,
            feedback: None,
            reviewed_at: None,
            stories: Default::default(),
        };
        self.specs.insert(e.id.clone(), Arc::new(spec));
        Ok(())
    }
}

impl Fold<SpecReviewed> for World {
    fn fold(&mut self, e: &SpecReviewed) -> Folded {
        self.edit_spec(&e.id, |spec| {
            spec.state = e.state;
            spec.feedback.clone_from(&e.feedback);
            spec.reviewed_at = Some(e.at);
        })
    }
}

impl Fold<StoryLoaded> for World {
    fn fold(&mut self, e: &StoryLoaded) -> Folded {
        self.edit_spec(&e.spec, |spec| {
            let (task, key, mark) = (e.task.clone(), e.key.clone(), e.mark.clone());
            spec.stories.push_back(Loaded { task, key, mark });
        })
    }
}

impl World {
    fn edit_spec(&mut self, id: &SpecId, change: impl FnOnce(&mut Spec)) -> Folded {
        change(Arc::make_mut(self.specs.get_mut(id).ok_or_else(|| no("spec", id))?));
        Ok(())
    }

    fn edit_request(&mut self, id: &RequestId, change: impl FnOnce(&mut Request)) -> Folded {
        let request = self.requests.get_mut(id).ok_or_else(|| no("request", id))?;
        change(Arc::make_mut(request));
        Ok(())
    }

    /// An agent outside asked before it makes the call: when it reports the call, it is not asked about again.
    fn allow_once(&mut self, run: &RunId, call: &AskedCall) -> Folded {
        let outside = self.run(run).is_some_and(|run| matches!(run.holder, Holder::Outside(_)));
        if !outside {
            return Ok(());
        }
        let digest = call_digest(&call.tool, &call.input);
        self.edit_run(run, |run| {
            if !run.audit.open_calls.values().any(|open| open.digest == digest) {
                run.audit.allowed_once.insert(digest);
            }
        })
    }
}
