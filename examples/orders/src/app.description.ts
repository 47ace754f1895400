import { readFileSync } from 'node:fs';
import { defineService } from 'petstore-service';
import { docsPages } from 'petstore-service/parts/docs-pages';
import { rateLimit } from 'petstore-service/parts/rate-limit';

/** The order service: its names and texts, and the parts of the platform that it uses. */
export const ORDERS = defineService({
  product: { name: 'orders', command: 'npm run orders --', apiKeyPrefix: 'ord_' },
  parts: [rateLimit, docsPages],
  info: { title: 'Order Service', version: '1.0.0', description: 'Orders of products.' },
  tags: [],
  headerExamples: { Location: 'https://orders.example/v1/orders/1' },
  readGuide: () => readFileSync(new URL('../../guide.md', import.meta.url), 'utf8'),
  release: '0.1.0',
  defaultScopes: ['orders:read', 'orders:write'],
  migrations: [new URL('./migrations/', import.meta.url)],
  typeorm: {},
  firstCall: (base) => ['List the orders:', '', `  curl -H "Authorization: Bearer $API_KEY" ${base}/orders`, ''],
});
