//! How many requests are taken of whom.
//!
//! Whoever shows no token that is known is let guess only slowly. An agent, or a program with a token of its own, is
//! held to a rate that no honest one reaches, so that one that runs wild leaves room for the others. The project's user
//! is not held back.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use api::Problem;

/// Requests a second in the long run, and how many may come at once.
struct Limit {
    each_second: u32,
    at_once: u32,
}

const STRANGERS: Limit = Limit { each_second: 20, at_once: 200 };
const NAMED: Limit = Limit { each_second: 200, at_once: 1_000 };
/// More names than this are not kept apart: those whom nobody has heard of for longest are forgotten.
const NAMES_MAX: usize = 10_000;

pub struct RateLimit {
    strangers: DefaultDirectRateLimiter,
    named: Mutex<HashMap<String, Arc<DefaultDirectRateLimiter>>>,
}

impl Default for RateLimit {
    fn default() -> RateLimit {
        RateLimit { strangers: STRANGERS.limiter(), named: Mutex::default() }
    }
}

impl Limit {
    fn limiter(&self) -> DefaultDirectRateLimiter {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        RateLimiter::direct(Quota::per_second(number(self.each_second)).allow_burst(number(self.at_once)))
    }
}

impl RateLimit {
    /// Somebody came whom nobody knows: what they are answered, unless they come too often.
    pub fn stranger(&self, answer: Problem) -> Problem {
        check(&self.strangers).err().unwrap_or(answer)
    }

    /// Somebody with a token of their own asks something.
    pub fn named(&self, name: &str) -> Result<(), Problem> {
        let limiter = {
            let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
            if named.len() >= NAMES_MAX && !named.contains_key(name) {
                named.clear();
            }
            named.entry(name.to_owned()).or_insert_with(|| Arc::new(NAMED.limiter())).clone()
        };
        check(&limiter)
    }
}

fn check(limiter: &DefaultDirectRateLimiter) -> Result<(), Problem> {
    limiter.check().map_err(|not_yet| {
        let wait = not_yet.wait_time_from(DefaultClock::default().now());
        let seconds = wait.as_secs() + 1;
        Problem::new(429, "TOO_MANY_REQUESTS", "too many requests in a short time")
            .hint(format!("wait {seconds} s, and send requests less often"))
            .retry_after(seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_runs_wild_is_held_back_and_the_others_are_not() {
        let rate_limit = RateLimit::default();
        let refused = (0..10_000).find_map(|_| rate_limit.named("wild").err()).unwrap();
        assert!(refused.status == 429 && refused.retry_after.is_some_and(|seconds| seconds >= 1));
        assert!(rate_limit.named("calm").is_ok());
        let answers = (0..1_000).map(|_| rate_limit.stranger(Problem::bad("no")).status);
        let answers: Vec<u16> = answers.collect();
        assert!(answers.starts_with(&[400; 200]) && answers.contains(&429));
    }
}
