import { BODIES, BodiesModule } from './bodies.js';
import { BODY_VALUES, BodyValuesModule } from './body-values.js';
import { ERRORS, ErrorsModule } from './errors.js';
import { INPUT, InputModule } from './input.js';
import { Pair, type Row } from './harness.js';
import { RESPONSES, ResponsesModule } from './responses.js';
import { ROUTING, RoutingModule } from './routing.js';

/* The same modules on stock Nest and on the service: status, header fields and body are the same, or differ as declared. */

let pair: Pair;
beforeAll(async () => {
  pair = await Pair.start([ErrorsModule, InputModule, RoutingModule, BodiesModule, BodyValuesModule, ResponsesModule]);
});
afterAll(() => pair.close());

const SUBJECTS: Record<string, readonly Row[]> = {
  errors: ERRORS,
  input: INPUT,
  routing: ROUTING,
  bodies: BODIES,
  'values of bodies': BODY_VALUES,
  responses: RESPONSES,
};

describe.each(Object.entries(SUBJECTS))('%s', (_, rows) => {
  test.each(rows.map((row) => [row.title, row] as const))('as on stock Nest: %s', async (_title, row) => {
    await pair.compare(row);
  });
});
