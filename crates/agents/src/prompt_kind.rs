//! The kinds of prompts.

use kernel::effect::Prompt;

machines::wire_enum! {
    /// Which text an agent is told.
    pub enum PromptKind {
        /// The first step of a task.
        Init = "init",
        /// Every later step.
        Step = "step",
        /// The gate sent it back.
        TestFailure = "test_failure",
        /// The landing sent it back.
        MergeConflict = "merge_conflict",
        /// It is an agent's turn in a room.
        Turn = "turn",
        /// The architect is to split a spec.
        Spec = "spec",
        /// The architect is to review finished work.
        Review = "review",
        /// The architect is asked something.
        Question = "question",
        /// A budget is used up, and the architect may raise it.
        Budget = "budget",
    }
}

impl PromptKind {
    /// What the kernel would ask for where a step of a task begins with this text; `None`: no step does.
    pub fn of_task(self, notes: Vec<String>, output: String) -> Option<Prompt> {
        match self {
            PromptKind::Init => Some(Prompt::Init { notes }),
            PromptKind::Step => Some(Prompt::Step { notes }),
            PromptKind::TestFailure => Some(Prompt::TestFailure { output, notes }),
            PromptKind::MergeConflict => Some(Prompt::MergeConflict { output, notes }),
            PromptKind::Turn
            | PromptKind::Spec
            | PromptKind::Review
            | PromptKind::Question
            | PromptKind::Budget => None,
        }
    }
}

impl From<&Prompt> for PromptKind {
    fn from(prompt: &Prompt) -> PromptKind {
        match prompt {
            Prompt::Init { .. } => PromptKind::Init,
            Prompt::Step { .. } => PromptKind::Step,
            Prompt::TestFailure { .. } => PromptKind::TestFailure,
            Prompt::MergeConflict { .. } => PromptKind::MergeConflict,
        }
    }
}
