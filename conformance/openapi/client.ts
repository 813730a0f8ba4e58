// Moves a task over the board with the client that @hey-api/openapi-ts has generated. The arguments are URL and TOKEN.
import { getTasks, getTasksTask, postTasks, postTasksTaskTransitions } from "./hey/index";
import type { Move } from "./hey/index";
import { client } from "./hey/client.gen";

const [url, token] = process.argv.slice(2);
client.setConfig({ baseUrl: `${url}/api/v1`, auth: (scheme) => (scheme.scheme === "bearer" ? token : undefined) });

function expect(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) {
    throw new Error(`${what} is ${found}, not ${expected}`);
  }
}

async function main(): Promise<void> {
  const added = await postTasks({ body: { title: "By a generated client", id: "hey-1" }, throwOnError: true });
  expect("the status", added.data.status, "INBOX");
  const moves: Move[] = [
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
    const moved = await postTasksTaskTransitions({ path: { task: "hey-1" }, body: move, throwOnError: true });
    expect("the status", moved.data.task.status, move.to);
  }
  const shown = await getTasksTask({ path: { task: "hey-1" }, throwOnError: true });
  expect("the status", shown.data.status, "DONE");
  const refused = await postTasksTaskTransitions({ path: { task: "hey-1" }, body: { to: "INBOX" } });
  expect("the refusal", refused.error?.code !== undefined && refused.response?.status === 409, true);
  const listed = await getTasks({ query: { status: "DONE", limit: 10 }, throwOnError: true });
  expect("the list", listed.data.items.some((task) => task.id === "hey-1"), true);
  console.log("the task of the client by hey-api is", shown.data.status);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
