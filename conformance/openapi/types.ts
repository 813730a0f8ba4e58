// Moves a task over the board with fetch and the types that openapi-typescript has generated with its default options. What has
// a default is left out of every request. The arguments are URL and TOKEN.
import type { operations } from "./api";

type Body<Operation extends keyof operations> = operations[Operation] extends {
  requestBody?: { content: { "application/json": infer Content } };
}
  ? Content
  : never;
type Answer<Operation extends keyof operations, Status extends number> = operations[Operation] extends {
  responses: { [status in Status]: { content: { "application/json": infer Content } } };
}
  ? Content
  : never;

const [url, token] = process.argv.slice(2);

async function ask<Content>(method: string, path: string, body?: unknown): Promise<Content> {
  const answer = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!answer.ok) {
    throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  }
  return (await answer.json()) as Content;
}

function expect(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) {
    throw new Error(`${what} is ${found}, not ${expected}`);
  }
}

async function main(): Promise<void> {
  const add: Body<"postTasks"> = { title: "By generated types", id: "ts-1" };
  const added = await ask<Answer<"postTasks", 201>>("POST", "/tasks", add);
  expect("the status", added.status, "INBOX");
  const moves: Body<"postTasksTaskTransitions">[] = [
    { to: "ASSIGNED", assigneeIds: ["ann"] },
    { to: "IN_PROGRESS", workPlan: { bullets: ["read", "write", "test"] } },
    {
      to: "REVIEW",
      deliverable: { content: "done" },
      reviewChecklist: { type: "task", items: [{ item: "tests are green", answer: "yes" }] },
    },
    { to: "DONE", approval: { decisionNote: "it is right" } },
  ];
  for (const move of moves) {
    const moved = await ask<Answer<"postTasksTaskTransitions", 200>>("POST", "/tasks/ts-1/transitions", move);
    expect("the status", moved.task.status, move.to);
  }
  const shown = await ask<Answer<"getTasksTask", 200>>("GET", "/tasks/ts-1");
  expect("the status", shown.status, "DONE");
  console.log("the task of the program with generated types is", shown.status);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
