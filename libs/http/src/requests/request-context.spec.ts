import { traceIdFrom } from './request-context.js';

const ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

test.each([`00-${ID}-${PARENT}-01`, `00-${ID}-${PARENT}-00`])('traceparent %s has a trace id', (value) => {
  expect(traceIdFrom(value)).toBe(ID);
});

test.each([
  '',
  ID,
  `01-${ID}-${PARENT}-01`,
  `00-${ID}-${PARENT}-01-more`,
  `00-${ID}-${PARENT}-01, 00-${ID}-${PARENT}-01`,
  `00-${ID}-${PARENT}`,
  `00-${ID.toUpperCase()}-${PARENT}-01`,
  `00-${'0'.repeat(32)}-${PARENT}-01`,
  `00-${ID}-${'0'.repeat(16)}-01`,
  `00-${ID.replace('4', 'g')}-${PARENT}-01`,
  `00-${ID}-${PARENT}-01\n`,
])('traceparent %j has none', (value) => {
  expect(traceIdFrom(value)).toBeUndefined();
});
