import { renderToStaticMarkup } from 'react-dom/server';
import { createElement } from 'react';
import { expect, test } from 'vitest';
import { Plain, plain } from '../src/parts/plain';

const markup = (text: string) => renderToStaticMarkup(createElement(Plain, { text }));

test('text of every script stays as it is, with tabs and line feeds', () => {
  for (const text of ['Add sum', '全角数字（０１２）', 'שלום', 'مرحبا', 'a\tb\nc', '👩\u200d💻', 'e\u0301', '']) expect(plain(text)).toBe(text);
});

test('characters that steer a terminal are shown as their code', () => {
  expect(plain('\u001b[31mred\u0007\u009b')).toBe('⟨U+001B⟩[31mred⟨U+0007⟩⟨U+009B⟩');
});

test('characters that turn the direction of writing are shown as their code', () => {
  expect(plain('safe\u202etxt.exe')).toBe('safe⟨U+202E⟩txt.exe');
  for (const code of [0x200e, 0x200f, 0x061c, 0x202a, 0x202d, 0x2066, 0x2069]) expect(plain(String.fromCodePoint(code))).toMatch(/^⟨U\+/);
});

test('invisible characters that can hide words are shown as their code', () => {
  expect(plain('ad\u200bmin\u2060\ufeff\u{e0041}')).toBe('ad⟨U+200B⟩min⟨U+2060⟩⟨U+FEFF⟩⟨U+E0041⟩');
});

test('markup is text, and the whole is isolated from the direction of its neighbours', () => {
  expect(markup('<img src=x onerror=alert(1)>')).toBe('<bdi>&lt;img src=x onerror=alert(1)&gt;</bdi>');
  expect(markup('a\u202eb')).toBe('<bdi>a<span class="control">U+202E</span>b</bdi>');
});
