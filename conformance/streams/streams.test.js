// Runs the public suite of the Durable Streams protocol against the server at BASE_URL.
import { inject } from "vitest"
import { runConformanceTests } from "@durable-streams/server-conformance-tests"

runConformanceTests({ baseUrl: inject("baseUrl"), subscriptions: true })
