import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Reads the tables of the contract. A line is a row, `request | response | basis`; `## ` begins a group, whose title may
 * end with the setting that the server needs, `(CORS_ORIGINS=https://app.example.com)`, or its time, `(CLOCK=…)`.
 *
 * - A request is `METHOD target [Field: value]… body`, or `raw` and bytes. `[Field: -]` leaves out a field that is sent otherwise:
 *   `Authorization` with the key, `Content-Type` and `Content-Length` with a body, `Host` and `Connection: close`.
 *   `given 3 sold:` before it adds pets first. A request that begins with `then` belongs to the row before it.
 * - A response is the statuses of all responses, `[Field: pattern]…`, and the body's pattern; for an error its code and, if
 *   promised, its message. In patterns `*` is any text without braces, `**` any text; `[Field: -]` is a field that is absent.
 * - `every 4xx of /v1/` in place of a request: a promise of all such responses. Then `never` forbids what a regular expression
 *   finds in the body, and `only` lists the fields that may occur.
 * - `‹a ¦ b›` makes one row of each, the same one everywhere in the row; `(a×9)` is nine times `a`. In requests `⏎` is CRLF, `…`
 *   waits for bytes of the response, at most 1 s, `\xff` a byte. Variables are `$key`, `$pets_read` (a key with this scope alone),
 *   `$base` (PUBLIC_BASE_URL), `$origin` (of it), `$unique` (a new text for each row), those that the runner is given, and what the row's
 *   first response with it has said: `$id`, `$body`, `$length`, `$tag`, `$next`, `$cursor`, `$allow`.
 * - The basis is a section of the specification, or entries of docs/decisions.md and docs/security.md. Without one, the row itself
 *   is the decision, and needs no reason.
 */

/** A request and its response. */
export interface Step {
  /** Where it stands, as `contract/pets.txt:15`, and the whole line. */
  readonly place: string;
  readonly line: string;
  /** With its choice made. */
  readonly request: string;
  readonly answer: string;
}

/** One promise. */
export interface Row {
  /** Title of its group. */
  readonly group: string;
  /** The setting of the server that its group needs, `NAME=value`. */
  readonly setting: string | undefined;
  readonly steps: readonly Step[];
  /** Empty where the row itself is the decision. */
  readonly basis: string;
}

/** The rows of a table; those with choices once for each. Throws for a line that is no row. */
export function readTable(path: string): Row[] {
  const rows: (Row & { steps: Step[] })[] = [];
  let group = '';
  for (const [index, line] of readFileSync(join(import.meta.dirname, '..', path), 'utf8')
    .split('\n')
    .entries()) {
    if (line.startsWith('## ')) group = line.slice(3);
    else if (line !== '') {
      const place = `${path}:${index + 1}`;
      const [request = '', answer, basis = ''] = line.split(/ +\| +/);
      if (answer === undefined) throw new Error(`${place} is no row: ${line}`);
      const step = { place, line, request: request.replace('then ', ''), answer };
      if (request.startsWith('then ')) rows.at(-1)?.steps.push(step);
      else rows.push({ group, setting: /\(([A-Z_]+=.*)\)$/.exec(group)?.[1], steps: [step], basis });
    }
  }
  return rows.flatMap(variantsOf);
}

function variantsOf(row: Row): Row[] {
  const choices = /‹(.*?)›/g;
  const texts = row.steps.flatMap(({ request, answer }) => [request, answer]);
  const counts = texts.flatMap((text) => [...text.matchAll(choices)].map(([, list = '']) => list.split(' ¦ ').length));
  if (new Set(counts).size > 1) throw new Error(`${row.steps[0]?.place} has choices of different lengths`);
  return Array.from({ length: counts[0] ?? 1 }, (_, index) => {
    const chosen = (text: string): string =>
      text
        .replace(choices, (_match, list: string) => list.split(' ¦ ')[index] ?? '')
        .replace(/\(([^()]*)×(\d+)\)/g, (_match, part: string, count: string) => part.repeat(Number(count)));
    return {
      ...row,
      steps: row.steps.map((step) => ({ ...step, request: chosen(step.request), answer: chosen(step.answer) })),
    };
  });
}
