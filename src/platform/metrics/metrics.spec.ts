import { Metrics } from './metrics.js';

test('calls of deprecated operations are counted by client; clients beyond the first 100 share one count', async () => {
  const metrics = new Metrics();
  for (const operation of ['findOrder', 'listOrders']) {
    for (let index = 0; index < 103; index++) metrics.countDeprecated(operation, `client-${index}`);
  }
  metrics.countDeprecated('findOrder', 'client-7');
  const counted = await metrics.registry.getSingleMetric('petstore_deprecated_operation_requests_total')?.get();
  const count = (operation: string, client: string): number | undefined =>
    counted?.values.find(({ labels }) => labels['operation'] === operation && labels['client'] === client)?.value;
  expect(counted?.values).toHaveLength(2 * 101);
  expect([count('findOrder', 'client-7'), count('findOrder', 'client-102')]).toEqual([2, undefined]);
  expect([count('findOrder', '(others)'), count('listOrders', '(others)')]).toEqual([3, 3]);
  metrics.onApplicationShutdown();
});
