import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// The server answers every path that is not an API with the same index.html, under `/` and under `/p/NAME/`. Files are
// requested from `/assets/`, which is the same for all projects and for everyone: their names contain a hash of their
// content, so a browser keeps them forever.
export default defineConfig(({ mode }) => ({
  base: '/',
  plugins: [react()],
  // The example data is reachable only in the development server and in a build with `--mode fixture`.
  define: { __FIXTURE__: JSON.stringify(mode === 'fixture' || mode === 'development') },
  build: {
    target: 'es2022',
    // light-dark() in tokens.css needs no rewriting in browsers of these versions.
    cssTarget: ['chrome123', 'firefox121', 'safari17.5'],
    outDir: mode === 'fixture' ? 'dist-fixture' : 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  test: { include: ['test/**/*.test.{ts,tsx}'], environment: 'node' },
}));
