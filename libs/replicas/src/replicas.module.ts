import { Global, Module, Optional } from '@nestjs/common';
import { Counter, Gauge } from 'prom-client';
import { Metrics, registerMetric } from '#observability';
import { ReadReplicas } from '#postgres';
import { Config } from '#settings';
import { type ReplicaConfig, Replicas } from './replicas.js';

/** Lets `Database` read from the replicas of DATABASE_REPLICA_URLS, if it is set. */
@Global()
@Module({
  providers: [
    {
      provide: ReadReplicas,
      inject: [Config],
      useFactory: (config: ReplicaConfig) => (config.databaseReplicaUrls.length > 0 ? new Replicas(config) : undefined),
    },
  ],
  exports: [ReadReplicas],
})
export class ReplicasModule {
  constructor(metrics: Metrics, @Optional() replicas?: ReadReplicas) {
    if (!(replicas instanceof Replicas)) return;
    registerMetric(Gauge, metrics, {
      name: 'replica_ready',
      help: 'Processes whose last read that chose the replica found it ready. The log says why others did not.',
      labelNames: ['replica'],
      read: () => replicas.all.map(({ name, isReady }) => [{ replica: name }, Number(isReady)]),
    });
    registerMetric(Counter, metrics, {
      name: 'replica_reads_total',
      help: 'Statements that the read replica has served.',
      labelNames: ['replica'],
      read: () => replicas.all.map(({ name, reads }) => [{ replica: name }, reads]),
    });
    registerMetric(Counter, metrics, {
      name: 'replica_fallbacks_total',
      help: 'Statements that the primary has served in place of a read replica.',
      read: () => replicas.fallbacks,
    });
  }
}
