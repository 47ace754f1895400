import { type CanActivate, Get, Logger, Module, Param, UseGuards } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';

/* Lines of Nest's Logger that name the request that is being served. */

const logger = new Logger('Orders');

const ORDERS = new Handlers('test-logged-orders');
const guard: CanActivate = {
  canActivate: (execution) => {
    logger.debug(`guard ${execution.switchToHttp().getRequest<{ url: string }>().url}`);
    return true;
  },
};
const findOrder = async (id: string): Promise<string> => {
  await sleep(5);
  logger.log({ found: id });
  await new Promise<void>((resolve) => setTimeout(resolve, 5));
  logger.error(`failed ${id}`, new TypeError('wrong'));
  return id;
};
ORDERS.add(Get(':id'), 'findOrder', findOrder, { parameters: [[Param('id'), String]], decorators: [UseGuards(guard)] });

const QUIET = new Handlers('test-quiet-orders');
QUIET.add(Get(), 'findQuietOrder', () => {
  logger.log('quiet');
  return 'quiet';
});

@Module({ controllers: [ORDERS.controller, QUIET.controller] })
class OrdersModule {}

const linesOf = (app: TestApp): TestApp['log']['lines'] => app.log.lines.filter(({ context }) => context === 'Orders');

test('each line has the id and the operation of its own request, also with others in flight', async () => {
  const app = await createTestApp({
    features: [OrdersModule],
    settings: { LOG_LEVEL: 'debug', REQUEST_IN_LOG: 'true' },
  });
  const calls = Array.from({ length: 20 }, (_, index) => {
    const headers = { 'x-request-id': `for-order-${index}` };
    return app.client.get(`/v1/test-logged-orders/order-${index}`, { apiKey: null, headers });
  });
  await Promise.all(calls);
  const lines = linesOf(app);
  expect(lines).toHaveLength(60);
  for (const line of lines) {
    const id = /order-\d+/.exec(line.msg)?.[0];
    expect(line).toMatchObject({ requestId: `for-${id}`, operation: 'findOrder' });
  }
  expect(lines.filter(({ error }) => error !== undefined)).toHaveLength(20);
  logger.log('outside');
  expect(linesOf(app).at(-1)).toEqual(expect.not.objectContaining({ requestId: expect.anything() as string }));
  await app.close();
});

test.each([
  ['false', undefined],
  ['', parseInt(process.versions.node) >= 24 ? 'of-a-line' : undefined],
])('REQUEST_IN_LOG=%s: a line names its request only where that is cheap or asked for', async (value, expected) => {
  const app = await createTestApp({ features: [OrdersModule], settings: { REQUEST_IN_LOG: value } });
  await app.client.get('/v1/test-quiet-orders', { apiKey: null, headers: { 'x-request-id': 'of-a-line' } });
  expect(linesOf(app).map(({ msg, requestId }) => [msg, requestId])).toEqual([['quiet', expected]]);
  await app.close();
});
