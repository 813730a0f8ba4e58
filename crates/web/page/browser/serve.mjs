// Serves a built page as the product's server does: the same index.html for every path that is no file and no API, with the
// same content policy. `api(request, response, path)` answers `/api/v1/…` and `/session`; it returns false for what it does not know.
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'";
const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.html': 'text/html; charset=utf-8' };

export const pageFolder = fileURLToPath(new URL('..', import.meta.url));

export async function serve(dist, { api = () => false, port = 0 } = {}) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://page');
    const path = pathname.replace(/^\/p\/[^/]+(?=\/)/, '');
    if ((path.startsWith('/api/v1/') || path === '/session') && api(request, response, path) !== false) return;
    const file = join(pageFolder, dist, pathname);
    const known = extname(pathname) !== '' && existsSync(file);
    if (extname(pathname) !== '' && !known) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': TYPES[known ? extname(pathname) : '.html'], 'content-security-policy': POLICY });
    createReadStream(known ? file : join(pageFolder, dist, 'index.html')).pipe(response);
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    port: server.address().port,
    stop: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    }),
  };
}

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
}
