//! From the gate to main: what was found, approved, queued and landed, and how main itself is.

use super::{Folded, no};
use crate::World;
use crate::command::RedBy;
use crate::event::{
    ApprovalVoided, Dequeued, EmptyDiffSeen, Fold, GateAlone, GateDoubted, GatePassed, LandingDoubted,
    LandingEnded, LandingFailedOn, LandingHeldUp, LandingStarted, LandingWaits, LandingWritten, MainDoubted,
    MainTested, MainTestsBegun, PullRequestOpened, Queued, SentBackTo, TaskApproved, TaskLanded,
};
use crate::words::PersonNeeded;
use crate::world::{Approved, FailedLanding, HeldUp, Landed, Landing, MainVerdict, SentBack};
use std::sync::Arc;

impl Fold<SentBackTo> for World {
    fn fold(&mut self, e: &SentBackTo) -> Folded {
        self.edit_task(&e.id, |task| {
            let (SentBack::Gate(output) | SentBack::Landing(output)) = &e.what;
            task.gate.test_output = Some(crate::why::last_lines(output));
            task.gate.sent_back = Some(e.what.clone());
            // The gate runs no tests on what conflicts: the agent has solved that.
            let tested = matches!(e.by, RedBy::Tests | RedBy::InDoubt | RedBy::Environment);
            if matches!(e.what, SentBack::Gate(_)) && tested {
                let conflict = task.landing.failed.iter_mut().filter(|failed| failed.conflict);
                conflict.for_each(|failed| failed.stands = false);
            }
        })
    }
}

impl Fold<GateDoubted> for World {
    fn fold(&mut self, e: &GateDoubted) -> Folded {
        self.edit_task(&e.id, |task| task.gate.in_doubt.clone_from(&e.what))
    }
}

impl Fold<EmptyDiffSeen> for World {
    fn fold(&mut self, e: &EmptyDiffSeen) -> Folded {
        self.edit_task(&e.id, |task| task.gate.empty_diffs += 1)
    }
}

impl Fold<GatePassed> for World {
    fn fold(&mut self, e: &GatePassed) -> Folded {
        self.edit_task(&e.id, |task| {
            task.gate.test_output = None;
            // What a person moved to REVIEW by hand went through no gate.
            if e.needs_person != Some(PersonNeeded::ByHand) {
                task.landing.failed.iter_mut().for_each(|failed| failed.stands = false);
            }
            task.gate.has_code = Some(e.has_code);
            task.gate.needs_person = e.needs_person;
            if let (Some(place), Some(tip)) = (&mut task.work.place, &e.tip) {
                place.tip = Some(tip.clone());
            }
        })
    }
}

impl Fold<GateAlone> for World {
    fn fold(&mut self, e: &GateAlone) -> Folded {
        self.edit_task(&e.id, |task| task.gate.alone.clone_from(&e.effect))
    }
}

impl Fold<TaskApproved> for World {
    fn fold(&mut self, e: &TaskApproved) -> Folded {
        self.edit_task(&e.id, |task| {
            task.landing.failed.iter_mut().for_each(|failed| failed.stands = false);
            task.review.approved =
                Some(Approved { tip: e.tip.clone(), by: e.by.clone(), at: e.at, note: e.note.clone() });
        })
    }
}

impl Fold<ApprovalVoided> for World {
    fn fold(&mut self, e: &ApprovalVoided) -> Folded {
        self.edit_task(&e.id, |task| {
            task.review.approved = None;
            task.out_of_the_way();
        })
    }
}

impl Fold<Queued> for World {
    fn fold(&mut self, e: &Queued) -> Folded {
        let arrival = self.count();
        let priority = self.task(&e.id).ok_or_else(|| no("task", &e.id))?.priority;
        self.queue.insert((priority, arrival), e.id.clone());
        self.edit_task(&e.id, |task| task.landing.queued = Some((priority, arrival)))
    }
}

impl Fold<Dequeued> for World {
    fn fold(&mut self, e: &Dequeued) -> Folded {
        if let Some(key) = self.task(&e.id).and_then(|task| task.landing.queued) {
            self.queue.remove(&key);
        }
        self.edit_task(&e.id, |task| task.landing.queued = None)
    }
}

