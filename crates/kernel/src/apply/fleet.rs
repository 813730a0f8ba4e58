//! The fleet and what it runs on: effects, settings, services, the disk, and agents from outside.

use super::{Folded, no};
use crate::World;
use crate::effect::{Effect, StepEnd};
use crate::event::{
    AgentConnected, AgentGone, AgentSwitched, AnswerKept, ConfigChanged, DiskSeen, EffectAsked, EffectEnded,
    EffectFailed, FleetSwitched, Fold, HealthSeen, HeartbeatSeen, OutageCounted, StoodStill, WriterSeen,
};
use crate::standstill::Standstill;
use crate::world::{Connected, Disabled, Health, IdempotentAnswer, Outage};
use smol_str::SmolStr;
use std::sync::Arc;

impl Fold<WriterSeen> for World {
    fn fold(&mut self, _: &WriterSeen) -> Folded {
        Ok(())
    }
}

impl Fold<EffectAsked> for World {
    fn fold(&mut self, e: &EffectAsked) -> Folded {
        if let Effect::Timer { timer, .. } = &e.what {
            self.timers.insert(timer.clone(), e.id.clone());
        }
        self.effects.insert(e.id.clone(), Arc::new(e.what.clone()));
        self.count();
        Ok(())
    }
}

impl Fold<EffectEnded> for World {
    fn fold(&mut self, e: &EffectEnded) -> Folded {
        self.failures.remove(&e.id);
        if self.main.under_way.as_ref() == Some(&e.id) {
            self.main.under_way = None;
        }
        let Some(effect) = self.effects.remove(&e.id) else { return Err(no("effect", &e.id)) };
        if let Effect::Timer { timer, .. } = effect.as_ref()
            && self.timers.get(timer) == Some(&e.id)
        {
            self.timers.remove(timer);
        }
        if let Effect::EndStep { of: StepEnd::Seat { seat, .. }, .. } = effect.as_ref() {
            self.edit_seat(seat, |seated| {
                seated.unfinished.remove(&e.id);
            })?;
        }
        if let Some(task) = effect.task().filter(|task| self.tasks.contains_key(*task)) {
            let task = task.clone();
            self.edit_task(&task, |task| {
                task.work.unfinished.remove(&e.id);
            })?;
        }
        Ok(())
    }
}

impl Fold<EffectFailed> for World {
    fn fold(&mut self, e: &EffectFailed) -> Folded {
        self.failures.insert(e.id.clone(), e.tries);
        Ok(())
    }
}

impl Fold<FleetSwitched> for World {
    fn fold(&mut self, e: &FleetSwitched) -> Folded {
        self.fleet_running = e.running;
        self.fleet_workers = e.workers.or(self.fleet_workers);
        if let Some(standstill) = &mut self.standstill {
            Arc::make_mut(standstill).of_this_fleet = false;
        }
        Ok(())
    }
}

impl Fold<StoodStill> for World {
    fn fold(&mut self, e: &StoodStill) -> Folded {
        let (since, at, reasons) = (e.since, e.at, e.reasons.clone());
        self.standstill = Some(Arc::new(Standstill { since, at, reasons, of_this_fleet: true }));
        Ok(())
    }
}

impl Fold<ConfigChanged> for World {
    fn fold(&mut self, e: &ConfigChanged) -> Folded {
        self.config = Arc::new((*e.config).clone());
        Ok(())
    }
}

impl Fold<OutageCounted> for World {
    fn fold(&mut self, e: &OutageCounted) -> Folded {
        let who = SmolStr::new(e.who.to_string());
        match e.since.is_none() && e.spent == 0 {
            true => drop(self.outages.remove(&who)),
            false => {
                let (service, since, spent) = (e.service.clone(), e.since, e.spent);
                self.outages.insert(who, Outage { service, since, spent });
            }
        }
        Ok(())
    }
}

impl Fold<HealthSeen> for World {
    fn fold(&mut self, e: &HealthSeen) -> Folded {
        let before = self.health.get(&e.service).filter(|before| before.healthy == e.healthy);
        let health = Health {
            healthy: e.healthy,
            since: before.map_or(e.at, |before| before.since),
            error: e.error.clone().or_else(|| before?.error.clone()).filter(|_| !e.healthy),
            refused: e.refused,
            tries: before
                .map_or(0, |before| before.tries + u32::from(before.probe.is_some() && e.probe.is_none())),
            last: if e.probe.is_some() { before.map_or(e.at, |before| before.last) } else { e.at },
            resets_at: e.resets_at,
            probe: e.probe.clone(),
        };
        self.health.insert(e.service.clone(), health);
        // It has answered: the outage is over for all.
        if e.healthy && e.probe.is_none() {
            let over = |outage: &Outage| outage.service == e.service;
            let whose = self.outages.iter().filter(|(_, outage)| over(outage));
            let whose: Vec<SmolStr> = whose.map(|(who, _)| who.clone()).collect();
            for who in whose {
                self.outages.remove(&who);
            }
        }
        Ok(())
    }
}

impl Fold<DiskSeen> for World {
    fn fold(&mut self, e: &DiskSeen) -> Folded {
        self.disk_full.clone_from(&e.full);
        self.disk_full_since = e.at.filter(|_| e.full.is_some());
        Ok(())
    }
}

impl Fold<AgentConnected> for World {
    fn fold(&mut self, e: &AgentConnected) -> Folded {
        self.agents.insert(e.agent.clone(), Connected { since: e.at, seen: e.at });
        Ok(())
    }
}

impl Fold<HeartbeatSeen> for World {
    fn fold(&mut self, e: &HeartbeatSeen) -> Folded {
        let there = self.agents.get_mut(&e.agent);
        let there = there.ok_or_else(|| format!("agent `{}` is not connected", e.agent))?;
        there.seen = e.at;
        Ok(())
    }
}

impl Fold<AgentSwitched> for World {
    fn fold(&mut self, e: &AgentSwitched) -> Folded {
        match e.enabled {
            true => drop(self.disabled.remove(&e.agent)),
            false => {
                let disabled = Disabled { since: e.at, by: e.by.clone(), reason: e.reason.clone() };
                self.disabled.insert(e.agent.clone(), disabled);
            }
        }
        Ok(())
    }
}

impl Fold<AgentGone> for World {
    fn fold(&mut self, e: &AgentGone) -> Folded {
        let gone = self.agents.remove(&e.agent);
        gone.map(drop).ok_or_else(|| format!("agent `{}` is not connected", e.agent))
    }
}

impl Fold<AnswerKept> for World {
    fn fold(&mut self, e: &AnswerKept) -> Folded {
        let order = self.count();
        let key = (e.scope.clone(), e.key.clone());
        let kept = IdempotentAnswer {
            fingerprint: e.fingerprint,
            order,
            command: e.command.clone(),
            answer: e.answer.clone(),
        };
        self.kept.insert(key.clone(), Arc::new(kept));
        self.kept_order.insert(order, key);
        while self.kept_order.len() > self.config.limits.kept_answers {
            let Some((order, key)) = self.kept_order.get_min().cloned() else { break };
            self.kept_order.remove(&order);
            self.kept.remove(&key);
        }
        Ok(())
    }
}
