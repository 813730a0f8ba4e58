import { defineConfig } from "vitest/config"

// Read here: inside the tests BASE_URL is a variable of Vite's own.
const baseUrl = process.env.BASE_URL
if (!baseUrl) {
  throw new Error("BASE_URL is missing: the address of the server, such as http://127.0.0.1:4437")
}

// Some tests of the suite wait for a whole long-poll or for a stream to expire.
export default defineConfig({
  test: { provide: { baseUrl }, testTimeout: 60_000, hookTimeout: 60_000 },
})
