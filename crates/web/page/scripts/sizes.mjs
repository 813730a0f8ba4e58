// Prints the bytes of the built files, raw and compressed, and the sum of a first load: the page with everything that
// index.html names and the chunk of the board with its style.
import { readFileSync, readdirSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';

const dist = process.argv[2] ?? 'dist';
const html = readFileSync(`${dist}/index.html`, 'utf8');
const first = { raw: 0, gzip: 0, brotli: 0 };
const rows = [];

function add(name, bytes, isFirst) {
  const size = { raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, brotli: brotliCompressSync(bytes).length };
  rows.push({ name, ...size, first: isFirst ? 'first load' : '' });
  if (isFirst) for (const key of Object.keys(first)) first[key] += size[key];
}

add('index.html', Buffer.from(html), true);
for (const name of readdirSync(`${dist}/assets`).sort().filter((name) => !/\.(br|gz)$/.test(name))) {
  add(name, readFileSync(`${dist}/assets/${name}`), html.includes(name) || name.startsWith('board-'));
}
console.table(rows);
console.log(`first load: ${first.raw} bytes, gzip ${first.gzip}, brotli ${first.brotli}`);