impl Fold<LandingStarted> for World {
    fn fold(&mut self, e: &LandingStarted) -> Folded {
        self.landing = Some(Arc::new(Landing {
            task: e.id.clone(),
            tip: e.tip.clone(),
            effect: e.effect.clone(),
            since: e.at,
            written: None,
        }));
        Ok(())
    }
}

impl Fold<LandingWritten> for World {
    fn fold(&mut self, e: &LandingWritten) -> Folded {
        self.landing = Some(Arc::new(Landing {
            task: e.id.clone(),
            tip: e.landed.tip.clone(),
            effect: e.effect.clone(),
            since: e.at,
            written: Some(e.landed.clone()),
        }));
        self.brought.extend(e.tickets.iter().map(|ticket| (ticket.clone(), e.id.clone())));
        Ok(())
    }
}

impl Fold<LandingHeldUp> for World {
    fn fold(&mut self, e: &LandingHeldUp) -> Folded {
        self.edit_task(&e.id, |task| {
            task.hold_up(e.why.clone().map(|why| HeldUp::Checkout { why }), e.at);
        })
    }
}

impl Fold<LandingWaits> for World {
    fn fold(&mut self, e: &LandingWaits) -> Folded {
        self.edit_task(&e.id, |task| task.hold_up(Some(e.what.clone()), e.at))
    }
}

impl Fold<LandingDoubted> for World {
    fn fold(&mut self, e: &LandingDoubted) -> Folded {
        self.edit_task(&e.id, |task| task.landing.doubted = e.doubted)
    }
}

impl Fold<LandingFailedOn> for World {
    fn fold(&mut self, e: &LandingFailedOn) -> Folded {
        self.edit_task(&e.id, |task| {
            task.landing.failed = Some(FailedLanding {
                tip: e.tip.clone(),
                main: e.main.clone(),
                conflict: e.conflict,
                files: e.files.clone(),
                stands: true,
            });
        })
    }
}

impl Fold<PullRequestOpened> for World {
    fn fold(&mut self, e: &PullRequestOpened) -> Folded {
        self.edit_task(&e.id, |task| task.landing.pull_request = Some(e.pull_request.clone()))
    }
}

impl Fold<LandingEnded> for World {
    fn fold(&mut self, e: &LandingEnded) -> Folded {
        self.landing = None;
        let of_others = self.brought.iter().filter(|(_, task)| **task != e.id);
        self.brought = of_others.map(|(ticket, task)| (ticket.clone(), task.clone())).collect();
        Ok(())
    }
}

impl Fold<TaskLanded> for World {
    fn fold(&mut self, e: &TaskLanded) -> Folded {
        self.landing = None;
        self.landed_on_main(&e.landed);
        self.edit_task(&e.id, |task| {
            task.landing.landed = Some(e.landed.clone());
            task.landing.doubted = false;
            task.out_of_the_way();
        })
    }
}

impl Fold<MainTestsBegun> for World {
    fn fold(&mut self, e: &MainTestsBegun) -> Folded {
        self.main.under_way = Some(e.effect.clone());
        Ok(())
    }
}

impl Fold<MainTested> for World {
    fn fold(&mut self, e: &MainTested) -> Folded {
        let before = self.main.verdict.as_ref().and_then(|verdict| verdict.ran_at);
        self.main.verdict = Some(Arc::new(MainVerdict {
            of: e.of.clone(),
            main: e.main.clone(),
            at: e.at,
            ran_at: if e.ran { Some(e.at) } else { before },
            command: e.command.clone(),
            red: e.red.clone(),
        }));
        self.main.again = false;
        Ok(())
    }
}

impl Fold<MainDoubted> for World {
    fn fold(&mut self, e: &MainDoubted) -> Folded {
        match e.forget {
            true => self.main.verdict = None,
            false => self.main.again = true,
        }
        Ok(())
    }
}

impl World {
    /// What landed was tested as merged: main passes its tests where it is now, if it did where it was.
    fn landed_on_main(&mut self, landed: &Landed) {
        if let Some(verdict) = &mut self.main.verdict
            && verdict.main == landed.old_main
            && verdict.red.is_none()
        {
            Arc::make_mut(verdict).main = landed.merge.clone();
        }
    }
}
