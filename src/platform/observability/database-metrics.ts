import { Injectable } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { Database } from '../database/database.js';
import { Metrics } from './metrics.js';

/** Metrics of this process's connections to the database. */
@Injectable()
export class DatabaseMetrics {
  constructor(metrics: Metrics, database: Database) {
    const registers = [metrics.registry];
    new Gauge({
      name: 'petstore_database_silent',
      help: '1 while the database does not answer at all, and requests are answered 503 without asking it; else 0.',
      registers,
      aggregator: 'max',
      collect() {
        this.set(database.isSilent ? 1 : 0);
      },
    });
    new Gauge({
      name: 'petstore_database_connections',
      help: 'Connections of the pool to the primary, by state: idle or busy.',
      labelNames: ['state'] as const,
      registers,
      collect() {
        const { connections, idle } = database.load;
        this.set({ state: 'idle' }, idle);
        this.set({ state: 'busy' }, connections - idle);
      },
    });
    new Gauge({
      name: 'petstore_database_waiting_statements',
      help: 'Statements that wait for a connection of the pool.',
      registers,
      collect() {
        this.set(database.load.waiting);
      },
    });
  }
}
