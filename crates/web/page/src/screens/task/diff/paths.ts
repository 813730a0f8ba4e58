/** Names of files in a patch. Git quotes a name with control characters, quotes, backslashes or bytes beyond ASCII, as in C. */

const ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 };

/** What a quoted name stands for; the bytes of `\303\251` are read as UTF-8. A name without quotes is itself. */
export function unquote(name: string): string {
  if (name.length < 2 || !name.startsWith('"') || !name.endsWith('"')) return name;
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  const inner = name.slice(1, -1);
  for (let at = 0; at < inner.length; at += 1) {
    if (inner[at] !== '\\') {
      const character = String.fromCodePoint(inner.codePointAt(at) ?? 0);
      bytes.push(...encoder.encode(character));
      at += character.length - 1;
      continue;
    }
    const octal = /^[0-7]{1,3}/.exec(inner.slice(at + 1, at + 4))?.[0];
    if (octal) {
      bytes.push(Number.parseInt(octal, 8) & 255);
      at += octal.length;
    } else {
      bytes.push(ESCAPES[inner[at + 1] ?? ''] ?? 92);
      at += 1;
    }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/** The path of a `---`, `+++` or `rename` line; null for `/dev/null`. Git ends a name that has spaces with a tab. */
export function namedPath(value: string, prefixed = true): string | null {
  const cut = value.endsWith('\t') ? value.slice(0, -1) : value;
  if (cut === '/dev/null') return null;
  const name = unquote(cut);
  return prefixed ? withoutPrefix(name) : name;
}

/** Both paths of `diff --git a/… b/…`. Names with spaces are not quoted, so equal halves are looked for first. */
export function headerPaths(line: string): [string, string] {
  const rest = line.slice('diff --git '.length).replace(/\r$/, '');
  const quoted = /^("(?:[^"\\]|\\.)*"|.*?) ("(?:[^"\\]|\\.)*")$/.exec(rest) ?? /^("(?:[^"\\]|\\.)*") (.*)$/.exec(rest);
  if (quoted) return [withoutPrefix(unquote(quoted[1] ?? '')), withoutPrefix(unquote(quoted[2] ?? ''))];
  const half = (rest.length - 1) / 2;
  const same = rest[half] === ' ' && withoutPrefix(rest.slice(0, half)) === withoutPrefix(rest.slice(half + 1));
  const space = same ? half : rest.indexOf(' b/');
  if (space < 0) return [withoutPrefix(rest), withoutPrefix(rest)];
  return [withoutPrefix(rest.slice(0, space)), withoutPrefix(rest.slice(space + 1))];
}

function withoutPrefix(name: string): string {
  return /^[a-z]\//.test(name) ? name.slice(2) : name;
}

/** Folder and name, for showing: the folder is cut in the middle of a row, the name stays. */
export function splitPath(path: string): { folder: string; name: string } {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? { folder: '', name: path } : { folder: path.slice(0, slash), name: path.slice(slash + 1) };
}
