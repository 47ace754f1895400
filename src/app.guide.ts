import { readFileSync } from 'node:fs';
import { anchorOf } from './platform/docs-pages/guide.js';

/** The folder with README.md and docs: the repository for src; dist for dist/src, where the build copies them. */
const ROOT = new URL('..', import.meta.url);

/** A paragraph that is only a link to a heading of another document. The section below that heading replaces it. */
const INCLUSION = /^\[[^\]]+\]\(\.\.\/([\w/.-]+\.md)#([\w-]+)\)$/gm;

/**
 * The guide as Markdown: docs/guide.md, with the sections of other documents that it includes.
 *
 * @throws Error when a document or a section is missing
 */
export function readGuide(): string {
  return readDocument('docs/guide.md').replace(INCLUSION, (_, path: string, anchor: string) =>
    sectionOf(readDocument(path), anchor, path),
  );
}

function readDocument(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

/** The text below the first heading with this anchor, up to the next heading of the same level or above. */
function sectionOf(document: string, anchor: string, path: string): string {
  const lines = document.split('\n');
  const levelOf = (line: string): number => /^(#{1,6}) /.exec(line)?.[1]?.length ?? Infinity;
  const start = lines.findIndex((line) => levelOf(line) < Infinity && anchorOf(line.replace(/^#+ /, '')) === anchor);
  if (start < 0) throw new Error(`${path} has no heading #${anchor}, to which docs/guide.md refers.`);
  const level = levelOf(lines[start] as string);
  const length = lines.slice(start + 1).findIndex((line) => levelOf(line) <= level);
  return lines
    .slice(start + 1, length < 0 ? undefined : start + 1 + length)
    .join('\n')
    .trim();
}
