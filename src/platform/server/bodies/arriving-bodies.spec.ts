import { MAX_ARRIVING_BODY_BYTES } from '../requests/server-limits.js';
import { ArrivingBodies } from './arriving-bodies.js';

test('503 with the cause "bodies" when too little memory is left; released memory can be taken again', () => {
  const bodies = new ArrivingBodies();
  expect(bodies.take(MAX_ARRIVING_BODY_BYTES)).toBeUndefined();
  expect(bodies.take(1)).toMatchObject({ definition: { status: 503 }, unavailableCause: 'bodies' });
  bodies.release(1);
  expect(bodies.take(1)).toBeUndefined();
});
