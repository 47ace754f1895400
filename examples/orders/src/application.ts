import type { AppOptions } from 'petstore-service';
import { OrdersModule } from './orders/orders.module.js';

/** What this project adds to the Pet Store Service: for the service, its commands and its tests. */
export const application: AppOptions = {
  features: [OrdersModule],
  migrations: [new URL('./migrations/', import.meta.url)],
  document: {
    title: 'Pet Store with Orders',
    version: '0.1.0',
    tags: [{ name: 'Store', description: 'Pets that are ordered.' }],
  },
  defaultScopes: ['pets:read', 'pets:write', 'orders:read', 'orders:write'],
};
