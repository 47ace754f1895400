import type { Part } from '#service';
import type { REPLICA_SETTINGS } from './replicas.js';

/** Reads from standbys that show every committed change. */
export const replicas = {
  settings: async () => (await import('./replicas.js')).REPLICA_SETTINGS,
  settingsAfter: 'DATABASE_POOL_SIZE',
  otherPools: ({ databaseReplicaUrls }) => databaseReplicaUrls.length,
  load: async () => ({ module: (await import('./replicas.module.js')).ReplicasModule }),
} satisfies Part<typeof REPLICA_SETTINGS>;
